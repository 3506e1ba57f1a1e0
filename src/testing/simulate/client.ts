// The client of a simulated session. It shows a text session in one of the ways that apps use, or plays the audio of a
// voice session and reports the playback. It leaves and returns, and it outlives the processes of the session.
//
// Owns:     whether it is attached, how it follows the session, and the played audio.
// Does not: decide when it leaves (user, player).

import type { VoiceSession } from '../../voice-session.ts';
import type { TextSession } from '../../actors/session/view/text-session.ts';
import {
  clientMessages,
  receiveClientMessage,
  type ClientMessage,
} from '../../compat/client-messages.ts';
import { chanceOf, type Chance } from '../doubles/chance.ts';
import { LOUDNESS, TICK_MS } from '../conformance/client.ts';
import { Loudspeaker, type Play } from '../conformance/loudspeaker.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import type { Happening } from './log/log.ts';

/** The amplitude of a television in the next room. */
const NOISE = LOUDNESS / 8;
/** A session, and whether it is a voice or a text session. */
export type Talking =
  | { readonly kind: 'text'; readonly session: TextSession }
  | { readonly kind: 'voice'; readonly session: VoiceSession; readonly sampleRateHz: number };

/** The ways in which an app can follow a text session. Results that are not acknowledged remain as cards. */
type Way =
  /** `session.parts`. */
  | 'observes'
  /** `session.read()` until its end. */
  | 'reads'
  /** `session.read()`, which the client stops at each result. */
  | 'breaksOff'
  /** `clientMessages(session)`. The client acknowledges each message that it has shown. */
  | 'acknowledges'
  /** `clientMessages(session)`, without acknowledgements. */
  | 'isSilent'
  /** Only `session.events` and `session.store`. */
  | 'traces';

const WAYS: readonly (readonly Way[])[] = [
  ['observes'],
  ['observes'],
  ['reads'],
  ['breaksOff'],
  ['acknowledges'],
  ['acknowledges'],
  ['isSilent'],
  ['traces'],
  ['observes', 'reads'],
  ['reads', 'acknowledges'],
  ['traces', 'isSilent'],
];

const LOOKS_WITHIN_MS = 3000;
const READS_AGAIN_MS = 500;

export class Client {
  readonly #seed: number;
  readonly #environment: SimulatedEnvironment;
  readonly #note: (happening: Happening) => void;
  readonly #presence: (isThere: boolean) => void;
  readonly #speakers: Loudspeaker[] = [];
  /** Whether the client is there, even while there is no session. */
  #isThere = true;
  #talking: Talking | null = null;
  #detach: (() => void) | null = null;
  #isTicking = false;
  #loudUntil = 0;
  #visits = 0;
  #isNoisy = false;

  constructor(
    seed: number,
    environment: SimulatedEnvironment,
    note: (happening: Happening) => void,
    presence: (isThere: boolean) => void,
  ) {
    this.#seed = seed;
    this.#environment = environment;
    this.#note = note;
    this.#presence = presence;
  }

  get isThere(): boolean {
    return this.#isThere;
  }

  /** The playbacks of all processes, in order. */
  get plays(): readonly Play[] {
    return this.#speakers.flatMap(({ plays }) => plays);
  }

  get isPlaying(): boolean {
    return this.#speakers.at(-1)?.isPlaying === true && this.#detach !== null;
  }

  /** Sets the session that the client talks to, or null if the session is gone. */
  meets(talking: Talking | null): void {
    this.#drop();
    this.#talking = talking;
    if (this.#isThere) this.#attach();
  }

  leave(): void {
    if (this.#isThere) this.#presence(false);
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

  /** Sends the user's voice through the microphone for this duration. */
  speaks(ms: number): void {
    this.#loudUntil = this.#environment.clock.now() + ms;
    this.#tick();
  }

  /** Turns on a television. From then on, the microphone always picks up its audio. */
  hearsNoise(): void {
    this.#isNoisy = true;
    this.#tick();
  }

  #attach(): void {
    const talking = this.#talking;
    if (!talking) return;
    const leave = talking.session.attach();
    const isMine = (): boolean => this.#talking === talking;
    const subscriptions =
      talking.kind === 'text'
        ? this.#follow(talking.session, isMine)
        : this.#listen(talking.session, isMine);
    this.#detach = () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
      leave();
    };
    this.#presence(true);
    this.#tick();
  }

  /** Follows the session in a different way each time, because one way can fail where another succeeds. */
  #follow(session: TextSession, isMine: () => boolean): readonly { unsubscribe(): void }[] {
    const chance = chanceOf(this.#seed, 'listens', (this.#visits += 1));
    return chance.pick(WAYS).map((way) => {
      switch (way) {
        case 'observes':
          return session.parts.subscribe((part) => this.#note({ kind: 'part', part }));
        case 'reads':
          return this.#reads(session, isMine, false);
        case 'breaksOff':
          return this.#reads(session, isMine, true);
        case 'acknowledges':
          return clientMessages(session).subscribe((message) =>
            this.#acknowledges(session, message, isMine, chance),
          );
        case 'isSilent':
          return clientMessages(session).subscribe();
        case 'traces':
          return session.store.subscribe(() => {});
      }
    });
  }

  #reads(session: TextSession, isMine: () => boolean, breaksOff: boolean): { unsubscribe(): void } {
    let hasLeft = false;
    let leave = (): void => {};
    const read = async (): Promise<void> => {
      if (hasLeft || !isMine()) return;
      const parts = session.read();
      leave = () => void parts.return(undefined);
      for await (const part of parts) {
        if (hasLeft || !isMine()) return;
        this.#note({ kind: 'part', part });
        if (!breaksOff || part.type !== 'text.done' || part.deliveryId === null) continue;
        this.#environment.scheduler.schedule(() => void read(), READS_AGAIN_MS);
        return;
      }
    };
    void read();
    return {
      unsubscribe() {
        hasLeft = true;
        leave();
      },
    };
  }

  #acknowledges(
    session: TextSession,
    message: ClientMessage,
    isMine: () => boolean,
    chance: Chance,
  ): void {
    const shown = shownBy(message);
    if (shown === null) return;
    this.#environment.scheduler.schedule(() => {
      if (isMine() && this.#detach) void receiveClientMessage(session, shown);
    }, chance.below(LOOKS_WITHIN_MS));
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

  /** Drops the audio that has not been played. */
  #drop(): void {
    this.#detach = null;
    const speaker = this.#speakers.at(-1);
    for (const play of speaker?.plays ?? []) if (play.playedMs < play.sentMs) play.isCleared = true;
  }

  /** Keeps ticking while there is audio to play or to report. */
  #tick(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#environment.scheduler.schedule(() => {
      this.#isTicking = false;
      const talking = this.#talking;
      if (talking?.kind !== 'voice' || !this.#detach) return;
      const isLoud = this.#environment.clock.now() <= this.#loudUntil;
      if (isLoud || this.#isNoisy) {
        const samples = new Int16Array((talking.sampleRateHz * TICK_MS) / 1000);
        samples.fill(isLoud ? LOUDNESS : NOISE);
        talking.session.audioIn.next({ samples, sampleRateHz: talking.sampleRateHz });
      }
      this.#speakers.at(-1)?.play(TICK_MS);
      if (isLoud || this.#isNoisy || this.isPlaying) this.#tick();
    }, TICK_MS);
  }
}

/** Returns the report that a client sends after it has shown this message. */
function shownBy(message: ClientMessage): object | null {
  if (message.type === 'subagent.question')
    return { type: 'question.shown', requestId: message.requestId };
  const { deliveryId } =
    message.type === 'transcript' || message.type === 'delivery.card' ? message : {};
  return deliveryId === undefined ? null : { type: 'delivery.shown', deliveryId };
}
