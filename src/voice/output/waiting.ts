// The sounds that the user hears while they wait for the lead agent and no one speaks: the thinking sound and
// the filler.
//
// Owns:     the wait of the user, and that only one of the two sounds at a time.
// Does not: know who is working (turns), or when either sound is due (thinking-sound, filler).

import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { Filler, type Filled } from './filler.ts';
import type { FillerSettings } from './filler-options.ts';
import type { ModelVoice } from './model-voice.ts';
import { ThinkingSound, type ThinkingSoundOptions } from './thinking-sound.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';

export interface WaitingOptions {
  /** The sound while a tool works; absent: none. */
  readonly thinkingSound?: ThinkingSoundOptions | undefined;
  /** The phrase while the user waits; absent: none. */
  readonly filler?: FillerSettings | undefined;
}

export interface WaitingPorts {
  send(command: TransportCommand): void;
  /** Returns whether the model waits for a tool, or for the choice of the tool. */
  isToolAwaited(): boolean;
  /** Returns whether a reply is owed or about to be given. */
  isReplyAwaited(): boolean;
  userHasFloor(): boolean;
  isOffLine(): boolean;
  /** Reports that the model may be free for another request. */
  settled(): void;
}

export class Waiting {
  readonly #core: LeadSession;
  readonly #voice: ModelVoice;
  readonly #ports: WaitingPorts;
  readonly #thinkingSound: ThinkingSound | null;
  readonly #filler: Filler | null;

  /** @param sampleRateHz The rate of the model's sound. */
  constructor(
    core: LeadSession,
    voice: ModelVoice,
    { thinkingSound, filler }: WaitingOptions,
    sampleRateHz: number,
    ports: WaitingPorts,
  ) {
    this.#core = core;
    this.#voice = voice;
    this.#ports = ports;
    const { environment } = core.host;
    const ends = (): void => voice.background.endBackground();
    this.#thinkingSound = thinkingSound
      ? new ThinkingSound(environment, thinkingSound, sampleRateHz, {
          isWanted: () => this.#isToolAwaited && this.#filler?.isSounding !== true,
          sounds: (frame) => voice.background.playBackground(frame),
          ends,
        })
      : null;
    const isSlow = (): boolean => filler?.voice !== null && this.#isReplyAwaited;
    this.#filler = filler
      ? new Filler(environment, filler, sampleRateHz, {
          isWaitedFor: () => this.#isToolAwaited || isSlow(),
          isHeard: () => voice.playing.length > 0,
          mustBeSilent: () => ports.userHasFloor() || !this.#isAttached,
          isDue: () => this.#isDue,
          language: () => core.agents.current.language ?? 'en',
          send: (command) => ports.send(command),
          sounds: (frame) => {
            this.#thinkingSound?.look();
            voice.background.playBackground(frame);
          },
          ends,
          wrote: (item) => this.#write(item),
          settled: () => ports.settled(),
          report: (error) => core.reportError(error, 'filler'),
        })
      : null;
  }

  /** Whether the model is asked for a filler and cannot be asked for anything else. */
  get isAsked(): boolean {
    return this.#filler?.isAsked === true;
  }

  /** Reconsiders both sounds after a change. */
  look(): void {
    this.#filler?.look();
    this.#thinkingSound?.look();
  }

  /** Handles the events of a filler that the model was asked for. Returns whether the event was one. */
  handle(event: TransportEvent): boolean {
    return this.#filler?.handle(event) === true;
  }

  takesFrame(frame: AudioFrame): boolean {
    return this.#filler?.takesFrame(frame) === true;
  }

  /** Stops the filler because speech is about to begin. */
  silence(): void {
    this.#filler?.stop();
  }

  /** Handles the loss of the connection. */
  lost(): void {
    this.#filler?.lost();
  }

  /** Stops both sounds for good. */
  stop(): void {
    this.#filler?.stop();
    this.#thinkingSound?.stop();
  }

  #write({ interrupted, ...item }: Filled): void {
    const { projection } = this.#core;
    const filler = { ...item, role: 'assistant', filler: true } as const;
    const shown = interrupted ? { ...filler, interrupted } : filler;
    projection.emit({ type: 'transcript.changed', item: shown });
  }

  get #isToolAwaited(): boolean {
    return this.#ports.isToolAwaited() && !this.#voice.isSpeaking && this.#canBeHeard;
  }

  /** Whether a reply is owed and the model has not begun to speak. */
  get #isReplyAwaited(): boolean {
    return this.#ports.isReplyAwaited() && this.#voice.playing.length === 0 && this.#canBeHeard;
  }

  get #canBeHeard(): boolean {
    return !this.#ports.userHasFloor() && !this.#ports.isOffLine() && this.#isAttached;
  }

  get #isAttached(): boolean {
    return this.#core.unit.session.getSnapshot().matches({ client: 'attached' });
  }

  /** Whether a question is open or a delivery is due. */
  get #isDue(): boolean {
    const { owner, outbox } = this.#core.unit;
    const { current, pending } = outbox.getSnapshot().context;
    return owner !== null || current !== null || pending.some(({ resting }) => !resting);
  }
}
