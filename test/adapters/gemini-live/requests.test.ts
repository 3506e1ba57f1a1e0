import { describe, expect, test } from 'vitest';
import { NoteMarks } from '../../../src/actors/notes/note-marks.ts';
import type { TransportCommand, TransportEvent } from '../../../src/voice/connection/transport.ts';
import {
  Call,
  generated,
  interrupted,
  sound,
  startCall,
  toolCall,
  turnComplete,
  words,
} from './support/call.ts';

const note = (text: string): TransportCommand => ({
  type: 'message.add',
  itemId: `note of ${text}`,
  role: 'system',
  text,
});
const request: TransportCommand = {
  type: 'response.request',
  responseKey: 'k1',
  instructions: 'Tell it.',
};
const insisting: TransportCommand = { ...request, insist: true };
const withdrawal: TransportCommand = { type: 'response.withdraw', responseKey: 'k1' };
const answer = (callId: string, output = 'Booked.'): TransportCommand => ({
  type: 'tool.answer',
  callId,
  output,
});
const textTurn = (text: string) => ({ role: 'user', parts: [{ text }] });
const content = (turnComplete: boolean, ...texts: readonly string[]) => ({
  clientContent: { turns: texts.map(textTurn), turnComplete },
});
const response = (id: string, more: object, output = 'Booked.') => ({
  id,
  name: 'book_ride',
  response: { output },
  ...more,
});

/** Returns, in short form, the starts and ends of the responses that have a key. */
const keyed = (events: readonly TransportEvent[]) =>
  events.flatMap((event) =>
    (event.type === 'response.started' || event.type === 'response.ended') && event.responseKey
      ? [event.type === 'response.started' ? 'started' : event.status]
      : [],
  );

describe('messages', () => {
  test('do not cause a response, and are sent together if they are added in one event loop turn', async () => {
    const call = await startCall();
    const said = await call.sends(note('Rain.'), {
      type: 'message.add',
      itemId: 'u',
      role: 'user',
      text: 'Hello.',
    });
    expect(said).toEqual([content(false, '[note] Rain.', 'Hello.')]);
  });

  test('keep their brackets', async () => {
    const call = await startCall();
    expect(await call.sends(note('[note] Rain.'))).toEqual([content(false, '[note] Rain.')]);
  });

  test("OUTGOING-2: wait until the model's turn is over if the model is talking", async () => {
    const call = await startCall();
    call.says(sound());
    expect(await call.sends(note('Rain.'))).toEqual([]);
    call.says(generated);
    expect(call.peer.news()).toEqual([]);
    call.says(turnComplete);
    expect(call.peer.news()).toEqual([content(false, '[note] Rain.')]);
  });

  test('OUTGOING-2: wait until the model has answered if the user is speaking', async () => {
    const call = await startCall();
    call.says(words('Hello.'));
    await call.sends(note('Rain.'));
    await call.advance(2_100);
    expect(call.last('utterance.transcribed')).toMatchObject({ final: true });
    expect(call.peer.news()).toEqual([]);
    call.says(sound(), generated, turnComplete);
    expect(call.peer.news()).toHaveLength(1);
  });

  test('OUTGOING-2: wait four seconds for a model that does not answer', async () => {
    const call = await startCall();
    call.says(words('Hello.'));
    await call.sends(note('Rain.'));
    await call.advance(2_100 + 3_999);
    expect(call.peer.news()).toEqual([]);
    await call.advance(1);
    expect(call.peer.news()).toHaveLength(1);
  });

  test('OUTGOING-2: leave the queue as soon as the model reports that it is idle', async () => {
    const call = await startCall();
    call.says(words('Hm.'));
    await call.sends(note('Rain.'));
    await call.advance(2_100);
    call.says({ serverContent: { waitingForInput: true } });
    expect(call.peer.news()).toHaveLength(1);
  });

  test('OUTGOING-2: wait while the model is working', async () => {
    const call = await startCall();
    call.says({ serverContent: { turnComplete: true, interactionStatus: 'IN_PROGRESS' } });
    expect(await call.sends(note('Rain.'))).toEqual([]);
    call.says({ serverContent: { turnComplete: true, interactionStatus: 'IDLE' } });
    expect(call.peer.news()).toHaveLength(1);
  });

  test('OUTGOING-2: wait 15 seconds for a turn that never ends', async () => {
    const call = await startCall();
    call.says(sound());
    await call.sends(note('Rain.'));
    await call.advance(14_999);
    expect(call.peer.news()).toEqual([]);
    await call.advance(1);
    expect(call.peer.news()).toHaveLength(1);
    expect(call.last('response.ended')).toMatchObject({ status: 'incomplete' });
  });

  test('OUTGOING-4: wait for the next request if the model would respond to them', async () => {
    const call = await startCall({ model: 'gemini-3.1-flash-live-preview' });
    expect(await call.sends(note('Rain.'))).toEqual([]);
    expect(await call.sends(request)).toEqual([
      { realtimeInput: { text: '[note] Rain.\n[note] Tell it.' } },
    ]);
  });
});

describe('a request', () => {
  test('OUTGOING-1: gets sent in one message with the notes before it', async () => {
    const call = await startCall();
    expect(await call.sends(note('Rain.'), request)).toEqual([
      content(true, '[note] Rain.', '[note] Tell it.'),
    ]);
  });

  test('MARK-6: omits the quotation of a note when the request already contains it', async () => {
    const call = await startCall();
    const told = note('It rains.\n[data] {"task":"weather"}');
    const about = '[data k-1] {"task":"weather"}';
    expect(await call.sends(told, { ...request, about })).toEqual([
      content(true, '[note] It rains.\n[data] {"task":"weather"}', '[note] Tell it.'),
    ]);
    const alone = await (await startCall()).sends({ ...request, about });
    expect(JSON.stringify(alone)).toContain('weather');
  });

  test('prompts the model to respond when the request has no instructions', async () => {
    const call = await startCall();
    const [said] = await call.sends({ type: 'response.request', responseKey: 'k1' });
    expect(JSON.stringify(said)).toContain('your turn');
  });

  test("MARK-5: marks the transport's own sentences with the session's mark", async () => {
    const notes = new NoteMarks('a secret');
    const call = await new Call({}, { notes }).begin();
    const said = await call.sends(
      note('Rain.'),
      { type: 'tool.recall', callId: 'c9', name: 'book_ride', arguments: '{}' },
      { type: 'tool.answer', callId: 'c9', output: 'Booked.' },
      { type: 'response.request', responseKey: 'k1' },
    );
    const lines = JSON.stringify(said).match(/\[(?:note|data |SYSTEM)[^\]]*\]/g) ?? [];
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(line).toMatch(new RegExp(`^\\[(note|data) ${notes.key}-`));
  });

  test('uses the audio input if it is urgent', async () => {
    const call = await startCall();
    expect(await call.sends(note('Rain.'), insisting)).toEqual([
      content(false, '[note] Rain.'),
      { realtimeInput: { text: '[note] Tell it.' } },
    ]);
  });

  test('GEMINI-LIVE-REQUESTS-1: gets the next response rather than a later one', async () => {
    const call = await startCall();
    await call.sends(request);
    call.says(sound(), generated, turnComplete, sound());
    expect(keyed(call.events)).toEqual(['started', 'completed']);
    expect(call.last('response.started')).toMatchObject({ responseKey: null });
  });

  test('OUTGOING-2: waits until the current response is over', async () => {
    const call = await startCall();
    call.says(sound());
    expect(await call.sends(request)).toEqual([]);
    call.says(generated, turnComplete);
    expect(call.peer.news()).toHaveLength(1);
    expect(keyed(call.events)).toEqual([]);
    call.says(sound());
    expect(keyed(call.events)).toEqual(['started']);
  });

  test('GEMINI-LIVE-REQUESTS-1: ends as cancelled if the user speaks before the response', async () => {
    const call = await startCall();
    await call.sends(request);
    call.says(words('Wait'));
    expect(keyed(call.events)).toEqual(['cancelled']);
    call.says(sound());
    expect(call.last('response.started')).toMatchObject({ responseKey: null });
  });

  test('GEMINI-LIVE-MODEL-TURNS-4: ends as cancelled when late speech arrives, but the response continues', async () => {
    const call = await startCall();
    await call.sends(request);
    call.says(sound());
    const { responseId } = call.last('response.started') ?? {};
    call.says(words('What time is it?'));
    expect(keyed(call.events)).toEqual(['started', 'cancelled']);
    expect(call.last('response.ended')?.responseId).not.toBe(responseId);
    call.says(sound(), generated);
    expect(call.last('response.ended')).toMatchObject({
      responseId,
      responseKey: null,
      status: 'completed',
      audio: [{ durationMs: 200 }],
    });
  });

  test('ends as cancelled when the user interrupts its response', async () => {
    const call = await startCall();
    await call.sends(request);
    call.says(sound(), interrupted);
    expect(keyed(call.events)).toEqual(['started', 'cancelled']);
  });

  test("GEMINI-LIVE-REQUESTS-2: ends as failed when the model's turn ends without a response", async () => {
    const call = await startCall();
    await call.sends(request);
    call.says({ serverContent: { turnComplete: true, turnCompleteReason: 'RESPONSE_REJECTED' } });
    expect(call.last('response.ended')).toMatchObject({
      responseKey: 'k1',
      status: 'failed',
      reason: 'RESPONSE_REJECTED',
    });
  });

  test('GEMINI-LIVE-REQUESTS-2, GEMINI-LIVE-REQUESTS-3: mutes its response if cancelled before it started', async () => {
    const call = await startCall();
    await call.sends(request);
    await call.sends({ type: 'response.cancel' });
    expect(keyed(call.events)).toEqual(['cancelled']);
    call.news();
    call.says(sound(), generated, turnComplete);
    expect(call.news()).toEqual([]);
    expect(call.frames).toEqual([]);
    call.says(sound());
    expect(call.frames).toHaveLength(1);
  });

  test.each([
    { how: 'cancelled', calls: [{ type: 'response.cancel' }] as const, heard: 1 },
    { how: 'kept', calls: [], heard: 2 },
  ])(
    'GEMINI-LIVE-REQUESTS-3: gets the second response, and is $how with it, if the user spoke first',
    async ({ calls, heard }) => {
      const call = await startCall();
      await call.sends(request);
      call.says(words('Premium.'));
      call.says(sound());
      await call.sends(...calls);
      // The first answer comes later than a model can start to answer.
      call.says(generated);
      await call.advance(6_000);
      call.says(turnComplete, sound(), generated, turnComplete);
      expect(call.frames).toHaveLength(heard);
      // An answer to a later message is heard.
      call.says(sound());
      expect(call.frames).toHaveLength(heard + 1);
    },
  );

  test('waits for the end of an interrupted turn whose response belongs to another request', async () => {
    const call = await startCall();
    call.says(sound());
    await call.sends({ type: 'response.cancel' });
    call.says(interrupted);
    expect(await call.sends(request)).toEqual([]);
    call.says(turnComplete);
    expect(call.peer.news()).toHaveLength(1);
    expect(keyed(call.events)).toEqual([]);
    call.says(sound(), generated);
    expect(keyed(call.events)).toEqual(['started', 'completed']);
  });

  test('waits for the end of an interrupted turn even if the rest of the turn is silent', async () => {
    const call = await startCall({ model: 'gemini-3.1-flash-live-preview' });
    call.says(sound());
    await call.sends({ type: 'response.cancel' });
    call.says(sound(), generated);
    expect(await call.sends(request)).toEqual([]);
    call.says(turnComplete);
    expect(call.peer.news()).toHaveLength(1);
  });

  test('GEMINI-LIVE-REQUESTS-2: remains unsent if it is cancelled while it is waiting', async () => {
    const call = await startCall();
    call.says(sound());
    await call.sends(note('Rain.'), request);
    await call.sends({ type: 'response.cancel' });
    expect(keyed(call.events)).toEqual(['cancelled']);
    call.says(interrupted, turnComplete);
    expect(call.peer.news()).toEqual([content(false, '[note] Rain.')]);
  });

  test('GEMINI-LIVE-REQUESTS-2: remains unsent if withdrawn while the current response continues', async () => {
    const call = await startCall();
    call.says(sound());
    await call.sends(note('Rain.'), request);
    expect(await call.sends(withdrawal)).toEqual([]);
    expect(keyed(call.events)).toEqual(['cancelled']);
    call.says(sound(), generated, turnComplete);
    expect(call.last('response.ended')).toMatchObject({ responseKey: null, status: 'completed' });
    expect(call.peer.news()).toEqual([content(false, '[note] Rain.')]);
  });

  test('allows a withdrawal only with the same key, and only before the request is sent', async () => {
    const call = await startCall();
    call.says(sound());
    await call.sends(request, { ...withdrawal, responseKey: 'k0' });
    call.says(generated, turnComplete);
    expect(call.peer.news()).toHaveLength(1);
    expect(await call.sends(withdrawal)).toEqual([]);
    call.says(sound(), generated);
    expect(keyed(call.events)).toEqual(['started', 'completed']);
  });
});

describe('the answer to a call', () => {
  const openCall = async (model?: string) => {
    const call = await startCall(model === undefined ? {} : { model });
    call.says(toolCall('c1'), toolCall('c2'), turnComplete);
    return call;
  };

  test('gets sent immediately with silent scheduling if no request accompanies it', async () => {
    const call = await openCall();
    call.says(sound());
    expect(await call.sends(answer('c1'), answer('c2'))).toEqual([
      {
        toolResponse: {
          functionResponses: [
            response('c1', { scheduling: 'SILENT' }),
            response('c2', { scheduling: 'SILENT' }),
          ],
        },
      },
    ]);
  });

  test.each([
    [request, 'WHEN_IDLE'],
    [insisting, 'INTERRUPT'],
  ])('uses the scheduling of the request that accompanies it: %j', async (asked, scheduling) => {
    const call = await openCall();
    const said = await call.sends(note('Rain.'), answer('c1'), asked);
    expect(said).toEqual([
      content(false, '[note] Rain.'),
      {
        toolResponse: {
          functionResponses: [
            {
              ...response('c1', { scheduling }),
              response: { output: 'Booked.', instructions: '[note] Tell it.' },
            },
          ],
        },
      },
    ]);
    call.says(sound());
    expect(keyed(call.events)).toEqual(['started']);
  });

  test.each<TransportCommand>([{ type: 'response.cancel' }, withdrawal])(
    'waits with the request beside it, and goes silently after $type',
    async (command) => {
      const call = await openCall();
      call.says(sound());
      expect(await call.sends(answer('c1'), request)).toEqual([]);
      const said = await call.sends(command);
      expect(said.find((message) => 'toolResponse' in message)).toEqual({
        toolResponse: { functionResponses: [response('c1', { scheduling: 'SILENT' })] },
      });
    },
  );

  test('ignores the scheduling of a request from another event loop turn', async () => {
    const call = await openCall();
    call.says(sound());
    await call.sends(request);
    const [said] = await call.sends(answer('c1'));
    expect(said).toHaveProperty('toolResponse.functionResponses.0.scheduling', 'SILENT');
  });

  test.each(['gemini-3.1-flash-live-preview', 'gemini-9-live'])(
    'has no scheduling for %s, which responds to an answer on its own',
    async (model) => {
      const call = await openCall(model);
      expect(await call.sends(answer('c1'))).toEqual([
        { toolResponse: { functionResponses: [response('c1', {})] } },
      ]);
      expect(await call.sends(request)).toEqual([]);
      call.says(sound(), generated, turnComplete);
      expect(call.last('response.ended')).toMatchObject({ responseKey: null });
      expect(call.peer.news()).toHaveLength(1);
    },
  );

  test.each([
    ['{"price":5}', { price: 5 }],
    ['[1,2]', { output: [1, 2] }],
    ['7', { output: 7 }],
    ['plain words', { output: 'plain words' }],
  ])('TOOL-CALLS-2: becomes an object: %s', async (output, expected) => {
    const call = await openCall();
    const [said] = await call.sends(answer('c1', output));
    expect(said).toHaveProperty('toolResponse.functionResponses.0.response', expected);
  });

  test.each(['', '{}', '[]', 'null'])(
    'TOOL-CALLS-2: marks an empty answer as not retryable: %j',
    async (output) => {
      const call = await openCall();
      const [said] = await call.sends(answer('c1', output));
      expect(said).toHaveProperty('toolResponse.functionResponses.0.response.retryable', false);
    },
  );

  test('TOOL-CALLS-4: becomes text if the call has already been answered', async () => {
    const call = await openCall();
    await call.sends(answer('c1'));
    const [said] = await call.sends(answer('c1', 'Driver found.'));
    expect(said).toHaveProperty('clientContent.turnComplete', false);
    expect(JSON.stringify(said)).toMatch(/c1.*book_ride.*Driver found/);
  });
});

describe('pictures', () => {
  const picture: TransportCommand = {
    type: 'image.add',
    itemId: 'p1',
    mediaType: 'image/png',
    data: new Uint8Array([1, 2, 3]),
  };
  const data = { mimeType: 'image/png', data: 'AQID' };

  test('join the conversation', async () => {
    const call = await startCall();
    expect(await call.sends(picture)).toEqual([
      {
        clientContent: {
          turns: [{ role: 'user', parts: [{ inlineData: data }] }],
          turnComplete: false,
        },
      },
    ]);
  });

  test('join the video stream if the conversation does not accept pictures', async () => {
    const call = await startCall({ model: 'gemini-3.1-flash-live-preview' });
    expect(await call.sends(picture)).toEqual([{ realtimeInput: { video: data } }]);
  });
});

describe('instructions and tools', () => {
  const configure: TransportCommand = {
    type: 'session.configure',
    configuration: { instructions: 'Be kind.', tools: [] },
  };

  test('change if the model supports updates, even if no tools are left', async () => {
    const call = await startCall();
    expect(await call.sends(configure)).toEqual([
      {
        contextUpdate: {
          systemInstruction: { parts: [{ text: 'Be kind.' }] },
          tools: { tools: [] },
        },
      },
    ]);
    expect(call.news()).toEqual([{ type: 'session.configured' }]);
  });

  test('refuse an update if the model does not support updates', async () => {
    const call = await startCall({ model: 'gemini-2.5-flash-native-audio-latest' });
    expect(await call.sends(configure)).toEqual([]);
    expect(call.news()).toEqual([
      expect.objectContaining({ type: 'session.refused', code: 'UNSUPPORTED' }),
    ]);
  });
});
