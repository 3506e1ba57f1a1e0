// What the user hears while they wait for the lead agent and nobody speaks: a soft sound, a word.
//
// Owns:     when the user waits, and that one of both is heard at a time.
// Does not: know who works (turns), or when which is due (thinking-sound, filler).

import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { Filler, type Filled } from './filler.ts';
import type { FillerSettings } from './filler-options.ts';
import type { ModelVoice } from './model-voice.ts';
import { ThinkingSound, type ThinkingSoundOptions } from './thinking-sound.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';

export interface WaitingOptions {
  /** What is heard while a tool works; none without it. */
  readonly thinkingSound?: ThinkingSoundOptions | undefined;
  /** What is said while the user waits; nothing without it. */
  readonly filler?: FillerSettings | undefined;
}

export interface WaitingPorts {
  send(command: TransportCommand): void;
  /** A tool works, or it is worked out which, and the model waits for that. */
  isToolAwaited(): boolean;
  /** A reply is owed, or about to be given. */
  isReplyAwaited(): boolean;
  userHasFloor(): boolean;
  isOffLine(): boolean;
  /** There may be room for something else. */
  settled(): void;
}

export class Waiting {
  readonly #core: LeadSession;
  readonly #voice: ModelVoice;
  readonly #ports: WaitingPorts;
  readonly #thinkingSound: ThinkingSound | null;
  readonly #filler: Filler | null;

  /** `sampleRateHz`: that of the model's sound. */
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
    const ends = (): void => voice.background.endMurmur();
    this.#thinkingSound = thinkingSound
      ? new ThinkingSound(environment, thinkingSound, sampleRateHz, {
          isWanted: () => this.#isToolAwaited && this.#filler?.isSounding !== true,
          sounds: (frame) => voice.background.murmur(frame),
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
          language: () => core.leads.agent.language ?? 'en',
          send: (command) => ports.send(command),
          sounds: (frame) => {
            this.#thinkingSound?.look();
            voice.background.murmur(frame);
          },
          ends,
          wrote: (item) => this.#write(item),
          settled: () => ports.settled(),
          report: (error) => core.reportError(error, 'filler'),
        })
      : null;
  }

  /** The model is asked for a word, and can be asked for nothing else. */
  get isAsked(): boolean {
    return this.#filler?.isAsked === true;
  }

  /** Something has changed. */
  look(): void {
    this.#filler?.look();
    this.#thinkingSound?.look();
  }

  /** Takes what is about a word that the model was asked for. */
  takes(event: TransportEvent): boolean {
    return this.#filler?.takes(event) === true;
  }

  takesFrame(frame: AudioFrame): boolean {
    return this.#filler?.takesFrame(frame) === true;
  }

  /** Somebody is about to speak: no word more. */
  hush(): void {
    this.#filler?.stop();
  }

  /** The connection is gone. */
  lost(): void {
    this.#filler?.lost();
  }

  /** Nobody waits any more, whatever happens. */
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

  /** The model has not begun to speak. */
  get #isReplyAwaited(): boolean {
    return this.#ports.isReplyAwaited() && this.#voice.playing.length === 0 && this.#canBeHeard;
  }

  get #canBeHeard(): boolean {
    return !this.#ports.userHasFloor() && !this.#ports.isOffLine() && this.#isAttached;
  }

  get #isAttached(): boolean {
    return this.#core.unit.session.getSnapshot().matches({ client: 'attached' });
  }

  /** Somebody asks the user something, or something is to be told. */
  get #isDue(): boolean {
    const { owner, outbox } = this.#core.unit;
    const { current, pending } = outbox.getSnapshot().context;
    return owner !== null || current !== null || pending.some(({ resting }) => !resting);
  }
}
