// A client's microphone. It sends 20 ms frames while it is open, and a second of silence when it closes.
//
// Invariants
//   MICROPHONE-1. The microphone sends audio only while this client owns the voice and the microphone is not muted. In
//       push-to-talk mode it sends audio only while it is held.
//   MICROPHONE-2. Audio that the network cannot send in time is dropped rather than queued. While the voice owner is
//       disconnected, the microphone buffers the last 10 s of audio. The client sends this audio when it has the voice
//       again, so that a short connection loss does not cut off a sentence.

/* oxlint-disable unicorn/require-post-message-target-origin -- a port of the audio thread has no origin */

import { encodeSound, SPEECH_RATE_HZ } from './protocol.ts';
import { checkOptions, oneOf, optional, type OptionChecks } from '../values/plain-checks.ts';
import type { VoiceLine } from './line.ts';
import { Value, type WatchableValue } from './watchable.ts';
import {
  browser,
  closeContext,
  openContext,
  watchContext,
  workletNode,
  type AudioContextLike,
  type MediaStreamLike,
  type MicrophoneDevice,
} from './web-audio.ts';
import type { WorkletFrame } from './worklet.ts';

/** The state of a client's microphone. */
export interface MicrophoneStatus {
  /**
   * `denied`: the user or the browser refused access. `missing`: there is no microphone, or it has been unplugged.
   * `blocked`: the browser has paused the microphone, for example during a phone call. `start` opens it again.
   * `insecure`: the page is served neither over `https:` nor from localhost.
   */
  readonly state: 'off' | 'asking' | 'on' | 'denied' | 'missing' | 'blocked' | 'insecure';
  /** True between `mute` and `unmute`. */
  readonly isMuted: boolean;
  /** `push`: the microphone is open only while it is held. */
  readonly mode: 'open' | 'push';
  /** True between `hold` and `release`. */
  readonly isHeld: boolean;
  /** Whether the server can hear the user. During a short connection loss, the server receives the audio late. */
  readonly isOpen: boolean;
}

/** The options of a microphone's `start()`. */
export interface MicrophoneOptions {
  /** A device id from `devices()`. @defaultValue the system's default device */
  readonly deviceId?: string;
  /** @defaultValue the previous mode, initially `open` */
  readonly mode?: MicrophoneStatus['mode'];
}

const optionChecks: OptionChecks<MicrophoneOptions> = {
  deviceId: optional((value) => (typeof value === 'string' ? null : 'expected an id')),
  mode: optional(oneOf('open', 'push')),
};

const KEPT_MS = 10_000;

interface OpenMicrophone {
  readonly sampleRateHz: number;
  setOpen(isOpen: boolean): void;
  close(): void;
}

/** A client's microphone: `client.microphone`. */
export class Microphone {
  readonly #line: VoiceLine;
  readonly #workletUrl: () => string | URL;
  readonly #status: Value<MicrophoneStatus>;
  readonly #level: Value<number>;
  #device: OpenMicrophone | null = null;
  #attempt = 0;
  /** Whether this client owned the voice when its connection was lost. */
  #isAway = false;
  /** The audio that was recorded since the connection was lost. */
  #kept: Int16Array[] = [];
  #keptSamples = 0;

  constructor(line: VoiceLine, workletUrl: () => string | URL) {
    this.#line = line;
    this.#workletUrl = workletUrl;
    this.#status = new Value<MicrophoneStatus>(
      { state: 'off', isMuted: false, mode: 'open', isHeld: false, isOpen: false },
      line.threw,
    );
    this.#level = new Value(0, line.threw);
    line.onOpen.subscribe(() => this.#introduce());
    line.onFrame.subscribe(({ type }) => {
      if (type !== 'voice') return;
      this.#comeBack();
      this.#show({});
    });
    line.onLost.subscribe(() => {
      this.#isAway ||= this.#status.get().isOpen;
      this.#show({});
    });
  }

  /** The state of the microphone, as an observable. */
  get status(): WatchableValue<MicrophoneStatus> {
    return this.#status;
  }

  /** The user's loudness from 0 to 1, as an observable that emits 50 times a second. */
  get level(): WatchableValue<number> {
    return this.#level;
  }

  /** Lists the microphones. The labels are empty until the user has granted access to a microphone. */
  async devices(): Promise<readonly MicrophoneDevice[]> {
    const found = (await browser.navigator?.mediaDevices?.enumerateDevices()) ?? [];
    return found
      .filter(({ kind }) => kind === 'audioinput')
      .map(({ deviceId, label }) => ({ deviceId, label }));
  }

  /**
   * Asks the user for access to the microphone and opens it. A later call changes the device or mode. Resolves with the
   * resulting state. Also start the speaker, because only the speaker takes the session's voice for this client.
   * @throws {ConfigurationError} `INVALID_OPTION` (rejects)
   */
  async start(options: MicrophoneOptions = {}): Promise<MicrophoneStatus['state']> {
    const { deviceId, mode } = checkOptions('microphone.start(options)', optionChecks, options);
    if (mode) this.#show({ mode });
    if (this.#status.get().state === 'on' && deviceId === undefined) return 'on';
    const attempt = ++this.#attempt;
    this.#close();
    this.#show({ state: 'asking' });
    const opened = await this.#open(deviceId);
    if (attempt !== this.#attempt) {
      if (typeof opened !== 'string') opened.close();
      return this.#status.get().state;
    }
    if (typeof opened === 'string') {
      this.#show({ state: opened });
      return opened;
    }
    this.#device = opened;
    this.#introduce();
    this.#show({ state: 'on' });
    return 'on';
  }

  /** Releases the microphone. Safe to call twice. */
  stop(): void {
    this.#attempt += 1;
    this.#close();
    this.#forget();
    this.#show({ state: 'off' });
  }

  /** Mutes the microphone until `unmute`; the device stays open. */
  mute(): void {
    this.#show({ isMuted: true });
  }

  /** Ends muting. */
  unmute(): void {
    this.#show({ isMuted: false });
  }

  /** Push to talk: opens the microphone until `release`. */
  hold(): void {
    this.#show({ isHeld: true });
  }

  /** Ends push-to-talk input. */
  release(): void {
    this.#show({ isHeld: false });
  }

  #introduce(): void {
    if (this.#device)
      this.#line.notice({ type: 'microphone', sampleRateHz: this.#device.sampleRateHz });
  }

  #show(change: Partial<MicrophoneStatus>): void {
    const next = { ...this.#status.get(), ...change };
    const isOpen =
      next.state === 'on' &&
      !next.isMuted &&
      (next.mode === 'open' || next.isHeld) &&
      (this.#line.ownsVoice() || this.#isAway);
    this.#device?.setOpen(isOpen);
    if (!isOpen && this.#level.get() > 0) this.#level.set(0);
    this.#status.set({ ...next, isOpen });
  }

  #close(): void {
    this.#device?.close();
    this.#device = null;
  }

  async #open(deviceId?: string): Promise<OpenMicrophone | 'denied' | 'missing' | 'insecure'> {
    if (browser.isSecureContext === false) return 'insecure';
    let stream: MediaStreamLike | undefined;
    let context: AudioContextLike | undefined;
    let unwatch = (): void => undefined;
    const close = (): void => {
      unwatch();
      for (const track of stream?.getAudioTracks() ?? []) track.stop();
      if (context) closeContext(context);
    };
    try {
      stream = await browser.navigator?.mediaDevices?.getUserMedia({
        // Without echo cancellation, the lead agent would hear and interrupt itself.
        audio: {
          channelCount: 1,
          echoCancellation: true,
          noiseSuppression: true,
          autoGainControl: true,
          ...(deviceId !== undefined && { deviceId: { exact: deviceId } }),
        },
      });
      if (!stream) return 'missing';
      // Some browsers cannot convert microphone audio to this rate. They deliver audio at the device's rate, and the
      // server resamples it.
      context = await openContext(this.#workletUrl(), SPEECH_RATE_HZ);
      let source;
      try {
        source = context.createMediaStreamSource(stream);
      } catch {
        closeContext(context);
        context = await openContext(this.#workletUrl());
        source = context.createMediaStreamSource(stream);
      }
      const node = workletNode(context, 'offstage-capture', { numberOfOutputs: 0 });
      node.port.addEventListener('message', ({ data }: { data: WorkletFrame }) =>
        this.#heard(data),
      );
      source.connect(node);
      await context.resume();
      for (const track of stream.getAudioTracks())
        track.addEventListener('ended', () => {
          this.#close();
          this.#show({ state: 'missing' });
        });
      const device: OpenMicrophone = {
        sampleRateHz: context.sampleRate,
        setOpen: (open) => node.port.postMessage({ open }),
        close,
      };
      unwatch = watchContext(context, (runs) => {
        if (device === this.#device) this.#show({ state: runs ? 'on' : 'blocked' });
      });
      return device;
    } catch (error) {
      close();
      const { name } = error as { readonly name?: unknown };
      return name === 'NotAllowedError' || name === 'SecurityError' ? 'denied' : 'missing';
    }
  }

  #heard({ samples, level }: WorkletFrame): void {
    if (!this.#line.ownsVoice() && !this.#isAway) return;
    if (this.#status.get().isOpen) this.#level.set(level);
    if (this.#isAway) this.#keep(samples);
    else this.#line.sendSound(encodeSound({ ref: 0, samples }));
  }

  #keep(samples: Int16Array): void {
    this.#kept.push(samples);
    this.#keptSamples += samples.length;
    const most = (KEPT_MS * (this.#device?.sampleRateHz ?? SPEECH_RATE_HZ)) / 1000;
    while (this.#keptSamples > most) this.#keptSamples -= this.#kept.shift()?.length ?? most;
  }

  /**
   * The server has announced which client owns the voice. If this client owns the voice, it sends the buffered audio;
   * otherwise it discards the audio.
   */
  #comeBack(): void {
    const kept = this.#line.ownsVoice() ? this.#kept : [];
    this.#forget();
    for (const samples of kept) this.#line.sendSound(encodeSound({ ref: 0, samples }), true);
  }

  #forget(): void {
    this.#isAway = false;
    this.#kept = [];
    this.#keptSamples = 0;
  }
}
