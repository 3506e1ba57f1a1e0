// A whole session with a realtime model that outputs text and an app's own voice.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type SessionEvent } from '../../src/index.ts';
import { VoiceSession, withVoice } from '../../src/voice-session.ts';
import { scriptedVoice, simulatedEnvironment } from '../../src/testing/index.ts';
import type { AudioFrame } from '../../src/voice/audio/audio-frame.ts';
import { FakeTransport } from '../support/fake-transport.ts';

async function talking() {
  const environment = simulatedEnvironment();
  const voice = scriptedVoice({ environment, msPerCharacter: 100 });
  const inner = new FakeTransport({ output: 'text', truncatesAudio: false });
  const session = new VoiceSession({
    environment,
    transport: withVoice(inner, { voice }),
    agents: [
      {
        name: 'lead',
        instructions: 'Talk.',
        tools: [
          defineTool({
            name: 'look_up',
            description: 'Looks it up',
            parameters: z.object({}),
            execute: () => new Promise(() => {}),
          }),
        ],
      },
    ],
    filler: { afterMs: 1000, say: ['Wait.'] },
    hooks: { onError: () => {} },
  });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  const frames: AudioFrame[] = [];
  session.audioOut.subscribe((frame) => frames.push(frame));
  session.attach();
  await session.start();
  await environment.settle();
  const model = inner.current;
  const played = async (itemId: string, playedMs: number): Promise<void> => {
    session.playout.next({ itemId, playedMs });
    await environment.settle();
  };
  return {
    environment,
    voice,
    session,
    events,
    frames,
    model,
    played,
    state: () => session.store.getSnapshot().context,
    /** Speaks as the user. */
    async says(text: string) {
      model.utterance(text);
      await environment.settle();
    },
    /** Writes as the model does on request, and returns the item. */
    async writes(text: string, playedMs = 100 * text.length) {
      const { itemId, end } = model.begin(text, 0);
      end();
      await environment.settle();
      await played(itemId, playedMs);
      return itemId;
    },
  };
}

describe('a model with text output', () => {
  test('P4: repeats a delivery that the voice could not speak', async () => {
    const { environment, voice, session, state, model, writes, events } = await talking();
    session.notifyBackground('The mail has come');
    await environment.advance(400);
    voice.fail();
    await writes('The mail is here.', 0);
    expect(state().deliveries).toMatchObject([{ state: 'pending', attempts: 1 }]);
    expect(events.some((event) => event.type === 'error.reported')).toBe(true);
    // The model does not remember text that the user did not hear.
    expect(model.of('item.delete')).toHaveLength(1);
    await environment.advance(2000);
    expect(model.openRequests).toHaveLength(1);
    await writes('The mail is here.');
    expect(state().deliveries).toMatchObject([{ state: 'delivered', grade: 'played' }]);
  });

  test('P5: stops where the user interrupted, and remembers only the part that was heard', async () => {
    const { environment, says, writes, state, model, played } = await talking();
    await says('tell me something');
    const itemId = await writes('One two three four.', 0);
    await played(itemId, 900);
    model.speechStarted('u2');
    await played(itemId, 900);
    model.speechEnded('u2', 'stop that now please');
    await environment.advance(500);
    const heard = 'One two';
    expect(model.of('message.add').at(-1)).toMatchObject({ role: 'assistant', text: heard });
    expect(model.of('item.delete')).toMatchObject([{ itemId }]);
    const said = state().transcript.find(({ id }) => id === itemId);
    expect(said?.interrupted).toBe(true);
    expect('One two three four.'.startsWith(said?.text ?? '?')).toBe(true);
    expect(said?.text).not.toContain('four');
  });

  test("speaks its filler with the app's voice", async () => {
    const { environment, says, model, voice, frames, state } = await talking();
    await says('look it up');
    model.call({ callId: 'call_1', name: 'look_up', arguments: '{}' });
    await environment.advance(1000);
    expect(voice.said).toEqual(['Wait.']);
    expect(frames.map(({ itemId }) => itemId)).toEqual([undefined]);
    expect(state().transcript.at(-1)).toMatchObject({ text: 'Wait.', filler: true });
    expect(model.of('response.request')).toHaveLength(1);
  });
});
