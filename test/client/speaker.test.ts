// The speaker of a client, in a browser of the test's own: sound or silence, and whose the voice is after a lost connection.

import { expect, onTestFinished, test, vi } from 'vitest';
import { encodeSound, type NoticeFrame, type ServerFrame } from '../../src/client/protocol.ts';
import { Speaker } from '../../src/client/speaker.ts';
import { Emitter } from '../../src/client/watchable.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

function speaker(workletUrl = () => 'worklet.js') {
  const threw = (error: unknown): never => {
    throw error;
  };
  let contexts = 0;
  vi.stubGlobal(
    'AudioContext',
    class {
      readonly state = 'running';
      readonly audioWorklet = { addModule: () => Promise.resolve() };
      constructor() {
        contexts += 1;
      }
      resume = () => Promise.resolve();
      close = () => {
        contexts -= 1;
        return Promise.resolve();
      };
    },
  );
  vi.stubGlobal(
    'AudioWorkletNode',
    class {
      readonly port = {
        addEventListener: () => undefined,
        start: () => undefined,
        postMessage: () => undefined,
      };
      connect = () => undefined;
    },
  );
  onTestFinished(() => void vi.unstubAllGlobals());
  const onOpen = new Emitter<void>(threw);
  const onFrame = new Emitter<ServerFrame>(threw);
  const onSound = new Emitter<Uint8Array>(threw);
  const environment = simulatedEnvironment();
  const noticed: NoticeFrame['type'][] = [];
  const played: string[] = [];
  const it = new Speaker(
    {
      notice(frame) {
        if (frame.type === 'playout') played.push(`${frame.itemId} ${frame.playedMs}`);
        else noticed.push(frame.type);
      },
      sendSound: () => true,
      onOpen,
      onFrame,
      onSound,
      onLost: new Emitter(threw),
      ownsVoice: () => true,
      threw,
    },
    environment,
    workletUrl,
  );
  const sound = (ref: number, ms: number): void =>
    onSound.emit(encodeSound({ ref, samples: new Int16Array(ms * 24) }));
  return { it, onOpen, onFrame, noticed, played, sound, environment, contexts: () => contexts };
}

test('silence that is wanted opens no sound; sound after it closes the silence, and the other way round', async () => {
  const { it, contexts, noticed } = speaker();
  expect(await it.start({ silent: true })).toBe('silent');
  expect(contexts()).toBe(0);
  expect(await it.start()).toBe('on');
  expect(await it.start({ silent: false })).toBe('on');
  expect(contexts()).toBe(1);
  expect(await it.start({ silent: true })).toBe('silent');
  expect(contexts()).toBe(0);
  expect(noticed).toEqual(['voice.take', 'voice.take', 'voice.take', 'voice.take']);
  it.stop();
});

test('a host whose sound fails in any way is silent, and can be started again', async () => {
  const nowhere = speaker(() => {
    throw new TypeError('no address');
  });
  expect(await nowhere.it.start()).toBe('silent');
  nowhere.it.stop();
  const { it, contexts } = speaker();
  vi.stubGlobal('AudioWorkletNode', undefined);
  expect(await it.start()).toBe('silent');
  expect(contexts()).toBe(0);
  it.stop();
  expect(it.status.get().state).toBe('off');
});

test('a speaker that a listener stops as soon as it is on takes no voice', async () => {
  const { it, noticed, contexts } = speaker();
  it.status.subscribe(({ state }) => {
    if (state === 'on') it.stop();
  });
  expect(await it.start()).toBe('off');
  expect(noticed).toEqual(['voice.release']);
  expect(contexts()).toBe(0);
});

test('a wrong option is refused by name', async () => {
  const { it, noticed } = speaker();
  await expect(it.start({ silent: 'yes' as never })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining('`silent`: expected true or false, got "yes"') as string,
  });
  await expect(it.start({ loud: true } as never)).rejects.toThrow('loud');
  expect(noticed).toEqual([]);
});

test('SPEAKER-3: after a lost connection the voice is taken again, unless another client has taken it', async () => {
  const { it, onOpen, onFrame, noticed } = speaker();
  await it.start({ silent: true });
  onFrame.emit({ type: 'voice', own: true });
  onOpen.emit();
  expect(noticed).toEqual(['voice.take', 'voice.take']);
  onFrame.emit({ type: 'voice', own: false });
  onOpen.emit();
  expect(noticed).toHaveLength(2);
  await it.start({ silent: true });
  onOpen.emit();
  expect(noticed).toHaveLength(4);
  it.stop();
});

test('SPEAKER-4: in silence, speech counts as heard when it has come, item by item, in few reports', async () => {
  const { it, onFrame, sound, played, environment } = speaker();
  await it.start({ silent: true });
  onFrame.emit({ type: 'audio.item', ref: 1, itemId: 'greeting' });
  onFrame.emit({ type: 'audio.item', ref: 2, itemId: 'news' });
  for (let packet = 0; packet < 50; packet += 1) sound(1, 100);
  expect(played).toEqual([]);
  await environment.advance(100);
  expect(played).toEqual(['greeting 5000']);
  await environment.advance(10_000);
  sound(0, 100);
  sound(1, 20);
  sound(2, 300);
  expect(played).toEqual(['greeting 5000', 'greeting 5020']);
  onFrame.emit({ type: 'events', events: [{ type: 'playout.clear' }] } as never);
  expect(played.slice(2)).toEqual(['news 300']);
  await environment.advance(10_000);
  expect(played).toHaveLength(3);
  sound(2, 40);
  it.stop();
  expect(played.slice(3)).toEqual(['news 340']);
  await environment.advance(10_000);
  expect(played).toHaveLength(4);
});
