// A client's microphone while the connection is lost, in a fake browser.

import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { openSocketLine, type SocketLike } from '../../src/client/line.ts';
import { Microphone } from '../../src/client/microphone.ts';
import { decodeSound, type NoticeFrame, type ServerFrame } from '../../src/client/protocol.ts';
import { Emitter } from '../../src/client/watchable.ts';

const RATE_HZ = 24_000;
/** The length of one frame. */
const FRAME_SAMPLES = 480;

let says: (event: { readonly data: object }) => void = () => undefined;

/** The browser pauses or resumes the newest context. */
let become: (state: string) => void = () => undefined;

class FakePort {
  addEventListener(_type: string, listener: typeof says): void {
    says = listener;
  }
  start(): void {
    // No message waits.
  }
  postMessage(): void {
    // The fake always captures.
  }
}

beforeEach(() => {
  const node = { connect: () => undefined, disconnect: () => undefined };
  vi.stubGlobal(
    'AudioContext',
    class {
      readonly sampleRate = RATE_HZ;
      state = 'running';
      constructor() {
        become = (state) => {
          this.state = state;
          this.changed();
        };
      }
      changed = (): void => undefined;
      addEventListener = (_type: 'statechange', changed: () => void) =>
        void (this.changed = changed);
      readonly audioWorklet = { addModule: () => Promise.resolve() };
      createMediaStreamSource = () => node;
      resume = () => Promise.resolve();
      close = () => Promise.resolve();
    },
  );
  vi.stubGlobal(
    'AudioWorkletNode',
    class {
      readonly port = new FakePort();
    },
  );
  const stream = { getAudioTracks: () => [] };
  vi.stubGlobal('navigator', { mediaDevices: { getUserMedia: () => Promise.resolve(stream) } });
  onTestFinished(() => void vi.unstubAllGlobals());
});

/** A microphone that is on, and its connection. */
async function listening() {
  const threw = (error: unknown): never => {
    throw error;
  };
  const onOpen = new Emitter<void>(threw);
  const onLost = new Emitter<void>(threw);
  const onFrame = new Emitter<ServerFrame>(threw);
  let ownsVoice = true;
  const noticed: NoticeFrame[] = [];
  const sent: number[] = [];
  const microphone = new Microphone(
    {
      notice: (frame) => void noticed.push(frame),
      sendSound: (bytes) => {
        const packet = decodeSound(bytes);
        if (typeof packet === 'string') throw new Error(packet);
        sent.push(packet.samples[0] ?? Number.NaN);
        return true;
      },
      onOpen,
      onFrame,
      onSound: new Emitter(threw),
      onLost,
      ownsVoice: () => ownsVoice,
      threw,
    },
    () => 'worklet.js',
  );
  expect(await microphone.start()).toBe('on');
  return {
    microphone,
    sent,
    /** The user sends frames in which every sample has this value. */
    say: (...numbers: readonly number[]) => {
      for (const each of numbers)
        says({ data: { samples: new Int16Array(FRAME_SAMPLES).fill(each), level: 0.5 } });
    },
    lose: () => {
      ownsVoice = false;
      onLost.emit();
    },
    /** The connection is back, and the server reports who has the voice. */
    comeBack: (own: boolean) => {
      onOpen.emit();
      ownsVoice = own;
      onFrame.emit({ type: 'voice', own });
    },
  };
}

test('sends audio recorded during a short disconnection in its original order after reconnecting', async () => {
  const { microphone, say, lose, comeBack, sent } = await listening();
  say(1, 2);
  lose();
  say(3, 4);
  expect(microphone.status.get().isOpen).toBe(true);
  expect(sent).toEqual([1, 2]);
  comeBack(true);
  say(5);
  expect(sent).toEqual([1, 2, 3, 4, 5]);
});

test('names the option that is invalid', async () => {
  const { microphone } = await listening();
  await expect(microphone.start({ mode: 'hold' as never })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining('`mode`') as string,
  });
  await expect(microphone.start({ device: 'x' } as never)).rejects.toThrow('device');
  expect(microphone.status.get().state).toBe('on');
});

test('reports a browser that supports none of the possible sample rates for the microphone', async () => {
  const { microphone } = await listening();
  let made = 0;
  vi.stubGlobal(
    'AudioContext',
    class {
      #isClosed = false;
      readonly audioWorklet = {
        addModule: () => (++made % 2 === 0 ? Promise.reject(new Error('none')) : Promise.resolve()),
      };
      createMediaStreamSource(): never {
        throw new TypeError('another rate');
      }
      close(): Promise<void> {
        if (this.#isClosed) return Promise.reject(new TypeError('closed'));
        this.#isClosed = true;
        return Promise.resolve();
      }
    },
  );
  // A closed context rejects a second `close`, and Vitest reports unhandled rejections.
  expect(await microphone.start({ deviceId: 'other' })).toBe('missing');
  expect(made).toBe(2);
});

test('buffers the last 10 s, even across several connection attempts', async () => {
  const { say, lose, comeBack, sent } = await listening();
  lose();
  say(...Array.from({ length: 300 }, (_, index) => index));
  lose();
  say(...Array.from({ length: 300 }, (_, index) => 300 + index));
  comeBack(true);
  expect(sent).toEqual(Array.from({ length: 500 }, (_, index) => 100 + index));
});

test('drops audio while another client owns the voice', async () => {
  const { microphone, say, lose, comeBack, sent } = await listening();
  lose();
  say(1);
  comeBack(false);
  say(2);
  comeBack(true);
  expect(sent).toEqual([]);
  // The client does not buffer audio from a muted microphone.
  microphone.mute();
  lose();
  say(3);
  comeBack(true);
  lose();
  microphone.unmute();
  microphone.stop();
  say(4);
  comeBack(true);
  expect(sent).toEqual([]);
});

test('sends buffered audio immediately on a new connection and limits the audio that follows', () => {
  let unsent = 0;
  class Socket implements SocketLike {
    binaryType = '';
    readonly readyState = 1;
    get bufferedAmount(): number {
      return unsent;
    }
    send(data: string | Uint8Array): void {
      unsent += data.length;
    }
    close(): void {
      // The fake opens no connection.
    }
    addEventListener(): void {
      // The fake emits no events.
    }
  }
  const hello = { type: 'hello', v: 1, client: 'c' } as const;
  const target = { url: new URL('http://127.0.0.1/'), token: null, hello };
  const ignore = (): void => undefined;
  const line = openSocketLine(Socket, target, { frame: ignore, sound: ignore, closed: ignore });
  const packet = new Uint8Array(10_000);
  const kept = Array.from({ length: 48 }, () => line.sendSound(packet, true));
  expect(kept).not.toContain(false);
  expect(line.sendSound(packet)).toBe(true);
  const later = Array.from({ length: 20 }, () => line.sendSound(packet));
  expect(later.at(-1)).toBe(false);
  // The buffered audio has been sent, so the usual limit applies again.
  unsent = 0;
  const usual = Array.from({ length: 8 }, () => line.sendSound(packet));
  expect(usual).toEqual([true, true, true, true, true, true, true, false]);
});

test('reports `blocked` while the browser suspends audio, and then resumes recording', async () => {
  const { microphone, say, sent } = await listening();
  become('interrupted');
  expect(microphone.status.get()).toMatchObject({ state: 'blocked', isOpen: false });
  become('running');
  expect(microphone.status.get()).toMatchObject({ state: 'on', isOpen: true });
  become('suspended');
  expect(await microphone.start()).toBe('on');
  say(1);
  expect(sent).toEqual([1]);
  microphone.stop();
  become('suspended');
  expect(microphone.status.get().state).toBe('off');
});

test('reports an insecure page without requesting the microphone', async () => {
  const { microphone } = await listening();
  microphone.stop();
  vi.stubGlobal('isSecureContext', false);
  vi.stubGlobal('navigator', {});
  expect(await microphone.start()).toBe('insecure');
});
