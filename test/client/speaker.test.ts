// A client's speaker in a fake browser: audio or silence, and who has the voice after a lost connection.

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
  /** The newest context, which the browser pauses and resumes. */
  const device = { mayResume: true, become: (_state: string): void => undefined };
  vi.stubGlobal(
    'AudioContext',
    class {
      state = 'running';
      readonly #changed: (() => void)[] = [];
      readonly audioWorklet = { addModule: () => Promise.resolve() };
      constructor() {
        contexts += 1;
        device.become = (state) => {
          this.state = state;
          for (const changed of this.#changed) changed();
        };
      }
      addEventListener = (_type: 'statechange', changed: () => void) => this.#changed.push(changed);
      resume = () => {
        if (device.mayResume) device.become('running');
        return Promise.resolve();
      };
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
  return {
    it,
    onOpen,
    onFrame,
    noticed,
    played,
    sound,
    environment,
    device,
    contexts: () => contexts,
  };
}

test('opens no audio output in silent mode and can switch modes', async () => {
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

test('stays silent if audio fails in any way, and can start again', async () => {
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

test('does not request the voice if a listener stops the speaker while it is being turned on', async () => {
  const { it, noticed, contexts } = speaker();
  it.status.subscribe(({ state }) => {
    if (state === 'on') it.stop();
  });
  expect(await it.start()).toBe('off');
  expect(noticed).toEqual(['voice.release']);
  expect(contexts()).toBe(0);
});

test('names the option that is invalid', async () => {
  const { it, noticed } = speaker();
  await expect(it.start({ silent: 'yes' as never })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining('`silent`: expected true or false, got "yes"') as string,
  });
  await expect(it.start({ loud: true } as never)).rejects.toThrow('loud');
  expect(noticed).toEqual([]);
});

test('SPEAKER-3: requests the voice again after a reconnect unless another client owns it', async () => {
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

test('SPEAKER-4: counts each item as heard on arrival if silent, and reports items in batches', async () => {
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

test('SPEAKER-5: releases the voice while the browser suspends audio and then requests it again', async () => {
  const { it, device, noticed, onFrame, onOpen, contexts } = speaker();
  expect(await it.start()).toBe('on');
  device.mayResume = false;
  for (const state of ['interrupted', 'suspended']) device.become(state);
  expect(it.status.get().state).toBe('blocked');
  onFrame.emit({ type: 'voice', own: false });
  onOpen.emit();
  expect(noticed).toEqual(['voice.take', 'voice.release']);
  device.become('running');
  expect(it.status.get().state).toBe('on');
  expect(noticed).toEqual(['voice.take', 'voice.release', 'voice.take']);
  // A click resumes the audio.
  device.become('suspended');
  device.mayResume = true;
  expect(await it.start()).toBe('on');
  expect(contexts()).toBe(1);
  expect(noticed.slice(3)).toEqual(['voice.release', 'voice.take']);
  // The browser resumes the context at once.
  device.become('suspended');
  expect(it.status.get().state).toBe('on');
  it.stop();
  device.become('suspended');
  expect(it.status.get().state).toBe('off');
});

test('does not take the voice from another client when its own audio resumes', async () => {
  const { it, device, noticed, onFrame } = speaker();
  await it.start();
  onFrame.emit({ type: 'voice', own: false });
  device.mayResume = false;
  device.become('suspended');
  device.become('running');
  expect(it.status.get().state).toBe('on');
  expect(noticed).toEqual(['voice.take']);
});

test('resumes suspended audio when the page becomes visible', async () => {
  let seen = (): void => undefined;
  const page = {
    visibilityState: 'hidden',
    addEventListener: (_type: string, listener: () => void) => void (seen = listener),
    removeEventListener: () => undefined,
  };
  vi.stubGlobal('document', page);
  const { it, device } = speaker();
  await it.start();
  device.mayResume = false;
  device.become('interrupted');
  device.mayResume = true;
  seen();
  expect(it.status.get().state).toBe('blocked');
  page.visibilityState = 'visible';
  seen();
  expect(it.status.get().state).toBe('on');
});

test('reports an insecure page and counts speech as heard on arrival', async () => {
  const { it, sound, onFrame, played, environment, noticed } = speaker();
  vi.stubGlobal('isSecureContext', false);
  vi.stubGlobal('AudioWorkletNode', undefined);
  expect(await it.start()).toBe('insecure');
  expect(noticed).toEqual(['voice.take']);
  onFrame.emit({ type: 'audio.item', ref: 1, itemId: 'a' });
  sound(1, 500);
  await environment.advance(1000);
  expect(played).toEqual(['a 500']);
  expect(await it.start({ silent: true })).toBe('silent');
});
