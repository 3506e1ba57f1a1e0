// The protocol of a session's unit: the events that each address accepts, and the effects that are passed out of the
// unit. A call to `receive('outbox', …)` with an event for another address does not compile.
//
// Owns:     the names of the addresses, and the content of their events.
// Does not: deliver events (session-unit.ts), or validate journal entries (unit/session-entries.ts).

import type {
  Carrying,
  DeliveryMode,
  Failure,
  MachineEffects,
  MachineProtocol,
  MessageIn,
  Stamped,
  WiredEffect,
} from '../../machines/index.ts';
import type { Outcome } from './outcome.ts';
import type {
  Answer,
  ModelReading,
  Reading,
  ReturnedResult,
  ReturnedWords,
  SessionInputEvent,
  Utterance,
  WordsToQuestion,
} from './records.ts';
import type { AnswerReceipt } from './session-views.ts';
import type { LeadUsage } from './usage.ts';

/** Event fields that are stored in the session's state and that the machines ignore. */
interface KeptFields {
  /**
   * When the last entry before the recovery was written. Clients that were connected then count as gone since that
   * time.
   */
  readonly 'session.recovered': { readonly lastAt?: number };
  readonly 'transfer.started': { readonly enters?: true };
  /** `by`: the identity that the app vouched for. */
  readonly 'question.shown': { readonly by?: string };
  readonly 'question.answer': { readonly answer: Answer | null };
  readonly 'question.settle': { readonly answer: Answer | null };
  /**
   * `reading`: how the user's words are handled. The session adds it, and corrects the model's interpretation if
   * necessary.
   */
  readonly 'reading.ended': { readonly read: ModelReading; readonly reading?: Reading };
  /** The language in which the question is repeated in its short form. @defaultValue 'en' */
  readonly 'question.nudge': { readonly language?: string };
  readonly 'call.validated': {
    readonly input: unknown;
    /** The message with which the model is immediately informed that the work continues. */
    readonly message?: string | undefined;
    readonly delivery?: DeliveryMode;
  };
  readonly 'call.invalid': { readonly error: Failure };
  /** The output for the model, and the results of subagents that it may contain. */
  readonly 'call.executed': {
    readonly output: unknown;
    readonly returned?: readonly ReturnedResult[];
  };
  readonly 'subagent.accepted': { readonly subagentId: string };
  readonly 'subagent.rejected': {
    readonly error: Failure;
    /** The output for the model. @defaultValue the error's message */
    readonly output?: unknown;
    /** Whether an outbox place was reserved for the result and must now be freed. */
    readonly reserved?: true;
  };
  readonly 'subagent.ended': { readonly outcome: Outcome };
  /** The result, or the message of the error. */
  readonly 'client.answered': { readonly output: unknown };
  /** `late`: when the schedule was due, as text; absent if it is on time. */
  readonly 'deadline.schedule': { readonly late?: string };
}

type Kept<E> = Carrying<E, KeptFields>;

type Input<Type extends SessionInputEvent['type']> = Extract<
  SessionInputEvent,
  { readonly type: Type }
>;

type Named<E, Type extends string> = Extract<E, { readonly type: Type }>;

/** The addresses of a session's unit, and the events that each one accepts. */
export interface SessionProtocol {
  readonly session: Kept<MachineProtocol['session']>;
  readonly interaction: MachineProtocol['interaction'];
  readonly outbox: MachineProtocol['outbox'];
  /** A question, call or batch that already exists. */
  readonly [question: `question:${string}`]: Kept<MachineProtocol[`question:${string}`]>;
  readonly [call: `call:${string}`]: Kept<MachineProtocol[`call:${string}`]>;
  readonly [batch: `batch:${string}`]: MachineProtocol[`batch:${string}`];
  readonly [client: `client:${string}`]: Kept<MachineProtocol[`client:${string}`]>;
  readonly [schedule: `schedule:${string}`]: Kept<MachineProtocol[`schedule:${string}`]>;
  /** The steps through which a delivery reaches an absent user. */
  readonly [reach: `reach:${string}`]: MachineProtocol[`reach:${string}`];
  /** The batch that is waiting for the result with this id, if any. */
  readonly [member: `member:${string}`]: Named<
    MachineProtocol[`batch:${string}`],
    'batch.asking' | 'batch.resumed' | 'batch.left'
  >;
  /** The outbox, or the batch that this delivery is part of. */
  readonly [delivery: `delivery:${string}`]: Named<
    MachineProtocol['outbox'],
    'delivery.shown' | 'delivery.dismissed' | 'delivery.read' | 'delivery.unread'
  >;
  /** The outbox place that is reserved for the message about this service event. */
  readonly [place: `place:${string}`]: { readonly type: 'place.freed' };
  readonly conversation: Input<
    | 'conversation.noted'
    | 'conversation.summarised'
    | 'assistant.said'
    | 'assistant.cut'
    | 'call.answered'
  >;
  readonly calls: Input<'tool.called'>;
  readonly clients: Input<'client.called'>;
  readonly schedules: Input<'schedule.set'>;
  readonly ways: Input<'reach.planned'>;
  readonly questions: Input<'question.asked'>;
  readonly results: Input<'result.expected' | 'result.told'>;
  readonly services: Input<'invocation.wanted'>;
  readonly notices: Input<'notice.posted'>;
  readonly transfers: Input<'transfer.requested'>;
  readonly agents: Input<'agent.entered'>;
  readonly directives: Input<'directive.set'>;
  readonly user: Input<'user.said'>;
  readonly usage: Input<'usage.reported'>;
  readonly lead: Input<'model.retried' | 'model.failed'>;
  readonly budget: Input<'budget.raised'>;
  readonly answers: Input<'answer.given' | 'question.settled'>;
  /** The first entry; see `unit/session-entries.ts`. */
  readonly opening: { readonly type: 'session.opened'; readonly inputs: unknown };
  /** Snapshots of the whole session; see `lifecycle/session-journal.ts`. */
  readonly snapshots: { readonly type: 'session.snapshot' };
}

export type Address = keyof SessionProtocol;
export type EventFor<A extends Address> = SessionProtocol[A];

/** An event for a session's unit, and its address. */
export type SessionMessage = MessageIn<SessionProtocol>;

/** Adds an event to the mailbox of a session's unit. */
export interface Receiver {
  receive<A extends Address>(to: A, event: EventFor<A>): void;
}

type KindOf<A extends Address> = A extends `${infer Before}:${string}` ? Before : A;

/**
 * An accepted event of a session's unit, with its time; the address is split into its kind and the id after the colon.
 */
export type Received = {
  readonly [A in Address]: {
    readonly kind: KindOf<A>;
    readonly id: string;
    readonly event: EventFor<A> & Stamped;
  };
}[Address];

type Kind = Received['kind'];

/**
 * The kinds of addresses that contain an id, each with the prefix of the event types that it accepts; empty if its
 * machine decides.
 */
const WITH_ID: ReadonlyMap<string, string> = new Map<Kind, string>([
  ['question', ''],
  ['call', ''],
  ['batch', ''],
  ['client', ''],
  ['schedule', ''],
  ['reach', ''],
  ['member', 'batch.'],
  ['delivery', 'delivery.'],
  ['place', 'place.'],
]);

/** The addresses of single machines, which decide on their own which events they accept. */
const MACHINES: ReadonlySet<string> = new Set<Kind>(['session', 'interaction', 'outbox']);

type Words = Exclude<Address, keyof MachineProtocol | `${string}:${string}`>;

type TakerOf<Type> = {
  readonly [A in Words]: Type extends SessionProtocol[A]['type'] ? A : never;
}[Words];

/**
 * The address of each event type that no machine accepts. If an event type is missing or has the wrong address, this
 * does not compile.
 */
const ADDRESSES: ReadonlyMap<string, Words> = new Map(
  Object.entries({
    'conversation.noted': 'conversation',
    'conversation.summarised': 'conversation',
    'assistant.said': 'conversation',
    'assistant.cut': 'conversation',
    'call.answered': 'conversation',
    'tool.called': 'calls',
    'client.called': 'clients',
    'schedule.set': 'schedules',
    'reach.planned': 'ways',
    'question.asked': 'questions',
    'result.expected': 'results',
    'result.told': 'results',
    'invocation.wanted': 'services',
    'notice.posted': 'notices',
    'transfer.requested': 'transfers',
    'agent.entered': 'agents',
    'directive.set': 'directives',
    'user.said': 'user',
    'usage.reported': 'usage',
    'model.retried': 'lead',
    'model.failed': 'lead',
    'budget.raised': 'budget',
    'answer.given': 'answers',
    'question.settled': 'answers',
    'session.opened': 'opening',
    'session.snapshot': 'snapshots',
  } satisfies { readonly [Type in SessionProtocol[Words]['type']]: TakerOf<Type> }),
);

/**
 * Parses an address: `question:abc:1` is the question with the id `abc:1`. Returns null if a session has no such
 * address, or if the address does not accept this event. Does not check the event's fields: `receive` is typed, and
 * other components check the shapes.
 */
export function received(
  actor: string,
  event: { readonly type: string } & Stamped,
): Received | null {
  const colon = actor.indexOf(':');
  const kind = colon < 0 ? actor : actor.slice(0, colon);
  const first = WITH_ID.get(kind);
  const isKnown =
    colon < 0
      ? MACHINES.has(kind) || ADDRESSES.get(event.type) === kind
      : first !== undefined && event.type.startsWith(first);
  if (!isKnown) return null;
  return { kind, id: colon < 0 ? '' : actor.slice(colon + 1), event } as Received;
}

/** The unit's effects, in addition to those of its machines. */
export interface UnitEffects {
  /** The view of the session, a question, a client's call or a schedule may have to be updated. */
  readonly 'session.changed': undefined;
  readonly 'question.changed': undefined;
  readonly 'client.changed': undefined;
  readonly 'schedule.changed': undefined;
  readonly 'reach.changed': undefined;
  /** The delivery is waiting for the user, and no step through the `reach` channels has been planned yet. */
  readonly 'ways.wanted': { readonly deliveryId: string };
  /** Whether the outbox has a place for the message about a service event. */
  readonly 'services.placed': { readonly eventId: string; readonly granted: boolean };
  readonly 'notices.posted': { readonly deliveryId: string };
  /** A snapshot with this number has been written to the journal. */
  readonly 'snapshots.written': { readonly seq: number };
  /** The usage of the lead agent's model. */
  readonly 'usage.reported': { readonly used: LeadUsage };
  /** The lead agent must answer these words from the user. `about`: the question that had the floor. */
  readonly 'user.heardUser': { readonly utterance: Utterance; readonly about?: string };
  /** The words were handled as an answer to a subagent's question. */
  readonly 'user.overheard': {
    readonly utterance: Utterance;
    readonly subagentName: string;
    readonly were: WordsToQuestion;
  };
  /** The subagent that asked has returned the user's words, which are then passed to the lead agent. */
  readonly 'questions.returned': ReturnedWords & { readonly subagentName: string };
  /** The lead agent's call that settles a question was accepted or refused. */
  readonly 'answers.settled': Omit<EventFor<'answers'> & { type: 'question.settled' }, 'type'>;
  readonly 'answers.receipt': { readonly ticket: string; readonly receipt: AnswerReceipt };
  readonly 'transfers.refused': { readonly transferId: string };
  readonly 'directives.changed': undefined;
  readonly 'conversation.summarised': {
    readonly summary: string;
    readonly covers: readonly string[];
  };
}

/** The effects of a session's unit, with their parameters. */
export type EffectParams = MachineEffects & UnitEffects;
export type EffectName = keyof EffectParams;

/** The effects that are passed out of the unit. */
type Released =
  | Exclude<EffectName, WiredEffect>
  | 'outbox.begun'
  | 'outbox.delivered'
  | 'outbox.dismissed'
  | 'outbox.dropped'
  | 'question.reply'
  | 'call.deliver'
  | 'call.answer'
  | 'call.known'
  | 'call.cancelSubagent'
  | 'batch.delivered'
  | 'batch.dismissed';

/** Handlers for these effects, which run after the commit. */
export type HandlersOf<Name extends EffectName> = {
  readonly [N in Name]: (params: EffectParams[N]) => void;
};

/** One handler for each effect that is passed out of the unit. */
export type EffectHandlers = HandlersOf<Released>;
