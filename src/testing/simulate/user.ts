// The user: speaks, types, answers questions, interrupts, digresses, stays silent, clicks too late and clicks twice.
// How the user reacts to a question depends on the seed and the question's text.
//
// Owns:     the actions that the user is about to take.
// Does not: start conversations (the script does) or judge the answers.

import type {
  DeliveryView,
  QuestionView,
  SessionEvent,
} from '../../actors/contracts/session-views.ts';
import type { GivenAnswer } from '../../actors/subagent/ask-user.ts';
import { messageOf } from '../../values/errors.ts';
import { propertiesOf } from '../../values/json.ts';
import { chanceOf, type Chance } from '../doubles/chance.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import type { Client } from './client.ts';
import type { Faults } from './faults.ts';
import type { Utterance } from './line.ts';
import { OVER, type Happening } from './log/log.ts';
import type { AnySession, SimulatedApp } from './log/app.ts';

const CHAR_MS = 60;
const SHORTEST_MS = 300;
const AWAY_MS = 20_000;
/** Longer than the longest utterance, in milliseconds. */
const LONG_MS = 61_000;
const MOST_MS = 85_000;
const COUGH_WITHIN_MS = 2500;
const RELOAD_MS = 300;
const RETRY_MS = 500;
const LOOK_MS = 500;

export interface UserPorts {
  readonly seed: number;
  readonly kind: 'text' | 'voice';
  readonly environment: SimulatedEnvironment;
  readonly faults: Faults;
  readonly client: Client;
  session(): AnySession | null;
  app(): SimulatedApp;
  note(happening: Happening): void;
}

export class User {
  readonly #ports: UserPorts;
  readonly #questions = new Map<string, QuestionView>();
  /** The questions that the user is about to answer. */
  readonly #answering = new Set<string>();
  /** The approvals in which the user has changed the call by voice or text. The user does not change a call twice. */
  readonly #changed = new Set<string>();
  /** The lasting approvals that the user has already considered revoking. */
  readonly #lasting = new Set<string>();
  /** The deliveries whose cards remain on the screen. */
  readonly #cards = new Set<string>();
  #utterance: Utterance | null = null;
  #heard: string | null = null;
  #remarks = 0;
  #hasTelevision = false;

  constructor(ports: UserPorts) {
    this.#ports = ports;
  }

  /** The current or the last utterance. */
  get utterance(): Utterance | null {
    return this.#utterance;
  }

  get isSpeaking(): boolean {
    const { startedAt = 0, durationMs = 0 } = this.#utterance ?? {};
    return this.#utterance !== null && this.#now < startedAt + durationMs;
  }

  /** Returns whether a television is audible during the current utterance. Once it is on, it stays on. */
  hasTelevision(): boolean {
    if (!this.#hasTelevision && this.#ports.faults.strikes('user.television')) {
      this.#hasTelevision = true;
      this.#ports.client.hearsNoise();
    }
    return this.#hasTelevision;
  }

  /** In a voice session, speaks after the current utterance; an empty text is a cough. In a text session, types. */
  says(words: string): void {
    const { kind, client, faults, note } = this.#ports;
    if (!client.isThere) return;
    if (kind === 'text') {
      this.types(words);
      return;
    }
    if (this.isSpeaking) {
      this.#later(SHORTEST_MS, () => this.says(words));
      return;
    }
    const longer = words === '' ? null : faults.strikes('user.goesOn');
    const durationMs =
      longer?.within(LONG_MS, MOST_MS) ?? Math.max(SHORTEST_MS, words.length * CHAR_MS);
    this.#utterance = { words, startedAt: this.#now, durationMs };
    note({ kind: 'said', words, how: 'speech' });
    client.speaks(durationMs);
    const coughs = words === '' ? null : faults.strikes('user.coughs');
    if (coughs) this.#later(durationMs + coughs.within(300, COUGH_WITHIN_MS), () => this.says(''));
    this.#mayVanish(durationMs);
  }

  types(words: string): void {
    const session = this.#ports.session();
    if (!session || !this.#ports.client.isThere) return;
    this.#ports.note({ kind: 'said', words, how: 'typing' });
    // A session that is not ready rejects the text, so the user tries again.
    session.sendText(words).catch((error: unknown) => {
      if (session !== this.#ports.session()) return;
      this.#ports.note({ kind: 'wordsRefused', why: messageOf(error) });
      this.#later(RETRY_MS, () => this.types(words));
    });
  }

  /** Receives an event that the user sees or hears. */
  sees(event: SessionEvent): void {
    if (event.type === 'question.changed') this.#asked(event.question);
    else if (event.type === 'delivery.changed') this.#told(event.delivery);
    else if (event.type === 'transcript.changed' && event.item.role === 'assistant')
      this.#hears(event.item.id);
    else if (event.type === 'tool.called') this.#mayVanish();
    else if (event.type === 'connection.changed' && event.state === 'reconnecting')
      this.#mayVanish();
  }

  /** From now on, the user answers every question and looks at every card. */
  behaves(): void {
    this.#ports.client.comeBack();
    for (const question of this.#questions.values()) this.#considers(question);
    for (const card of this.#cards) this.#looksAt(card);
  }

  /** Forgets the questions, because the new process asks them again. */
  forgets(): void {
    this.#answering.clear();
  }

  #asked(question: QuestionView): void {
    const { requestId, state } = question;
    const known = this.#questions.get(requestId);
    const before = known?.state;
    this.#questions.set(requestId, question);
    if (state === 'answered' && question.lasts) this.#mayTakeBack(question);
    const isPutAgain = question.putAgain?.times !== known?.putAgain?.times;
    if (state === before && !isPutAgain) return;
    if (state === 'open') this.#mayVanish();
    if (state === 'open') this.#considers(question);
    if (!OVER.has(state) || before === undefined || OVER.has(before)) return;
    const late = this.#ports.faults.strikes('answer.late');
    if (late)
      this.#later(late.within(100, 5000), () => this.#clicks(question, this.#chance(question)));
  }

  /** Revokes a lasting approval after some time. */
  #mayTakeBack({ requestId }: QuestionView): void {
    const chance = chanceOf(this.#ports.seed, 'takes back', requestId);
    if (this.#lasting.has(requestId) || !chance.happens(TAKES_BACK)) return;
    this.#lasting.add(requestId);
    this.#later(chance.within(100, TAKES_BACK_WITHIN_MS), () => {
      const lasting = this.#questions.get(requestId);
      if (lasting?.lasts) this.#gives(lasting, { approved: false });
    });
  }

  #considers(question: QuestionView): void {
    const { requestId, state } = question;
    const { faults } = this.#ports;
    if (state !== 'open' || this.#answering.has(requestId)) return;
    if (faults.strikes('user.silent')) return;
    this.#answering.add(requestId);
    const chance = this.#chance(question);
    let afterMs = chance.within(300, 4000);
    if (faults.strikes('user.digresses')) {
      this.#later(afterMs, () => this.says(`what is the weather like, ${(this.#remarks += 1)}?`));
      afterMs += 6000;
    }
    this.#later(afterMs, () => {
      this.#answering.delete(requestId);
      const now = this.#questions.get(requestId);
      if (now?.state === 'open' && this.#ports.client.isThere) this.#answers(now, chance);
    });
  }

  #answers(question: QuestionView, chance: Chance): void {
    const twice = this.#ports.faults.strikes('answer.twice');
    if (chance.happens(0.45)) this.#clicks(question, chance);
    else {
      const words = this.#wordsFor(question, chance);
      if (chance.happens(0.3)) this.types(words);
      else this.says(words);
    }
    if (twice) this.#later(twice.within(1, 400), () => this.#clicks(question, twice));
  }

  #clicks(question: QuestionView, chance: Chance): void {
    this.#gives(question, clickFor(question, chance));
  }

  #gives({ requestId }: QuestionView, answer: GivenAnswer): void {
    const session = this.#ports.session();
    const { note, client } = this.#ports;
    if (!session || !client.isThere) return;
    session.questionShown(requestId);
    note({ kind: 'clicked', requestId, answer });
    session.answer(requestId, answer).then(
      (receipt) => {
        if (session === this.#ports.session())
          note({ kind: 'receipt', requestId, answer, receipt });
      },
      (error: unknown) => note({ kind: 'wordsRefused', why: messageOf(error) }),
    );
  }

  /** Returns the text with which the user answers a question. */
  #wordsFor(question: QuestionView, chance: Chance): string {
    const { requestId, kind, options } = question;
    const [yes, no] = this.#ports.app().consentModel ? ['sim', 'não'] : ['yes', 'no'];
    if (kind === 'approval') {
      if (!chance.happens(0.7)) return no;
      const input = chance.happens(CHANGES) ? otherInput(question, chance) : null;
      const isAlways = yes === 'yes' && chance.happens(LASTS);
      if ((!input && !isAlways) || this.#changed.has(requestId)) return yes;
      this.#changed.add(requestId);
      return input ? `Yes, but with ${JSON.stringify(input)}` : "Yes, and don't ask me again";
    }
    if (options.length === 0) return `call it number ${chance.below(1000)} please`;
    return chance.pick(options).label;
  }

  /** May make the client leave or reload while a message is being delivered. Eventually, the user looks at a card. */
  #told({ deliveryId, state, card, kind }: DeliveryView): void {
    const { faults, client } = this.#ports;
    if (card && state === 'pending') this.#cards.add(deliveryId);
    else this.#cards.delete(deliveryId);
    if (this.#cards.has(deliveryId) && !faults.isArmed) this.#looksAt(deliveryId);
    if (state !== 'playing' && state !== 'offered') return;
    if (kind === 'question') return;
    const leaves = faults.strikes('client.leaves');
    if (leaves)
      this.#later(leaves.below(2000), () => {
        client.leave();
        this.#later(leaves.within(500, AWAY_MS), () => client.comeBack());
      });
    const reloads = faults.strikes('client.reloads');
    if (reloads)
      this.#later(reloads.below(2000), () => {
        client.leave();
        this.#later(RELOAD_MS, () => client.comeBack());
      });
  }

  /** May make the client disappear in the middle of a turn, immediately or within `withinMs`. */
  #mayVanish(withinMs = 2000): void {
    const { faults, client } = this.#ports;
    const vanishes = faults.strikes('client.vanishes');
    if (!vanishes) return;
    this.#later(vanishes.below(withinMs), () => {
      client.leave();
      this.#later(vanishes.within(500, AWAY_MS), () => client.comeBack());
    });
  }

  #looksAt(deliveryId: string): void {
    this.#later(LOOK_MS, () => {
      if (this.#cards.has(deliveryId)) this.#ports.session()?.shown(deliveryId);
    });
  }

  /** The lead agent starts to speak. */
  #hears(itemId: string): void {
    if (this.#heard === itemId) return;
    this.#heard = itemId;
    const { faults, kind } = this.#ports;
    this.#mayVanish();
    const breaksIn = faults.strikes('user.bargesIn');
    if (!breaksIn) return;
    this.#remarks += 1;
    const words = breaksIn.happens(0.3) ? 'mm-hm' : `wait, tell me a joke, ${this.#remarks}`;
    this.#later(kind === 'voice' ? breaksIn.within(100, 1500) : 0, () => {
      if (!this.isSpeaking) this.says(words);
    });
  }

  #chance({ question, changed }: QuestionView): Chance {
    return chanceOf(this.#ports.seed, 'answer', changed?.question ?? question);
  }

  get #now(): number {
    return this.#ports.environment.clock.now();
  }

  #later(ms: number, task: () => void): void {
    this.#ports.environment.scheduler.schedule(task, ms);
  }
}

/**
 * The probabilities that a user who agrees changes the call, that the user also agrees to later calls, and that the
 * user then revokes this approval.
 */
const CHANGES = 0.2;
const LASTS = 0.3;
const TAKES_BACK = 0.5;
const TAKES_BACK_WITHIN_MS = 60_000;

/** Returns the arguments of an approval's call with a different number, or null if they contain no number. */
function otherInput({ action }: QuestionView, chance: Chance): object | null {
  const input = propertiesOf(action?.input);
  const numbers = Object.keys(input).filter((name) => typeof input[name] === 'number');
  return numbers.length > 0 ? { ...input, [chance.pick(numbers)]: chance.within(1, 9) } : null;
}

function clickFor(question: QuestionView, chance: Chance): GivenAnswer {
  const { kind, options, changed } = question;
  if (kind === 'approval') {
    const approved = chance.happens(0.7);
    const other = approved && chance.happens(CHANGES) ? otherInput(question, chance) : null;
    const input = other ?? changed?.input;
    const mayLast = approved && question.mayDiffer !== false && chance.happens(LASTS);
    const lasts = mayLast && chance.pick(['task', 'session'] as const);
    return {
      approved,
      ...(approved && input !== undefined && { input }),
      ...(lasts && { lasts }),
    };
  }
  if (options.length === 0) return { text: `number ${chance.below(1000)}` };
  return { optionId: chance.pick(options).id };
}
