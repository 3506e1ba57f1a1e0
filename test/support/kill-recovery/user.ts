// The user and their loudspeaker. The user repeats a request until the session has it, answers the questions that they
// hear, by voice or by button, and sometimes talks over the lead agent. The user remembers nothing about earlier lives
// except what the screen shows.

import type { VoiceSession } from '../../../src/voice-session.ts';
import type { Scheduler } from '../../../src/actors/ports/environment.ts';
import { SPOKEN_MS, type LoopTransport } from './loop-model.ts';
import { tokensIn, wish, wishesIn, wordsOf, type Line } from './world.ts';

const CHUNK_MS = 4;
const MOMENT_MS = 10;
/** The session counts as idle after this many moments without an action. */
const RESTFUL_MOMENTS = 40;
const AT_ONCE = 4;

/** Plays speech faster than in real time and reports it. */
export class Listener {
  readonly #session: VoiceSession;
  readonly #scheduler: Scheduler;
  readonly #queue: string[] = [];
  #playing: { readonly itemId: string; readonly cancel: () => void; playedMs: number } | null =
    null;
  readonly #texts: ReadonlyMap<string, string>;
  readonly #log: (line: Line) => void;
  /** Called in the middle of speech that may be interrupted. */
  halfway: (text: string) => void = () => {};
  heard: (text: string) => void = () => {};

  constructor(
    session: VoiceSession,
    transport: LoopTransport,
    scheduler: Scheduler,
    log: (line: Line) => void,
  ) {
    this.#session = session;
    this.#scheduler = scheduler;
    this.#texts = transport.texts;
    this.#log = log;
    session.audioOut.subscribe(({ itemId }) => {
      if (itemId === undefined) return;
      this.#queue.push(itemId);
      if (!this.#playing) this.#next();
    });
    session.events.subscribe(({ type }) => {
      if (type === 'playout.clear') this.#clear();
    });
  }

  get isSilent(): boolean {
    return this.#playing === null;
  }

  #next(): void {
    this.#playing = null;
    const itemId = this.#queue.shift();
    if (itemId === undefined) return;
    for (const token of tokensIn(this.#textOf(itemId))) this.#log({ what: 'said', token });
    this.#play(itemId, 0);
  }

  #play(itemId: string, playedMs: number): void {
    const cancel = this.#scheduler.schedule(() => {
      const text = this.#textOf(itemId);
      const now = playedMs + SPOKEN_MS / 4;
      if (now < SPOKEN_MS) {
        this.#play(itemId, now);
        this.#session.playout.next({ itemId, playedMs: now });
        if (now === SPOKEN_MS / 2) this.halfway(text);
        return;
      }
      for (const token of tokensIn(text)) this.#log({ what: 'heard', token });
      this.#session.playout.next({ itemId, playedMs: SPOKEN_MS });
      this.#next();
      this.heard(text);
    }, CHUNK_MS);
    this.#playing = { itemId, cancel, playedMs };
  }

  #clear(): void {
    this.#queue.length = 0;
    const playing = this.#playing;
    if (!playing) return;
    playing.cancel();
    this.#playing = null;
    this.#session.playout.next({ itemId: playing.itemId, playedMs: playing.playedMs });
  }

  #textOf(itemId: string): string {
    return this.#texts.get(itemId) ?? '';
  }
}

interface Scene {
  readonly session: VoiceSession;
  readonly transport: LoopTransport;
  readonly listener: Listener;
  /** The number of the user's requests, counted from the first life. */
  readonly count: number;
  readonly life: number;
  readonly isLast: boolean;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: (line: Line) => void;
  readonly tick: () => void;
}

/** Plays the user's part. Resolves when no work is left, if `isLast`. */
export async function talk(scene: Scene): Promise<void> {
  const { session, transport, listener, count, life, isLast, pause, log, tick } = scene;
  const state = () => session.store.getSnapshot().context;
  const speak = (text: string): void => transport.connection?.hear(text);
  const asked = () =>
    state().questions.filter(({ state: is }) => is === 'presenting' || is === 'open');
  /** Utterances from this life that are not on the screen yet. */
  let unheard: string | null = null;
  let toAnswer: number | null = null;
  let interruptions = 0;
  let isPatient = false;

  listener.halfway = (text) => {
    const isNews = /<(?:result|notice) /.test(text);
    interruptions += 1;
    const mayInterrupt = isNews && !isPatient && asked().length === 0 && toAnswer === null;
    if (!mayInterrupt || (interruptions + life) % 5 !== 0) return;
    unheard = `Hold on, number ${life} ${interruptions}.`;
    speak(unheard);
  };
  listener.heard = (text) => {
    const n = /<question (\d+)>/.exec(text)?.[1];
    if (n !== undefined) toAnswer = Number(n);
  };

  for (let restful = 0; restful < RESTFUL_MOMENTS;) {
    await pause(MOMENT_MS);
    tick();
    const { transcript, subagents, questions, deliveries, floor } = state();
    const said = new Set(transcript.filter(({ role }) => role === 'user').map(({ text }) => text));
    if (unheard !== null && said.has(unheard)) unheard = null;
    if (toAnswer !== null) {
      const n: number = toAnswer;
      toAnswer = null;
      const question = questions.find(({ question: words }) => words.includes(`<question ${n}>`));
      if (question?.state === 'open') {
        const byButton = question.options.length > 0 && n % 2 === 0;
        log({ what: 'answered', n, how: byButton ? 'button' : 'voice' });
        if (byButton)
          void session.answer(question.requestId, { optionId: `window-${n}` }).catch(() => {});
        else speak(question.options.length > 0 ? `Window ${n}` : `to place number ${n}`);
      } else if (question?.state === 'presenting') toAnswer = n;
      continue;
    }
    const known = new Set([...said].flatMap(wishesIn).map(({ n }) => n));
    const wanted = Array.from({ length: count }, (_, i) => wish(i + 1)).find(
      ({ n }) => !known.has(n),
    );
    const working = subagents.filter(({ endedAt }) => endedAt === null);
    const left = deliveries.filter(
      ({ state: is }) => is !== 'delivered' && is !== 'dropped' && is !== 'dismissed',
    );
    const due = left.filter(({ card }) => !card);
    const isCalm = floor === 'nobody' && listener.isSilent && unheard === null;
    const isUnasked = isCalm && asked().length === 0;
    if (isUnasked && wanted && working.length < AT_ONCE) {
      unheard = wordsOf(wanted);
      speak(unheard);
    } else if (isCalm && !wanted && isLast && left.length > due.length) {
      // A delivery that was interrupted too often rests until the user speaks. From now on, the user listens.
      isPatient = true;
      unheard = `What else, number ${life} ${restful}?`;
      speak(unheard);
    }
    const isIdle =
      isUnasked && !wanted && working.length + due.length + session.pendingToolCalls.length === 0;
    restful = isIdle && isLast ? restful + 1 : 0;
  }
  const subagents = state().subagents.map(({ id, state: is }) => ({ id, state: is }));
  log({ what: 'rested', subagents });
}
