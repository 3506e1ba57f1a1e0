import { describe, expect, test } from 'vitest';
import type { TransportEvent } from '../../../src/voice/connection/transport.ts';
import {
  generated,
  interrupted,
  sound,
  startCall,
  turnComplete,
  words,
  type Call,
} from './support/call.ts';

/** Returns the events about utterances in short form. */
function told(events: readonly TransportEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'utterance.transcribed') return [`${event.final ? '=' : '~'}${event.text}`];
    return event.type.startsWith('utterance.') ? [event.type.slice('utterance.'.length)] : [];
  });
}

const ids = ({ events }: Call) =>
  new Set(events.flatMap((event) => ('utteranceId' in event ? [event.utteranceId] : [])));

describe('USER-SPEECH-1: an utterance', () => {
  test('ends with its transcript when no further fragments arrive', async () => {
    const call = await startCall();
    call.says(words('A taxi '));
    await call.advance(1_400);
    call.says(words('to the airport.'));
    await call.advance(2_000);
    expect(told(call.events)).toEqual(['started', '~A taxi ', '~A taxi to the airport.', 'ended']);
    await call.advance(100);
    expect(told(call.events).at(-1)).toBe('=A taxi to the airport.');
    await call.advance(60_000);
    expect(told(call.events)).toHaveLength(5);
    expect(ids(call).size).toBe(1);
  });

  test("ends at the session's command, and informs the server", async () => {
    const call = await startCall();
    call.says(words('And now '));
    const [utteranceId = ''] = ids(call);
    const sent = await call.sends({ type: 'utterance.end', utteranceId });
    expect(JSON.stringify(sent)).toContain('audioStreamEnd');
    expect(told(call.events)).toEqual(['started', '~And now ', 'ended', '=And now']);
    await call.advance(60_000);
    expect(told(call.events)).toHaveLength(4);
  });

  test('ends when the model responds, but still includes late text', async () => {
    const call = await startCall();
    call.says(words('Hello'), sound());
    expect(call.news().map(({ type }) => type)).toEqual([
      'utterance.started',
      'utterance.transcribed',
      'utterance.ended',
      'response.started',
    ]);
    await call.advance(500);
    call.says(words(' there.'));
    await call.advance(600);
    expect(told(call.events).at(-1)).toBe('=Hello there.');
    expect(ids(call).size).toBe(1);
  });

  test('ends immediately if the server marks its text as final', async () => {
    const call = await startCall();
    call.says({ serverContent: { inputTranscription: { text: 'Yes.', finished: true } } });
    expect(told(call.events)).toEqual(['started', '~Yes.', 'ended', '=Yes.']);
  });

  test('shows interim text until the final text arrives', async () => {
    const call = await startCall();
    call.says({ serverContent: { interimInputTranscription: { text: 'A tax' } } });
    call.says({ serverContent: { interimInputTranscription: { text: 'A taxi to' } } });
    call.says(words('A taxi '), words('to town.'));
    await call.advance(2_100);
    expect(told(call.events)).toEqual([
      'started',
      '~A tax',
      '~A taxi to',
      '~A taxi ',
      '~A taxi to town.',
      'ended',
      '=A taxi to town.',
    ]);
  });

  test("uses the detector's times", async () => {
    const call = await startCall();
    call.hears(2_000);
    call.says({ voiceActivity: { voiceActivityType: 'ACTIVITY_START', audioOffset: '1.2s' } });
    expect(call.last('utterance.started')).toMatchObject({ audioStartMs: 1_200 });
    await call.advance(10_000);
    expect(told(call.events)).toEqual(['started']);
    call.says({ voiceActivity: { voiceActivityType: 'ACTIVITY_END', audioOffset: '2s' } });
    call.says(words('Stop.'));
    await call.advance(600);
    expect(told(call.events)).toEqual(['started', 'ended', '~Stop.', '=Stop.']);
  });

  test('continues for up to a minute without text if the detector started it', async () => {
    const call = await startCall();
    call.says({ voiceActivity: { voiceActivityType: 'ACTIVITY_START', audioOffset: '0s' } });
    await call.advance(59_999);
    expect(told(call.events)).toEqual(['started']);
    await call.advance(1);
    expect(told(call.events)).toEqual(['started', 'ended']);
  });

  test("supports the detector's older signal, and ends even if there is no text", async () => {
    const call = await startCall();
    call.says({ voiceActivityDetectionSignal: { vadSignalType: 'VAD_SIGNAL_TYPE_SOS' } });
    call.says({ voiceActivityDetectionSignal: { vadSignalType: 'VAD_SIGNAL_TYPE_EOS' } });
    await call.advance(1_999);
    expect(told(call.events)).toEqual(['started', 'ended']);
    await call.advance(1);
    expect(told(call.events)).toEqual(['started', 'ended', '=']);
  });

  test('starts when the user interrupts, after the response has ended', async () => {
    const call = await startCall();
    call.says(sound(), interrupted);
    expect(call.news().map(({ type }) => type)).toEqual([
      'response.started',
      'response.ended',
      'utterance.started',
    ]);
    call.says(turnComplete, words('No, wait.'));
    await call.advance(2_100);
    expect(told(call.events)).toEqual(['started', '~No, wait.', 'ended', '=No, wait.']);
  });

  test('ends after a timeout if its end signal is missing', async () => {
    const call = await startCall();
    call.says(sound(), interrupted, turnComplete);
    await call.advance(5_000);
    expect(told(call.events)).toEqual(['started', 'ended', '=']);
  });

  test('starts again when the user speaks again', async () => {
    const call = await startCall();
    call.says(words('One.'), sound(), interrupted);
    expect(told(call.events)).toEqual(['started', '~One.', 'ended', '=One.', 'started']);
    expect(ids(call).size).toBe(2);
  });
});

describe('USER-SPEECH-2: text that arrives late', () => {
  test('reports an error during a response instead of starting an utterance that would interrupt it', async () => {
    const call = await startCall();
    call.says(words('Hello.'), sound());
    await call.advance(600);
    expect(told(call.events).at(-1)).toBe('=Hello.');
    call.news();
    call.says(words(' there'));
    expect(call.news()).toEqual([
      expect.objectContaining({ type: 'transport.error', code: 'LATE_WORDS', raw: ' there' }),
    ]);
  });

  test('starts the next utterance when the model has finished', async () => {
    const call = await startCall();
    call.says(words('Hello.'), sound(), generated, turnComplete);
    await call.advance(600);
    call.says(words('And you?'));
    expect(ids(call).size).toBe(2);
  });

  test('starts an utterance earlier if its first text arrives while a response is playing', async () => {
    const call = await startCall();
    call.hears(3_000);
    call.says(sound());
    call.hears(2_000);
    call.says(words('Hello.'));
    expect(told(call.events)).toEqual(['started', '~Hello.', 'ended']);
    expect(call.last('utterance.started')).toMatchObject({ audioStartMs: 2_200 });
    await call.advance(600);
    expect(told(call.events).at(-1)).toBe('=Hello.');
  });

  test('starts an utterance at an earlier time even if it is interim text', async () => {
    const call = await startCall();
    call.says(sound(), { serverContent: { interimInputTranscription: { text: 'Hello' } } });
    expect(told(call.events)).toEqual(['started', '~Hello', 'ended']);
    call.says(interrupted);
    expect(told(call.events).slice(3)).toEqual(['=Hello', 'started']);
  });

  test('does not prevent a later interruption from starting another utterance', async () => {
    const call = await startCall();
    call.says(sound(), words('Hello.'), interrupted);
    expect(told(call.events)).toEqual(['started', '~Hello.', 'ended', '=Hello.', 'started']);
  });
});

test('USER-SPEECH-3: assigns text a time before its arrival', async () => {
  const call = await startCall();
  call.hears(2_000);
  call.says(words('Hi.'));
  expect(call.last('utterance.started')).toMatchObject({ audioStartMs: 1_200 });
});

test('USER-SPEECH-3: derives the time of a text from the offset that the server sends', async () => {
  const call = await startCall();
  call.hears(2_000);
  call.says({ serverContent: { inputTranscription: { text: 'Hi.', startOffset: '0.4s' } } });
  expect(call.last('utterance.started')).toMatchObject({ audioStartMs: 400 });
});
