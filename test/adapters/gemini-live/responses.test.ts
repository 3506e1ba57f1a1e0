import { describe, expect, test } from 'vitest';
import type { TransportEvent } from '../../../src/voice/connection/transport.ts';
import {
  generated,
  interrupted,
  sound,
  spoken,
  startCall,
  toolCall,
  turnComplete,
} from './support/call.ts';

const types = (events: readonly TransportEvent[]) => events.map(({ type }) => type);

describe('GEMINI-LIVE-MODEL-TURNS-1: a turn is a response with one item', () => {
  test('runs from its first audio to the end of generation', async () => {
    const call = await startCall();
    call.says(sound(100), spoken('Good '), sound(50), spoken('morning.'), generated, turnComplete);
    const started = call.last('response.started');
    const ended = call.last('response.ended');
    expect(types(call.news())).toEqual([
      'response.started',
      'assistant.transcribed',
      'assistant.transcribed',
      'response.ended',
    ]);
    const [frame] = call.frames;
    expect(frame).toMatchObject({ sampleRateHz: 24_000, responseId: started?.responseId });
    expect(ended).toEqual({
      type: 'response.ended',
      responseId: started?.responseId,
      responseKey: null,
      status: 'completed',
      reason: null,
      audio: [{ itemId: frame?.itemId, durationMs: 150 }],
    });
  });

  test('completes its transcript when no more text follows', async () => {
    const call = await startCall();
    call.says(sound(), spoken('Good '), generated, turnComplete);
    await call.advance(900);
    call.says(spoken('morning.'));
    expect(call.last('assistant.transcribed')).toMatchObject({ text: 'morning.', final: false });
    await call.advance(1_000);
    const { itemId } = call.frames[0] ?? {};
    expect(call.last('assistant.transcribed')).toMatchObject({
      itemId,
      text: 'Good morning.',
      final: true,
    });
    expect(call.events.filter(({ type }) => type === 'response.started')).toHaveLength(1);
  });

  test('starts with audio, and ends the transcript of the previous response', async () => {
    const call = await startCall();
    call.says(sound(), spoken('One.'), generated, turnComplete);
    call.news();
    call.says(sound());
    expect(types(call.news())).toEqual(['assistant.transcribed', 'response.started']);
    const [first, second] = call.frames;
    expect(second?.itemId).not.toBe(first?.itemId);
    expect(second?.responseId).not.toBe(first?.responseId);
  });

  test('starts with a transcript that arrives long after the previous turn', async () => {
    const call = await startCall();
    call.says(sound(), generated, turnComplete);
    await call.advance(1_000);
    call.news();
    call.says(spoken('Next.'));
    expect(types(call.news())).toEqual(['response.started', 'assistant.transcribed']);
  });

  test('starts after generationComplete even if the previous turn is not over', async () => {
    const call = await startCall();
    call.says(sound(), generated, sound(), turnComplete);
    expect(call.events.filter(({ type }) => type === 'response.ended')).toHaveLength(2);
  });

  test('ends with turnComplete if generationComplete is missing', async () => {
    const call = await startCall();
    call.says(sound(), turnComplete);
    expect(call.last('response.ended')).toMatchObject({ status: 'completed' });
  });

  test('does not emit events for thoughts', async () => {
    const call = await startCall();
    call.says({ serverContent: { modelTurn: { parts: [{ text: 'Hm.', thought: true }] } } });
    expect(call.news()).toEqual([]);
  });

  test('reads all parts of a message', async () => {
    const call = await startCall();
    const { serverContent } = sound();
    call.says({
      serverContent: { ...serverContent, outputTranscription: { text: 'Hi.' }, turnComplete: true },
      usageMetadata: {
        cachedContentTokenCount: 3,
        promptTokenCount: 10,
        toolUsePromptTokenCount: 2,
        responseTokenCount: 5,
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 3 },
          { modality: 'AUDIO', tokenCount: 7 },
        ],
        responseTokensDetails: [{ modality: 'AUDIO', tokenCount: 4 }],
      },
    });
    expect(types(call.news())).toEqual([
      'response.started',
      'assistant.transcribed',
      'response.ended',
      'usage.reported',
    ]);
    expect(call.last('usage.reported')).toMatchObject({
      inputTokens: 12,
      outputTokens: 5,
      cachedInputTokens: 3,
      audioInputTokens: 7,
      audioOutputTokens: 4,
      raw: { usageMetadata: { cachedContentTokenCount: 3 } },
    });
  });
});

describe('the end of a response', () => {
  test('counts as cancelled when the response is interrupted', async () => {
    const call = await startCall();
    call.says(sound(), interrupted);
    expect(call.last('response.ended')).toMatchObject({
      status: 'cancelled',
      reason: 'interrupted',
      audio: [{ durationMs: 100 }],
    });
  });

  test.each([
    ['NEED_MORE_INPUT', 'completed'],
    ['RESPONSE_REJECTED', 'failed'],
    ['MALFORMED_FUNCTION_CALL', 'failed'],
  ] as const)('reads %s as %s', async (turnCompleteReason, status) => {
    const call = await startCall();
    call.says(sound(), { serverContent: { turnComplete: true, turnCompleteReason } });
    expect(call.last('response.ended')).toMatchObject({ status });
  });

  test('GEMINI-LIVE-MODEL-TURNS-2: drops stray content after an interruption until the turn is over', async () => {
    const call = await startCall();
    call.says(sound(), interrupted, sound(), turnComplete, sound());
    expect(call.frames).toHaveLength(1);
    // No model answers this early.
    await call.advance(200);
    call.says(sound());
    expect(call.frames).toHaveLength(2);
    expect(call.events.filter(({ type }) => type === 'response.started')).toHaveLength(2);
  });

  test('GEMINI-LIVE-MODEL-TURNS-2: drops stray content for one second if the end of the turn never arrives', async () => {
    const call = await startCall();
    call.says(sound(), interrupted, sound());
    await call.advance(1_000);
    call.says(sound());
    expect(call.frames).toHaveLength(2);
  });
});

describe('a cancel by the session', () => {
  test('ends the response immediately, mutes the remaining audio, and interrupts the server', async () => {
    const call = await startCall();
    call.says(sound());
    const said = await call.sends({ type: 'response.cancel' });
    expect(call.last('response.ended')).toMatchObject({ status: 'cancelled' });
    expect(said).toEqual([{ clientContent: { turnComplete: false } }]);
    call.says(sound(), spoken('lost'));
    expect(call.frames).toHaveLength(1);
    call.news();
    call.says(interrupted);
    // GEMINI-LIVE-TRANSLATOR-2: the user did not speak.
    expect(call.news()).toEqual([]);
    call.says(turnComplete, sound());
    expect(call.frames).toHaveLength(2);
  });

  test("sends nothing while the user is speaking, because the user's voice interrupts the server", async () => {
    const call = await startCall();
    call.says({ voiceActivity: { voiceActivityType: 'ACTIVITY_START', audioOffset: '0s' } });
    call.says(sound());
    call.says({ voiceActivity: { voiceActivityType: 'ACTIVITY_START', audioOffset: '1s' } });
    expect(await call.sends({ type: 'response.cancel' })).toEqual([]);
  });

  test('mutes the response without a message if an interruption message would end the session', async () => {
    const call = await startCall({ model: 'gemini-3.1-flash-live-preview' });
    call.says(sound());
    expect(await call.sends({ type: 'response.cancel' })).toEqual([]);
    call.says(sound());
    expect(call.frames).toHaveLength(1);
  });

  test('sends nothing if no response is running', async () => {
    const call = await startCall();
    expect(await call.sends({ type: 'response.cancel' })).toEqual([]);
    expect(call.news()).toEqual([]);
  });
});

describe('the status of the model', () => {
  test('changes to working only once, and changes back when the model reports that it is idle', async () => {
    const call = await startCall({ model: 'gemini-3.8-live-extended-thinking' });
    const working = {
      serverContent: { turnComplete: true, interactionStatus: 'IN_PROGRESS' },
    } as const;
    call.says(working, working);
    call.says({ serverContent: { turnComplete: true, interactionStatus: 'IDLE' } });
    expect(call.news()).toEqual([
      { type: 'model.changed', status: 'working' },
      { type: 'model.changed', status: 'idle' },
    ]);
  });
});

test('counts a model that is waiting for an answer as idle', async () => {
  const call = await startCall();
  const inProgress = {
    serverContent: { turnComplete: true, interactionStatus: 'IN_PROGRESS' },
  } as const;
  call.says(toolCall('c1'), inProgress);
  expect(call.last('model.changed')).toBeUndefined();
  await call.sends({ type: 'tool.answer', callId: 'c1', output: 'Booked.' });
  call.says(inProgress);
  expect(call.last('model.changed')).toMatchObject({ status: 'working' });
});

describe('calls', () => {
  test('TOOL-CALLS-1: arrive once, as part of a response', async () => {
    const call = await startCall();
    call.says(toolCall('c1', 'book_ride', { to: 'airport' }), toolCall('c1'));
    const { responseId } = call.last('response.started') ?? {};
    expect(call.news().slice(1)).toEqual([
      {
        type: 'tool.called',
        callId: 'c1',
        name: 'book_ride',
        arguments: '{"to":"airport"}',
        responseId,
      },
    ]);
  });

  test('end their response if the model waits for the answer', async () => {
    const call = await startCall({ model: 'gemini-3.1-flash-live-preview' });
    call.says(toolCall('c1'));
    expect(types(call.news())).toEqual(['response.started', 'tool.called', 'response.ended']);
    await call.sends({ type: 'tool.answer', callId: 'c1', output: 'Booked.' });
    call.says(sound());
    expect(types(call.news())).toEqual(['response.started']);
  });

  test('get an id if the server does not send one', async () => {
    const call = await startCall();
    call.says({ toolCall: { functionCalls: [{ name: 'book_ride' }] } });
    expect(call.last('tool.called')?.callId).toMatch(/^call_/);
  });

  test('TOOL-CALLS-3: report a cancelled call once, and do not send an answer to it', async () => {
    const call = await startCall();
    const cancellation = { toolCallCancellation: { ids: ['c1', 'c2'] } };
    call.says(toolCall('c1'), turnComplete, cancellation, cancellation);
    expect(call.news().slice(3)).toEqual([{ type: 'tool.cancelled', callId: 'c1' }]);
    expect(await call.sends({ type: 'tool.answer', callId: 'c1', output: 'late' })).toEqual([]);
  });
});
