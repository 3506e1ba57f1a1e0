// A client's speaker, which plays the lead agent's audio and reports how much has been played. If the host has no audio
// or the user wants none, only text is shown.
//
// Invariants
//   SPEAKER-1. Audio is reported as played only after it has left the audio thread, and only by the voice owner.
//   SPEAKER-2. If the browser requires a user gesture before it plays audio, the state is `blocked`. The client then
//       does not take the voice, play audio or report playback until `start` is called in a gesture handler.
//   SPEAKER-3. A client that reconnects takes the voice again only if no other client has taken it in the meantime.
//   SPEAKER-4. A silent speaker reports speech as heard as soon as it arrives, because the user reads it, as in a text
//       session.
//   SPEAKER-5. When the browser pauses the audio (`blocked`), the client releases the voice, and deliveries wait. When
//       the audio resumes, on its own or through `start`, the client takes the voice again.

/* oxlint-disable unicorn/require-post-message-target-origin -- a port of the audio thread has no origin */

import type { Environment } from '../actors/ports/environment.ts';
import { decodeSound, SPEECH_RATE_HZ, type ServerFrame } from './protocol.ts';
import { checkOptions, optional, type OptionChecks } from '../values/plain-checks.ts';
import type { VoiceLine } from './line.ts';
import { Value, type WatchableValue } from './watchable.ts';
import {
  browser,
  closeContext,
  openContext,
  watchContext,
  workletNode,
  type AudioContextLike,
  type WorkletNode,
} from './web-audio.ts';
import type { WorkletReport } from './worklet.ts';

/** The state of a client's audio. */
export interface SpeakerStatus {
  /**
   * `blocked`: the browser requires a click or key press, either initially or after it paused the audio. Call `start`
   * in the event handler. `silent`: the host has no audio, or the app does not want audio. `insecure`: like `silent`,
   * because the page is served neither over `https:` nor from localhost.
   */
  readonly state: 'off' | 'starting' | 'blocked' | 'on' | 'silent' | 'insecure';
}

/** The options of a speaker's `start()`. */
export interface SpeakerOptions {
  /**
   * For users who read the text instead. No audio is played, and speech counts as heard as soon as it arrives. No click
   * is required.
   * @defaultValue false
   */
  readonly silent?: boolean;
}

const optionChecks: OptionChecks<SpeakerOptions> = {
  silent: optional((value) => (typeof value === 'boolean' ? null : 'expected true or false')),
};

/** The device that plays audio. */
interface Output {
  play(itemId: string | null, samples: Int16Array): void;
  clear(): void;
  close(): void;
}

/** While a context waits for a gesture, its promise neither resolves nor rejects, so this timeout decides. */
const GESTURE_WAIT_MS = 400;
/**
 * The interval between the reports of a silent speaker, because packets arrive faster than a server accepts reports.
 */
const SILENT_REPORT_MS = 100;
/** The maximum number of item ids to remember. */
const MAX_ITEMS = 256;

/** The lead agent's audio at a client: `client.speaker`. */
export class Speaker {
  readonly #line: VoiceLine;
  readonly #environment: Environment;
  readonly #workletUrl: () => string | URL;
  readonly #status: Value<SpeakerStatus>;
  readonly #items = new Map<number, string>();
  #output: Output | null = null;
  /** Whether the app has turned the audio off. */
  #isQuiet = false;
  /** Whether another client has taken the voice. */
  #isElsewhere = false;
  /** Whether the client has released the voice because the browser paused the audio. */
  #hasGivenBack = false;
  get #isPaused(): boolean {
    return this.#status.get().state === 'blocked';
  }
  #attempt = 0;

  constructor(line: VoiceLine, environment: Environment, workletUrl: () => string | URL) {
    this.#line = line;
    this.#environment = environment;
    this.#workletUrl = workletUrl;
    this.#status = new Value<SpeakerStatus>({ state: 'off' }, line.threw);
    line.onOpen.subscribe(() => {
      this.#items.clear();
      // SPEAKER-3
      if (this.#output && !this.#isElsewhere && !this.#isPaused)
        line.notice({ type: 'voice.take' });
    });
    line.onLost.subscribe(() => this.#output?.clear());
    line.onFrame.subscribe((frame) => this.#received(frame));
    line.onSound.subscribe((bytes) => this.#sounded(bytes));
  }

  /** The state of the speaker, as an observable. */
  get status(): WatchableValue<SpeakerStatus> {
    return this.#status;
  }

  /**
   * Takes the session's voice: this client plays the audio, and the session listens to its microphone. Call this method
   * in a click handler. A later call can turn the audio on or off. Resolves with the resulting state.
   * @throws {ConfigurationError} `INVALID_OPTION` (rejects)
   */
  async start(options: SpeakerOptions = {}): Promise<SpeakerStatus['state']> {
    const { silent = false } = checkOptions('speaker.start(options)', optionChecks, options);
    const { state } = this.#status.get();
    if (state === 'starting') return state;
    if (!this.#output || silent !== this.#isQuiet || state === 'blocked') {
      const attempt = ++this.#attempt;
      this.#status.set({ state: 'starting' });
      const opened = await this.#open(silent);
      if (attempt !== this.#attempt) {
        if (opened !== 'blocked') opened.output.close();
        return this.#status.get().state;
      }
      if (opened === 'blocked') {
        this.#status.set({ state: 'blocked' });
        return 'blocked';
      }
      // The session repeats the audio that was not played on the previous output.
      this.#output?.clear();
      this.#output?.close();
      this.#output = opened.output;
      this.#isQuiet = silent;
      this.#status.set({ state: opened.state });
      // A listener has stopped the speaker in the meantime.
      if (attempt !== this.#attempt) return this.#status.get().state;
    }
    this.#isElsewhere = false;
    this.#hasGivenBack = false;
    this.#line.notice({ type: 'voice.take' });
    return this.#status.get().state;
  }

  /** Releases the voice. Speech then waits or is sent to another client. Safe to call twice. */
  stop(): void {
    this.#attempt += 1;
    this.#output?.clear();
    this.#output?.close();
    this.#output = null;
    this.#status.set({ state: 'off' });
    this.#line.notice({ type: 'voice.release' });
  }

  async #open(
    silent: boolean,
  ): Promise<'blocked' | { state: 'on' | 'silent' | 'insecure'; output: Output }> {
    const context = silent ? null : await this.#openContext();
    // SPEAKER-2
    if (context && !(await this.#isRunning(context))) {
      closeContext(context);
      return 'blocked';
    }
    const output = context && this.#soundOutput(context);
    if (output) return { state: 'on', output };
    const state = silent || browser.isSecureContext !== false ? 'silent' : 'insecure';
    return { state, output: silentOutput(this.#environment, this.#report) };
  }

  /** SPEAKER-5 */
  #paused(output: Output, runs: boolean): void {
    if (output !== this.#output || runs !== this.#isPaused) return;
    output.clear();
    this.#status.set({ state: runs ? 'on' : 'blocked' });
    if (this.#isElsewhere && !this.#hasGivenBack) return;
    this.#hasGivenBack = !runs;
    this.#isElsewhere &&= !runs;
    this.#line.notice({ type: runs ? 'voice.take' : 'voice.release' });
  }

  /** Returns null if this host has no audio. */
  async #openContext(): Promise<AudioContextLike | null> {
    try {
      return await openContext(this.#workletUrl(), SPEECH_RATE_HZ);
    } catch {
      return null;
    }
  }

  /** Returns null if the context cannot play. */
  #soundOutput(context: AudioContextLike): Output | null {
    let node: WorkletNode;
    try {
      node = workletNode(context, 'offstage-playback', {
        numberOfInputs: 0,
        outputChannelCount: [1],
      });
    } catch {
      closeContext(context);
      return null;
    }
    node.port.addEventListener('message', ({ data }: { data: WorkletReport }) =>
      this.#report(data),
    );
    node.connect(context.destination);
    const output: Output = {
      play: (itemId, samples) => node.port.postMessage({ itemId, samples }, [samples.buffer]),
      clear: () => node.port.postMessage({ clear: true }),
      close: () => {
        unwatch();
        closeContext(context);
      },
    };
    const unwatch = watchContext(context, (runs) => this.#paused(output, runs));
    return output;
  }

  #isRunning(context: AudioContextLike): Promise<boolean> {
    return new Promise((resolve) => {
      const decide = (): void => {
        cancel();
        resolve(context.state === 'running');
      };
      const cancel = this.#environment.scheduler.schedule(decide, GESTURE_WAIT_MS);
      context.resume().then(decide, decide);
    });
  }

  readonly #report = ({ itemId, playedMs }: WorkletReport): void => {
    if (this.#line.ownsVoice()) this.#line.notice({ type: 'playout', itemId, playedMs });
  };

  #received(frame: ServerFrame): void {
    if (frame.type === 'audio.item') {
      this.#items.set(frame.ref, frame.itemId);
      const [oldest] = this.#items.keys();
      if (this.#items.size > MAX_ITEMS && oldest !== undefined) this.#items.delete(oldest);
    } else if (frame.type === 'voice') {
      this.#isElsewhere = !frame.own;
      if (!frame.own) this.#output?.clear();
    } else if (frame.type === 'events') {
      if (frame.events.some(({ type }) => type === 'playout.clear')) this.#output?.clear();
    }
  }

  #sounded(bytes: Uint8Array): void {
    const packet = decodeSound(bytes);
    if (typeof packet === 'string') return;
    const itemId = packet.ref === 0 ? null : this.#items.get(packet.ref);
    if (itemId !== undefined) this.#output?.play(itemId, packet.samples);
  }
}

/** SPEAKER-4 */
function silentOutput({ scheduler }: Environment, report: (report: WorkletReport) => void): Output {
  let read: { readonly itemId: string; samples: number } | null = null;
  let cancel: (() => void) | null = null;
  const tell = (): void => {
    cancel?.();
    cancel = null;
    if (read) report({ itemId: read.itemId, playedMs: (read.samples * 1_000) / SPEECH_RATE_HZ });
  };
  return {
    play(itemId, { length }) {
      if (itemId === null) return;
      if (read?.itemId !== itemId) {
        if (cancel) tell();
        read = { itemId, samples: 0 };
      }
      read.samples += length;
      cancel ??= scheduler.schedule(tell, SILENT_REPORT_MS, { isBackground: true });
    },
    clear: tell,
    close: () => cancel?.(),
  };
}
