// The client of a simulated session: it shows what a text session says, or plays what a voice
// session says and reports it; it comes and goes, and outlives the process that it talks to.
//
// Owns:     who is attached, and what was played.
// Does not: decide when it leaves (user, player).

import type { VoiceSession } from '../../voice/voice-session.ts';
import type { TextSession } from '../../actors/session/text-session.ts';
import { LOUDNESS, TICK_MS } from '../conformance/client.ts';
import { Loudspeaker, type Play } from '../conformance/loudspeaker.ts';
import type { SimulatedEnvironment } from '../simulated-environment.ts';
import type { Happening } from './log.ts';

export type AnySession = TextSession | VoiceSession;

/** A session, and which kind it is. */
export type Talking =
  | { readonly kind: 'text'; readonly session: TextSession }
  | { readonly kind: 'voice'; readonly session: VoiceSession; readonly sampleRateHz: number };

export class Client {
  readonly #environment: SimulatedEnvironment;
  readonly #note: (happening: Happening) => void;
  readonly #speakers: Loudspeaker[] = [];
  /** Somebody holds the client in their hands, whether or not there is a session. */
  #isThere = true;
  #talking: Talking | null = null;
  #detach: (() => void) | null = null;
  #isTicking = false;
  #loudUntil = 0;

  constructor(environment: SimulatedEnvironment, note: (happening: Happening) => void) {
    this.#environment = environment;
    this.#note = note;
  }

  get isThere(): boolean {
    return this.#isThere;
  }

  /** What was played in all processes, in order. */
  get plays(): readonly Play[] {
    return this.#speakers.flatMap(({ plays }) => plays);
  }

  get isPlaying(): boolean {
    return this.#speakers.at(-1)?.isPlaying === true && this.#detach !== null;
  }

  /** There is a session to talk to, or there is none any more. */
  meets(talking: Talking | null): void {
    this.#drop();
    this.#talking = talking;
    if (this.#isThere) this.#attach();
  }

  leave(): void {
    this.#isThere = false;
    const detach = this.#detach;
    this.#drop();
    detach?.();
  }

  comeBack(): void {
    if (this.#isThere) return;
    this.#isThere = true;
    this.#attach();
  }

  /** The user's voice is in the microphone for so long. */
  speaks(ms: number): void {
    this.#loudUntil = this.#environment.clock.now() + ms;
    this.#tick();
  }

  #attach(): void {
    const talking = this.#talking;
    if (!talking) return;
    const leave = talking.session.attach();
    const isMine = (): boolean => this.#talking === talking;
    const subscriptions =
      talking.kind === 'text'
        ? [talking.session.parts.subscribe((part) => this.#note({ kind: 'part', part }))]
        : this.#listen(talking.session, isMine);
    this.#detach = () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
      leave();
    };
  }

  #listen(session: VoiceSession, isMine: () => boolean): { unsubscribe(): void }[] {
    const speaker = new Loudspeaker(
      () => this.#environment.clock.now(),
      (report) => {
        if (isMine() && this.#detach) session.playout.next(report);
      },
    );
    this.#speakers.push(speaker);
    return [
      session.audioOut.subscribe((frame) => {
        speaker.took(frame);
        this.#tick();
      }),
      session.events.subscribe(({ type }) => {
        if (type === 'playout.clear') speaker.clear();
      }),
    ];
  }

  /** What was not played by now is never played. */
  #drop(): void {
    this.#detach = null;
    const speaker = this.#speakers.at(-1);
    for (const play of speaker?.plays ?? []) if (play.playedMs < play.sentMs) play.isCleared = true;
  }

  /** While there is something to play, or to say. */
  #tick(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#environment.scheduler.schedule(() => {
      this.#isTicking = false;
      const talking = this.#talking;
      if (talking?.kind !== 'voice' || !this.#detach) return;
      const isLoud = this.#environment.clock.now() <= this.#loudUntil;
      if (isLoud) {
        const samples = new Int16Array((talking.sampleRateHz * TICK_MS) / 1000).fill(LOUDNESS);
        talking.session.audioIn.next({ samples, sampleRateHz: talking.sampleRateHz });
      }
      this.#speakers.at(-1)?.play(TICK_MS);
      if (isLoud || this.isPlaying) this.#tick();
    }, TICK_MS);
  }
}
