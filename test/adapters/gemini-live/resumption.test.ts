import { describe, expect, test } from 'vitest';
import type { GeminiLiveOptions } from '../../../src/adapters/gemini-live/index.ts';
import type { TransportCommand } from '../../../src/voice/connection/transport.ts';
import { Call, sound, startCall, toolCall, turnComplete, words } from './support/call.ts';

const note: TransportCommand = {
  type: 'message.add',
  itemId: 'n1',
  role: 'system',
  text: '[note] Rain.',
};
const rain = {
  clientContent: {
    turns: [{ role: 'user', parts: [{ text: '[note] Rain.' }] }],
    turnComplete: false,
  },
};
const handle = (newHandle: string, more = {}) => ({
  sessionResumptionUpdate: { newHandle, resumable: true, ...more },
});

/** Resumes another connection. */
function goOn(from: Call, options?: GeminiLiveOptions): Call {
  const resume = from.last('transport.resumable')?.resume;
  const { environment } = from;
  const history = () => [note];
  const call = new Call(options, { resume, history, environment });
  call.peer.open();
  return call;
}

describe('RESUMPTION-1: a token for resumption', () => {
  test('exists once the server has sent a handle', async () => {
    const call = await startCall();
    call.says(handle('h1'));
    expect(call.news()).toEqual([{ type: 'transport.resumable', resume: expect.anything() }]);
  });

  test.each([
    ['the server takes it back', { sessionResumptionUpdate: { resumable: false } }],
    ['the user speaks', words('Hello')],
    ['the model speaks', sound()],
    ['the model calls', toolCall('c1')],
  ])('exists until %s', async (_, message) => {
    const call = await startCall();
    call.says(handle('h1'));
    call.news();
    call.says(message);
    expect(call.news()[0]).toEqual({ type: 'transport.resumable', resume: null });
  });
});

describe('a resumed session', () => {
  test('sends the handle without history, and reports that the session is resumed', async () => {
    const call = await startCall();
    call.says(handle('h1'));
    const next = goOn(call);
    expect(next.peer.said[0]).toMatchObject({ setup: { sessionResumption: { handle: 'h1' } } });
    next.says({ setupComplete: {} });
    await next.settle();
    expect(next.peer.said).toHaveLength(1);
    expect(next.events).toEqual([{ type: 'transport.ready', resumed: true }]);
  });

  test('RESUMPTION-2: repeats messages sent after the handle', async () => {
    const call = await startCall();
    await call.sends({ ...note, text: '[note] known' });
    call.says(handle('h1'));
    call.hears();
    await call.sends(note);
    call.peer.close(1006);
    const next = goOn(call);
    next.hears();
    next.says({ setupComplete: {} });
    await next.settle();
    expect(next.peer.said.slice(1, 3)).toEqual([
      rain,
      expect.objectContaining({ realtimeInput: expect.anything() }),
    ]);
  });

  test('RESUMPTION-2: repeats messages whose index is higher than the last one that the server consumed', async () => {
    const call = await startCall();
    call.hears();
    await call.sends({ ...note, text: '[note] known' });
    await call.sends(note);
    // The setup is message 0, the audio 1, and the known message 2; otherwise the numbers are 1, 2 and 3.
    call.says(handle('h1', { lastConsumedClientMessageIndex: '3' }));
    const next = goOn(call);
    next.says({ setupComplete: {} });
    expect(next.peer.said.slice(1)).toEqual([rain]);
  });

  test('RESUMPTION-2: does not repeat a response request', async () => {
    const call = await startCall();
    call.says(toolCall('c1'), turnComplete, handle('h1'));
    await call.sends(
      { type: 'tool.answer', callId: 'c1', output: 'Booked.' },
      { type: 'response.request', responseKey: 'k1', instructions: 'Tell it.' },
    );
    const next = goOn(call);
    next.says({ setupComplete: {} });
    const again = next.peer.said.slice(1);
    expect(again).toHaveLength(1);
    expect(again[0]).toHaveProperty('toolResponse.functionResponses.0.scheduling', 'SILENT');
    expect(JSON.stringify(again)).not.toContain('Tell it.');

    const late = await startCall();
    late.says(handle('h2'));
    await late.sends(note, { type: 'response.request', responseKey: 'k1', instructions: 'Tell.' });
    const after = goOn(late);
    after.says({ setupComplete: {} });
    expect(after.peer.said.slice(1)).toEqual([rain]);
  });

  test('answers earlier calls by their ids', async () => {
    const call = await startCall();
    call.says(toolCall('c1'), turnComplete, handle('h1'));
    const next = await goOn(call).begin();
    const said = await next.sends({ type: 'tool.answer', callId: 'c1', output: 'Booked.' });
    expect(said).toHaveLength(1);
    expect(said[0]).toHaveProperty('toolResponse.functionResponses.0.name', 'book_ride');
  });
});

describe('RESUMPTION-3: a handle that is refused', () => {
  test.each([1007, 1008, 1011])(
    'expires with code %i, so that the next attempt does not use it',
    async (code) => {
      const call = await startCall();
      call.says(handle('h1'));
      const next = goOn(call);
      next.peer.close(code, 'BidiGenerateContent session not found');
      expect(next.events).toEqual([
        expect.objectContaining({ type: 'transport.closed', code, retryable: true }),
      ]);
      const third = goOn(call);
      expect(third.peer.said[0]).toHaveProperty('setup.sessionResumption', {});
      third.says({ setupComplete: {} });
      await third.settle();
      expect(third.peer.said[1]).toHaveProperty('clientContent.turnComplete', true);
      expect(third.events).toEqual([{ type: 'transport.ready', told: true }]);
    },
  );

  test('expires even if the server accepts the connection and closes it immediately afterwards', async () => {
    const call = await startCall();
    call.says(handle('h1'));
    const next = await goOn(call).begin();
    next.peer.close(1007);
    expect(goOn(call).peer.said[0]).toHaveProperty('setup.sessionResumption', {});
  });

  test('remains in use after a lost connection', async () => {
    const call = await startCall();
    call.says(handle('h1'));
    goOn(call).peer.close(1006);
    expect(goOn(call).peer.said[0]).toHaveProperty('setup.sessionResumption.handle', 'h1');
  });
});

test.each([undefined, null, 'h1', { handle: 'h1' }])(
  'starts a new session for an invalid token: %j',
  (resume) => {
    const call = new Call({}, { resume });
    call.peer.open();
    expect(call.peer.said[0]).toHaveProperty('setup.sessionResumption', {});
  },
);
