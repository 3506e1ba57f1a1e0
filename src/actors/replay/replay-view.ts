// The state of a session after an entry: plain records for people, screens and tests, and the same state as named facts,
// so that the changes of an entry can be shown, stored and compared.
//
//   question sub_1:1   open          delivery c2   playing          subagent sub_1   running, step 2 …

import type {
  DeliveryKind,
  DeliveryPriority,
  EventSourceSnapshot,
  ServiceSnapshot,
} from '../../machines/index.ts';
import { clip } from '../../values/clip.ts';
import type { BudgetLimits } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { NO_LEAD_USAGE, type LeadUsage, type Usage } from '../contracts/usage.ts';
import type { ConnectionState, QuestionView, SubagentState } from '../contracts/session-views.ts';

/** One line of the conversation as the lead model reads it: text, a call, or a result. */
export interface ReplayItem {
  /** The id of the item. */
  readonly id: string;
  /** The kind of the item. */
  readonly role: 'user' | 'assistant' | 'system' | 'tool_call' | 'tool_result' | 'transfer';
  /** The text of the item. */
  readonly text: string;
  /** When the item started, in milliseconds since 1970. */
  readonly at: number;
  /** Whether the user interrupted it. */
  readonly interrupted: boolean;
}

/** A tool call of the lead agent that has not ended. */
export interface ReplayCall {
  /** The id of the call. */
  readonly callId: string;
  /** The name of the tool. */
  readonly name: string;
  /** The state, such as `executing`, `delegated` or `settled`. */
  readonly state: string;
  /** The batch whose results are reported together; null if there is none. */
  readonly batchId: string | null;
}

/** A pending delivery. */
export interface ReplayDelivery {
  /** The id of the delivery. */
  readonly deliveryId: string;
  /** The kind of content: a result, a question, a notice or progress. */
  readonly kind: DeliveryKind;
  /** The priority among the waiting deliveries; `urgent` interrupts. */
  readonly priority: DeliveryPriority;
  /** `resting`: a card on the screen, which is spoken only if the user asks. */
  readonly state: 'pending' | 'resting' | 'offered' | 'playing';
  /** The number of attempts to deliver it. */
  readonly attempts: number;
  /** The delivery's text. */
  readonly text: string;
}

/** A subagent in a `ReplayView`. */
export interface ReplaySubagent {
  /** The id of the subagent. */
  readonly id: string;
  /** The `name` of its configuration. */
  readonly name: string;
  /** The id of its parent; null if the lead agent started it. */
  readonly parentId: string | null;
  /** The call with which the lead agent or the parent spawned the subagent. */
  readonly callId: string | null;
  /** The description of its task. */
  readonly task: string;
  /** Its state at this entry. */
  readonly state: SubagentState;
  /** The current model step, counted from 1; 0 before the first. */
  readonly step: number;
  /** The number of messages in the model's conversation. */
  readonly messages: number;
  /** The number of settled tool calls. */
  readonly settledCalls: number;
  /** The usage of the subagent's own model calls, without its children's calls. */
  readonly usage: Usage;
  /** The outcome; null while the subagent is running. */
  readonly outcome: Outcome | null;
  /** The limits of the subagent's budget, including increases. Absent if it has no budget. */
  readonly budget?: BudgetLimits;
}

/** A session after one of its entries. An actor that has ended appears only in the view after the entry that ended it. */
export interface ReplayView {
  /** When the entry was accepted, in milliseconds since 1970. */
  readonly at: number;
  /** The connection to the model. */
  readonly connection: ConnectionState;
  /** Whether a client is attached. */
  readonly client: 'attached' | 'detached';
  /** Which side is speaking. */
  readonly floor: 'user' | 'model' | 'nobody';
  /** The current lead agent; null if there is no session (a program's subagents). */
  readonly agent: string | null;
  /** The question to which the user's input is routed; null if it is routed to the lead agent. */
  readonly owner: string | null;
  /** The questions and approvals of the subagents. */
  readonly questions: readonly QuestionView[];
  /** The tool calls of the lead agent. */
  readonly calls: readonly ReplayCall[];
  /** The deliveries that the user has not received yet. */
  readonly outbox: {
    /** The delivery in progress. */
    readonly current: ReplayDelivery | null;
    /** The waiting deliveries, in order. */
    readonly pending: readonly ReplayDelivery[];
    /** The number of outbox places that are reserved for results. */
    readonly reserved: number;
  };
  /** The items of the conversation, in order. */
  readonly transcript: readonly ReplayItem[];
  /** The usage of the lead agents' models. */
  readonly leadUsage: LeadUsage;
  /**
   * The calls of the lead agent's model that have failed since its last answer: their number, the code of the last
   * failure, and the time of the next call (null if no call follows). At most `attempts` calls are made in total. Null
   * if no call has failed.
   */
  readonly leadTrouble: {
    readonly failed: number;
    readonly code: string;
    readonly attempts: number | null;
    readonly retryAt: number | null;
  } | null;
  /** The limits of the session's budget, including increases. Absent if there are none, or they are unknown. */
  readonly budget?: BudgetLimits;
  /** All subagents, including ended ones. */
  readonly subagents: readonly ReplaySubagent[];
}

/** The view before the first entry. */
export const emptySession: Omit<ReplayView, 'at' | 'subagents'> = {
  connection: 'created',
  client: 'detached',
  floor: 'nobody',
  agent: null,
  owner: null,
  questions: [],
  calls: [],
  outbox: { current: null, pending: [], reserved: 0 },
  transcript: [],
  leadUsage: NO_LEAD_USAGE,
  leadTrouble: null,
};

/** The new value of each changed fact; null if the fact no longer exists. */
export type Changes = Readonly<Record<string, string | null>>;

/** The maximum length of a text in a fact, in characters. */
const MAX_WORDS = 200;

type Fact = readonly [name: string, value: string];

export class Facts {
  /** The known facts, grouped by unit, so that an entry is compared only with its own unit's facts. */
  readonly #known = new Map<string, Map<string, string>>();

  /** Replaces the facts of the unit `whose`. Returns the changes. */
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

  /** Drops facts about ended actors without reporting a change. */
  forget(whose: string, names: readonly string[]): void {
    for (const name of names) this.#known.get(whose)?.delete(name);
  }

  clear(): void {
    this.#known.clear();
  }
}

interface BatchFact {
  readonly batchId: string;
  readonly state: string;
}

export function sessionFacts(
  view: Omit<ReplayView, 'at' | 'subagents' | 'transcript'>,
  batches: readonly BatchFact[],
): readonly Fact[] {
  const { connection, client, floor, agent, owner, questions, calls, outbox, budget, leadTrouble } =
    view;
  const { current, pending, reserved } = outbox;
  return [
    ['connection', connection],
    ['client', client],
    ['floor', floor],
    ['agent', agent ?? 'nobody'],
    ['owner', owner ?? 'lead agent'],
    ['reserved', String(reserved)],
    ...(leadTrouble ? [['model', troubleIn(leadTrouble)] as const] : []),
    ...(budget ? [['budget', limitsIn(budget).join(', ')] as const] : []),
    ...questions.map(({ requestId, state, answer, lasts }): Fact => [
      `question ${requestId}`,
      answer === null ? state : `${state}${lasts ? ` for the ${lasts}` : ''}: ${words(answer)}`,
    ]),
    ...calls.map(({ callId, name, state }): Fact => [`call ${callId}`, `${name} ${state}`]),
    ...batches.map(({ batchId, state }): Fact => [`batch ${batchId}`, state]),
    ...[...(current ? [current] : []), ...pending].map(deliveryFact),
  ];
}

/** Returns a text such as `retried, 1 of 3 attempts failed (RATE_LIMITED)`. */
function troubleIn({ failed, code, attempts }: NonNullable<ReplayView['leadTrouble']>): string {
  return attempts === null
    ? `failed, attempt ${failed} (${code})`
    : `retried, ${failed} of ${attempts} attempts failed (${code})`;
}

const limitsIn = (budget: BudgetLimits): readonly string[] =>
  Object.entries(budget).map(([limit, total]) => `${limit} ${total}`);

export function subagentFact(subagent: ReplaySubagent): Fact {
  const { id, name, state, step, messages, settledCalls, outcome, budget = {} } = subagent;
  const limits = limitsIn(budget).map((limit) => `, ${limit}`);
  const work = `step ${step} (${messages} messages, ${settledCalls} calls${limits.join('')})`;
  const end = outcome && (outcome.error?.message ?? outcome.text);
  return [`subagent ${id}`, `${name} ${state}, ${work}${end ? `: ${words(end)}` : ''}`];
}

interface ServiceFact {
  readonly snapshot: Pick<ServiceSnapshot, 'value' | 'context'> | null;
  readonly sources: ReadonlyMap<string, Pick<EventSourceSnapshot, 'value' | 'context'>>;
}

export function serviceFacts(services: ReadonlyMap<string, ServiceFact>): readonly Fact[] {
  return [...services].flatMap(([name, { snapshot, sources }]): readonly Fact[] => {
    if (!snapshot) return [];
    const { value, context } = snapshot;
    const state = typeof value === 'string' ? value : value.working;
    const { length } = context.waiting;
    return [
      [`service ${name}`, length > 0 ? `${state}, ${length} in line` : state],
      ...[...sources].map(
        ([
          source,
          {
            value: of,
            context: { failures },
          },
        ]): Fact => [
          `source ${name}/${source}`,
          `${sourceState(of)}${failures > 0 ? `, failed ${failures}×` : ''}`,
        ],
      ),
    ];
  });
}

const sourceState = (value: EventSourceSnapshot['value']): string =>
  typeof value === 'string' ? value : 'live' in value ? value.live : 'releasing';

function deliveryFact({ deliveryId, kind, state, attempts, text }: ReplayDelivery): Fact {
  const times = attempts > 1 ? `, attempt ${attempts}` : '';
  return [`delivery ${deliveryId}`, `${kind} ${state}${times}: ${words(text)}`];
}

/** Cached, because most items of a conversation stay unchanged. */
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
