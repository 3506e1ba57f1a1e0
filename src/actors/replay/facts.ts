// The state as facts with a name and a value, so that the changes of an entry can be shown, stored and
// compared.
//
//   question sub_1:1   open          delivery c2   playing          subagent sub_1   running, step 2 …

import { clip } from '../../values/clip.ts';
import type { ReplayDelivery, ReplayItem, ReplaySubagent, ReplayView } from './replay-view.ts';

/** The new value of each fact that has changed; null: the fact is gone. */
export type Changes = Readonly<Record<string, string | null>>;

/** The number of characters of a text in a fact. */
const MAX_WORDS = 200;

type Fact = readonly [name: string, value: string];

export class Facts {
  /**
   * Facts by the unit that states them, so that an entry of one unit is not compared with the facts of all.
   */
  readonly #known = new Map<string, Map<string, string>>();

  /** Replaces the facts of `whose`. Returns the changes. */
  become(whose: string, facts: readonly Fact[]): Changes {
    const before = this.#known.get(whose) ?? new Map<string, string>();
    const now = new Map(facts);
    this.#known.set(whose, now);
    const changed: (readonly [name: string, value: string | null])[] = facts.filter(
      ([name, value]) => before.get(name) !== value,
    );
    for (const name of before.keys()) if (!now.has(name)) changed.push([name, null]);
    return Object.fromEntries(changed);
  }

  /** Drops facts without reporting a change: their subjects were over. */
  forget(whose: string, names: readonly string[]): void {
    for (const name of names) this.#known.get(whose)?.delete(name);
  }

  clear(): void {
    this.#known.clear();
  }
}

/** A batch of calls with its state. */
export interface BatchFact {
  readonly batchId: string;
  readonly state: string;
}

export function sessionFacts(
  view: Omit<ReplayView, 'at' | 'subagents' | 'transcript'>,
  batches: readonly BatchFact[],
): readonly Fact[] {
  const { connection, client, floor, agent, owner, questions, calls, outbox } = view;
  const { current, pending, reserved } = outbox;
  return [
    ['connection', connection],
    ['client', client],
    ['floor', floor],
    ['agent', agent ?? 'nobody'],
    ['owner', owner ?? 'lead agent'],
    ['reserved', String(reserved)],
    ...questions.map(({ requestId, state, answer }): Fact => [
      `question ${requestId}`,
      answer === null ? state : `${state}: ${words(answer)}`,
    ]),
    ...calls.map(({ callId, name, state }): Fact => [`call ${callId}`, `${name} ${state}`]),
    ...batches.map(({ batchId, state }): Fact => [`batch ${batchId}`, state]),
    ...[...(current ? [current] : []), ...pending].map(deliveryFact),
  ];
}

export function subagentFact(subagent: ReplaySubagent): Fact {
  const { id, name, state, step, messages, settledCalls, outcome } = subagent;
  const work = `step ${step} (${messages} messages, ${settledCalls} calls)`;
  const end = outcome && (outcome.error?.message ?? outcome.text);
  return [`subagent ${id}`, `${name} ${state}, ${work}${end ? `: ${words(end)}` : ''}`];
}

function deliveryFact({ deliveryId, kind, state, attempts, text }: ReplayDelivery): Fact {
  const times = attempts > 1 ? `, attempt ${attempts}` : '';
  return [`delivery ${deliveryId}`, `${kind} ${state}${times}: ${words(text)}`];
}

/** Cached: most items of a conversation do not change. */
const itemFacts = new WeakMap<ReplayItem, Fact>();

export function itemFact(item: ReplayItem): Fact {
  let fact = itemFacts.get(item);
  if (fact) return fact;
  const { id, role, text, interrupted } = item;
  fact = [`${role} ${id}`, `${words(text)}${interrupted ? ' (broken off)' : ''}`];
  itemFacts.set(item, fact);
  return fact;
}

const words = (text: string): string => clip(text, MAX_WORDS);
