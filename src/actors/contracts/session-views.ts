// The public state of a session and its services: plain records for screens, and a union of events. They are derived
// from the states of the machines.

import type {
  ClientCallSnapshot,
  CallAnswer,
  DeliveryKind,
  DeliveryPriority,
  DropReason,
  EventDropReason,
  EventPriority,
  Failure,
  HearingGrade,
} from '../../machines/index.ts';
import { callKey, isRecord } from '../../values/json.ts';
import { argumentsText, visible } from '../../values/visible.ts';
import type { MemoryFact } from '../ports/memory-store.ts';
import type { Outcome } from './outcome.ts';
import {
  NO_LEAD_USAGE,
  NO_USAGE,
  usageOfBoth,
  type LeadUsage,
  type Usage,
  type UsageView,
} from './usage.ts';

/** One line of the conversation. */
export interface TranscriptItem {
  /** The line's id, which stays the same when the line is updated. */
  readonly id: string;
  /** The author of the line. */
  readonly role: 'user' | 'assistant';
  /** For a user's message: the identity that the app vouched for. @defaultValue none */
  readonly by?: string;
  /**
   * The text; empty if there is nothing to show, because the message was interrupted before any of it was heard, or
   * because the words shown so far are ignored (an echo, "mm-hm").
   */
  readonly text: string;
  /** False if more text may follow. */
  readonly final: boolean;
  /** When the item started, in milliseconds since 1970. */
  readonly at: number;
  /** Whether the user interrupted the message. If so, `text` is the part that was heard. */
  readonly interrupted?: boolean;
  /** Whether the item is a filler, which neither the model nor a subagent receives. */
  readonly filler?: boolean;
  /** In a text session: the delivery whose full text this item contains. `session.shown` acknowledges it. */
  readonly deliveryId?: string;
  /** The deliveries whose results this item reports together. */
  readonly deliveryIds?: readonly string[];
}

/** A subagent's state; the last three are final. */
export type SubagentState =
  | 'spawning'
  | 'ready'
  | 'running'
  | 'waiting_for_input'
  | 'waiting_for_children'
  | 'sleeping'
  | 'completed'
  | 'failed'
  | 'cancelled';

/**
 * Returns whether the subagent is waiting for the user or sleeping, so that nothing else should wait for it.
 */
export const isPaused = (state: SubagentState | undefined): boolean =>
  state === 'waiting_for_input' || state === 'sleeping';

/** A subagent, as it appears in views. */
export interface SubagentView {
  /** The id for `session.subagents.get`, `cancel` and `send`. */
  readonly id: string;
  /** The `name` of its configuration. */
  readonly name: string;
  /** The subagent that spawned it; null for a subagent of the lead agent. */
  readonly parentId: string | null;
  /** 1 for a subagent of the lead agent. */
  readonly depth: number;
  /** The lead agent's tool call that the subagent works for. */
  readonly callId: string | null;
  /** The tool that started it. */
  readonly toolName: string;
  /** A description of the task; for a call, the tool's description. */
  readonly task: string;
  /** The title of the work: the configuration's `title`, or `task`. */
  readonly title: string;
  /** Its state now. */
  readonly state: SubagentState;
  /** Whether the subagent has shown no activity for too long; any new activity clears this flag. */
  readonly hung: boolean;
  /** The current model step, counted from 1; 0 before the first step. */
  readonly step: number;
  /** The maximum number of model steps. */
  readonly maxSteps: number;
  /** When it was started, in milliseconds since 1970. */
  readonly startedAt: number;
  /** When it ended, in milliseconds since 1970; null if it has not ended. */
  readonly endedAt: number | null;
  /** The latest progress note. */
  readonly progress: string | null;
  /** The usage of the subagent's own model calls so far; `subtreeUsage` adds the usage of all subagents below it. */
  readonly usage: Usage;
  /** How it ended, with its output or error; null if it has not ended. */
  readonly outcome: Outcome | null;
}

/** An option of a question, shown as a button. */
export interface QuestionOption {
  /** The id with which an answer selects this option: `{ optionId }`. */
  readonly id: string;
  /** The text of the button. */
  readonly label: string;
  /** A second line, below the label. @defaultValue none */
  readonly description?: string;
}

/** The id of the approval button that permits a third-party agent to make this call and later ones. */
export const APPROVE_LASTING = 'approve_lasting';

/** A subagent's question or approval for the user, as it appears in views. */
export interface QuestionView {
  /** The id to pass to `session.answer`. */
  readonly requestId: string;
  /** The subagent that is asking. */
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly subagentName: string;
  /** A question expects text or an option; an approval expects a yes or no. */
  readonly kind: 'question' | 'approval';
  /** The text of the question. */
  readonly question: string;
  /** The options; empty if free text is expected. */
  readonly options: readonly QuestionOption[];
  /** The current state of the question. */
  readonly state:
    | 'queued'
    | 'presenting'
    | 'open'
    | 'parked'
    | 'answered'
    | 'expired'
    | 'withdrawn'
    | 'superseded';
  /** When it was asked, in milliseconds since 1970. */
  readonly askedAt: number;
  /** The deadline for the answer, in milliseconds since 1970; null while the time limit is paused. */
  readonly dueAt: number | null;
  /** After the user asked for time: when the question is presented again, in milliseconds since 1970. */
  readonly heldUntil?: number;
  /** How long the user may take to answer, in milliseconds. */
  readonly timeoutMs: number;
  /** The answer as text. */
  readonly answer: string | null;
  /** Why the question was withdrawn: "cancelled", for example, or because its tool was changed before a restart. */
  readonly reason?: string;
  /** The call that an approval covers: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /**
   * The arguments that the user approved in place of those of the `action`. While the question is open: the changed
   * call that is read back to the user, with the text of that `question`; `{ approved: true, input }` approves it.
   */
  readonly changed?: { readonly input: unknown; readonly question?: string };
  /**
   * For an approval: the names of the arguments that may be different in later calls if the approval lasts
   * (`lastingWords`); false if it cannot last. Absent if all arguments must be the same.
   */
  readonly mayDiffer?: false | readonly string[];
  /**
   * How long the approval covers later calls: until the subagent that asked has ended, or for the whole session. While
   * the question is open: the duration that is read back to the user. Absent once the approval has ended or was revoked
   * with `{ approved: false }`.
   */
  readonly lasts?: 'task' | 'session';
  /**
   * True for an approval that is too long to be spoken in full, so that its `question` is a shortened text. It can only
   * be approved with `approved`, after its `action` has been shown.
   */
  readonly byButton?: true;
  /** The identities that may answer; absent if any identity may. `serve` sends this list only to operators. */
  readonly answerableBy?: readonly string[];
  /** In a client: whether the user of this client may answer. @defaultValue true */
  readonly mayAnswer?: boolean;
  /** The identity that answered, if the app vouched for one. */
  readonly answeredBy?: string;
  /** When it was answered, in milliseconds since 1970. Absent unless it is answered. */
  readonly answeredAt?: number;
  /**
   * The latest presentation, if there was more than one: with it, a screen can show that the question is being asked
   * again.
   */
  readonly putAgain?: QuestionPut;
}

/** The states of a question that waits for its answer. */
const WAITING: ReadonlySet<QuestionView['state']> = new Set([
  'queued',
  'presenting',
  'open',
  'parked',
] as const);

export const isWaiting = (state: QuestionView['state']): boolean => WAITING.has(state);

export interface QuestionPut {
  /** The number of times that the question has been presented to the user. */
  readonly times: number;
  /** The text of the last presentation, such as the read-back of an approval. */
  readonly text: string;
}

/** Returns a question's full text, for a client that shows only text. */
export function wholeWords({
  question,
  action,
  byButton,
}: Pick<QuestionView, 'question' | 'action' | 'byButton'>): string {
  return byButton && action ? `${question}\n${argumentsText(action.input)}` : question;
}

/** Returns what a lasting approval permits, as the end of a sentence: "this again without asking, …". */
export function lastingWords(
  { mayDiffer = [] }: Pick<QuestionView, 'mayDiffer'>,
  lasts: 'task' | 'session',
): string {
  const names = new Intl.ListFormat('en', { type: 'disjunction' }).format(mayDiffer || []);
  const which = names === '' ? 'exactly this again' : `this again, whatever the ${visible(names)},`;
  const until = lasts === 'task' ? 'this task is done' : 'this conversation ends';
  return `${which} without asking, until ${until}`;
}

/** Returns an approval's text without the arguments of its call. Any other question's text is returned unchanged. */
export function withoutArguments({
  question,
  action,
}: {
  readonly question: string;
  readonly action?: QuestionView['action'];
}): string {
  return action ? question.replace(` (${argumentsText(action.input)})`, '') : question;
}

/**
 * Returns whether an approval would cover a call if the approval lasted (APPROVAL-6). `free`: the arguments that the
 * tool's author currently leaves free.
 */
export function coversCall(
  { action, mayDiffer = [] }: Pick<QuestionView, 'action' | 'mayDiffer'>,
  { toolName, input }: { readonly toolName: string; readonly input: unknown },
  free: QuestionView['mayDiffer'] = mayDiffer,
): boolean {
  if (!action || mayDiffer === false || free === false) return false;
  const fixed = (given: unknown): unknown =>
    isRecord(given)
      ? Object.fromEntries(
          Object.entries(given).filter(
            ([name]) => !mayDiffer.includes(name) || !free.includes(name),
          ),
        )
      : given;
  return callKey(action.toolName, fixed(action.input)) === callKey(toolName, fixed(input));
}

/** WHO-1 */
export function mayAnswer(
  { answerableBy }: { readonly answerableBy?: readonly string[] | undefined },
  by: string | undefined,
): boolean {
  return answerableBy === undefined || (by !== undefined && answerableBy.includes(by));
}

/**
 * Returns a question as a given user may see it. It states whether this user may answer, but not who else may.
 */
export function questionFor(question: QuestionView, by: string): QuestionView {
  if (!question.answerableBy) return question;
  const { answerableBy: _, ...shown } = question;
  return { ...shown, mayAnswer: mayAnswer(question, by) };
}

/** A result or notice for the user, as it appears in views. */
export interface DeliveryView {
  /** The id for `session.shown` and `session.dismiss`. */
  readonly deliveryId: string;
  /** The kind of content: a result, a question, a notice or progress. */
  readonly kind: DeliveryKind;
  /** The priority among the waiting deliveries; `urgent` interrupts speech. */
  readonly priority: DeliveryPriority;
  /** The heading of the card. */
  readonly label: string;
  /** The text of the result or notice. */
  readonly text: string;
  /** The subagent that the result comes from; null for a notice from the app. */
  readonly subagentId: string | null;
  /** The current state of the delivery; the last three states are final. */
  readonly state: 'pending' | 'offered' | 'playing' | 'delivered' | 'dismissed' | 'dropped';
  /** How the user received the delivery; null if they have not received it. */
  readonly grade: HearingGrade | null;
  /** Why the delivery will not be spoken; null if there is no reason. */
  readonly dropped: DropReason | null;
  /** The number of attempts to deliver it so far. */
  readonly attempts: number;
  /** The identity of the user who saw or dismissed the delivery, if the app named one. */
  readonly by?: string;
  /** Whether the delivery could not be spoken and must be shown. */
  readonly card: boolean;
  /** When it was posted, in milliseconds since 1970. */
  readonly at: number;
  /** The steps through which `reach` brings the delivery to an absent user. Absent if there are none. */
  readonly reach?: {
    /** `spent`: no step is left. `over`: the user heard, read or dismissed the delivery, or it is no longer needed. */
    readonly state: 'waiting' | 'sending' | 'spent' | 'over';
    /** The channel of the current step. */
    readonly by: string;
    /** When the current step is due, in milliseconds since 1970; null if it is being sent, or if there is none. */
    readonly dueAt: number | null;
    /** The receipts from the channels, oldest first. `at`: when the receipt arrived, in milliseconds since 1970. */
    readonly sent: readonly {
      readonly step: number;
      readonly by: string;
      readonly receipt: 'failed' | 'sent' | 'delivered' | 'read';
      readonly at: number;
      readonly error?: string;
    }[];
  };
}

/** A schedule of the session. */
export interface ScheduleView {
  /** Identifies the schedule within its session. */
  readonly key: string;
  /** When the schedule is next due, in milliseconds since 1970; null if it has ended. */
  readonly dueAt: number | null;
  /** The interval in milliseconds, at least 1000; the schedule is first due after one interval. */
  readonly everyMs?: number;
  /** The times, as a cron pattern in the time zone: `0 9 * * MON-FRI`. */
  readonly cron?: string;
  /** @defaultValue the session's `timeZone` */
  readonly timeZone: string;
  /**
   * How the session handles due times that passed while it was not loaded in any process. `once`: the schedule fires
   * once for all missed times; `all`: it fires for each missed time, unless there are more than 100; `skip`: it does
   * not fire for a time that was missed by more than a minute. @defaultValue 'once'
   */
  readonly missed: 'once' | 'all' | 'skip';
  /** The message to the user; absent if a task is started. */
  readonly say?: string;
  /** The task that is started; `subagent` is a key of `subagentConfigs`. Its result is reported like any other. */
  readonly task?: { readonly subagent: string; readonly task: string };
  /** `starting`: the task is being started. `done`: the schedule has no further due times. */
  readonly state: 'waiting' | 'starting' | 'done' | 'cancelled';
}

/** A rate limit of the voice model's provider, as last reported. */
export interface LimitView {
  /** A name such as `requests` or `tokens`. */
  readonly name: string;
  /** The full allowance for one period. */
  readonly limit: number;
  /** The part of the allowance that is left. */
  readonly remaining: number;
  /** The time until the allowance is full again, in milliseconds from the report. */
  readonly resetInMs: number;
}

/** The state of a session's connection to its model. */
export type ConnectionState =
  | 'created'
  | 'connecting'
  | 'active'
  | 'reconnecting'
  /**
   * The voice model is unreachable. Subagents continue; results and questions are held until the session reconnects.
   * The session reconnects at `outage.retryAt`, or earlier when a client attaches, the user types, or the app calls
   * `reconnect()`.
   */
  | 'resting'
  /**
   * Like `resting`, but the provider has refused the connection, for example because of a wrong key. The session does
   * not retry on its own.
   */
  | 'refused'
  | 'transferring'
  | 'closing'
  | 'closed'
  /** The session no longer runs in this process. To resume it from its journal, start a session with the same id. */
  | 'suspended';

/** Why there is no connection to the voice model. */
export interface ConnectionOutage {
  /** `TRANSPORT_LOST` or `CONNECT_TIMEOUT`. */
  readonly code: string;
  /** The provider's message, if any. */
  readonly message: string;
  /** When the session reconnects, in milliseconds since 1970; null if it reconnects now or only on request. */
  readonly retryAt: number | null;
}

/** A session's events, in order. Facts are in the past tense, and commands are in the imperative. */
export type SessionEvent =
  | {
      readonly type: 'connection.changed';
      readonly state: ConnectionState;
      /** The error of the last failure, until a connection succeeds. @defaultValue none */
      readonly outage?: ConnectionOutage;
    }
  | { readonly type: 'session.ended'; readonly error: { code: string; message: string } | null }
  | { readonly type: 'floor.changed'; readonly floor: 'user' | 'model' | 'nobody' }
  | { readonly type: 'transcript.changed'; readonly item: TranscriptItem }
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      readonly input: unknown;
    }
  | {
      readonly type: 'tool.answered';
      readonly callId: string;
      readonly name: string;
      readonly output: unknown;
      /** How the call was answered; `pending` means that the work continues in the background. */
      readonly status: CallAnswer;
    }
  /** After a crash: a call that was running is not repeated, so the app must find out how it ended. */
  | ({ readonly type: 'tool.in_doubt' } & DoubtfulCall)
  /**
   * The session no longer runs in this process; to resume it from its journal, start a session with the same id.
   * `error`: set if the suspension was not requested. The journal then refuses this process, because another process
   * has the session.
   */
  | { readonly type: 'session.suspended'; readonly error: Failure | null }
  /** The session was resumed from its journal entries. */
  | ({ readonly type: 'session.recovered' } & RecoveryReport)
  | { readonly type: 'subagent.changed'; readonly subagent: SubagentView }
  | { readonly type: 'question.changed'; readonly question: QuestionView }
  /** A call that one of the user's clients executes: a tool with `runsAt: 'client'`. */
  | { readonly type: 'client_call.changed'; readonly call: ClientCallView }
  | { readonly type: 'delivery.changed'; readonly delivery: DeliveryView }
  /** A schedule was set, advanced to its next time, or ended. */
  | { readonly type: 'schedule.changed'; readonly schedule: ScheduleView }
  /** An identity has arrived on a device or left it, or the `hears` of an entry has changed. */
  | { readonly type: 'presence.changed'; readonly present: SessionState['present'] }
  | { readonly type: 'service.changed'; readonly service: ServiceView }
  /** A service event that no agent finished examining. */
  | { readonly type: 'service.dropped'; readonly event: DroppedEvent }
  /**
   * An agent has taken the lead; `from` is the agent that led before. If the transfer failed, both are the same agent.
   */
  | { readonly type: 'agent.entered'; readonly agentName: string; readonly from: string | null }
  | { readonly type: 'agent.exited'; readonly agentName: string; readonly to: string }
  | {
      readonly type: 'transfer.completed';
      readonly from: string;
      readonly to: string;
      /** The call of `transfer_to_agent`, if there was one. */
      readonly callId: string | null;
    }
  /** The previous agent continues to lead. */
  | {
      readonly type: 'transfer.failed';
      readonly from: string;
      readonly to: string;
      readonly callId: string | null;
      readonly code: string;
      readonly message: string;
    }
  /** The model has finished a turn. `turn` counts from 1. */
  | { readonly type: 'turn.ended'; readonly turn: number; readonly agentName: string }
  /** A call by the lead agent was delegated to a subagent. */
  | {
      readonly type: 'subagent.delegated';
      readonly callId: string;
      readonly agentName: string;
      readonly subagentId: string;
      readonly subagentName: string;
      readonly lifetime: 'ephemeral' | 'session';
    }
  /**
   * A subagent reported progress. `percent` is from 0 to 100, or null if the report does not contain it; `at` is in
   * milliseconds since 1970.
   */
  | {
      readonly type: 'subagent.progressed';
      readonly subagentId: string;
      readonly text: string;
      readonly percent: number | null;
      readonly at: number;
    }
  /** A subagent has ended; emitted once per subagent. */
  | {
      readonly type: 'subagent.ended';
      readonly subagent: SubagentView;
      readonly outcome: Outcome;
      /** The batch whose results are reported together; null if this result is reported alone or not at all. */
      readonly batchId: string | null;
      /** The user's words that caused the subagent to be started; null if the user did not request the work. */
      readonly request: string | null;
      /** Milliseconds since 1970. */
      readonly at: number;
    }
  /** The beginning of the conversation was summarised; the summary replaces `items` items. */
  | { readonly type: 'conversation.summarised'; readonly items: number; readonly summary: string }
  /** Facts from the conversation were remembered. */
  | { readonly type: 'memory.distilled'; readonly facts: readonly MemoryFact[] }
  /** An agent or a tool sent data to the clients. */
  | { readonly type: 'client.json'; readonly data: unknown }
  /** The client must discard the audio that it has not played yet, and report how much it has played. */
  | { readonly type: 'playout.clear' }
  | { readonly type: 'speech.interrupted'; readonly itemId: string; readonly playedMs: number }
  /**
   * The user's utterance was not an interruption: speech continues after `playedMs` of `itemId`. The rest of the speech
   * arrives as a new item.
   */
  | { readonly type: 'speech.resumed'; readonly itemId: string; readonly playedMs: number }
  /**
   * The user has been silent for `silentMs` since any party last spoke; `user.back` follows when the user is heard
   * again.
   */
  | { readonly type: 'user.away'; readonly silentMs: number }
  | { readonly type: 'user.back' }
  /** The user made a listening sound ("mm-hm"), which receives no answer. */
  | { readonly type: 'backchannel.heard'; readonly utteranceId: string; readonly text: string }
  /**
   * Emitted once per utterance, when its recipient is decided: the lead agent, the question that has the floor, or no
   * one, with the reason.
   */
  | {
      readonly type: 'utterance.routed';
      readonly utteranceId: string;
      readonly to: 'lead' | 'question' | 'nobody';
      readonly reason: UnaddressedReason | null;
    }
  /**
   * The notice that the user receives in place of an answer. Show it, so that every utterance gets a visible reaction.
   * `utteranceId` is the user's last utterance if the lead agent has no reply to it; null if the user has not spoken.
   */
  | {
      readonly type: 'utterance.unanswered';
      readonly utteranceId: string | null;
      readonly reason: UnansweredReason;
    }
  /**
   * The usage has changed. `used`: the usage of the lead agent's model since its last report. Absent if a subagent's
   * usage has changed.
   */
  | { readonly type: 'usage.changed'; readonly usage: UsageView; readonly used?: LeadUsage }
  | { readonly type: 'limits.changed'; readonly limits: readonly LimitView[] }
  /** An error after which the session continues. */
  | {
      readonly type: 'error.reported';
      readonly code: string;
      readonly message: string;
      /** With `UNFOLDABLE_ENTRY`: the journal entry that was quarantined. */
      readonly entry?: QuarantinedEntry;
    };

/**
 * Why an utterance has no recipient: it contains no words; it is a backchannel ("mm-hm"); it is the lead agent's own
 * speech, picked up by the microphone; it could not be transcribed; or it comes from a distant voice that keeps
 * talking.
 */
export type UnaddressedReason =
  | 'no_words'
  | 'backchannel'
  | 'echo'
  | 'not_transcribed'
  | 'background';

/**
 * Why an utterance has not been answered, or not yet. `words_late`: its transcript did not arrive in time; the
 * utterance is answered when the transcript arrives. `no_reply`: the lead agent's model failed or returned no text in
 * every attempt.
 */
export type UnansweredReason = 'words_late' | 'no_reply';

/** A tool call whose outcome is unknown. */
export interface DoubtfulCall {
  /** The subagent that made the call; null for a call by the lead agent. */
  readonly subagentId: string | null;
  /** The subagent that made the call; null for the lead agent. */
  readonly subagentName: string | null;
  /** The id of the call. */
  readonly callId: string;
  /** The name of the tool. */
  readonly toolName: string;
  /** The arguments of the call. */
  readonly input: unknown;
  /** The call's idempotency key, with which the app can ask the external system whether the call took effect. */
  readonly idempotencyKey: string;
}

/** The report on a session that was recovered after a crash. */
export interface RecoveryReport {
  /** The number of entries from which the session was restored. */
  readonly entries: number;
  /** The ids of the subagents that continue. */
  readonly resumed: readonly string[];
  /** The subagents that cannot continue; each of them has ended as `lost`, with the reason. */
  readonly lost: readonly { readonly subagentId: string; readonly reason: string }[];
  /** Entries that could not be folded and were quarantined during this recovery. */
  readonly setAside: readonly QuarantinedEntry[];
  /** The time since the last entry, in milliseconds. */
  readonly downMs: number;
}

/** A call that one of the user's clients executes. */
export interface ClientCallView {
  /** The id of the call; it is the same for every client, even after a restart. */
  readonly id: string;
  /** The name of the tool. */
  readonly name: string;
  /** The arguments of the call. */
  readonly input: unknown;
  /** The user whose clients may execute the call; null if any session user's clients may execute it. */
  readonly user: string | null;
  /** The subagent that made the call; null if the lead agent made it. */
  readonly subagentId: string | null;
  /** `left`: the client has lost its connection, but may return. */
  readonly state: ClientCallSnapshot['value'];
  /** The client that is executing the call, or executed it last; null if there is none. */
  readonly by: string | null;
  /** The deadline of the call, in milliseconds since 1970. */
  readonly dueAt: number;
}

/**
 * The maximum size of a client's result, in bytes of JSON; a result of this size still fits into one client message.
 */
export const MAX_RESULT_BYTES = 32_768;

/** The state in `session.store`. */
export interface SessionState {
  /** The connection to the model. */
  readonly connection: ConnectionState;
  /** Why there is no connection to the voice model; null if the session is connected or has not been connected yet. */
  readonly outage: ConnectionOutage | null;
  /** The party that is currently speaking. */
  readonly floor: 'user' | 'model' | 'nobody';
  /** The lead agent's name; null before the session is connected. */
  readonly agent: string | null;
  /** The lines of the conversation, in order. */
  readonly transcript: readonly TranscriptItem[];
  /** The subagents of the session. */
  readonly subagents: readonly SubagentView[];
  /** The subagents' questions and approvals. */
  readonly questions: readonly QuestionView[];
  /** The results and notices for the user. */
  readonly deliveries: readonly DeliveryView[];
  /** The schedules of the session that have not ended. */
  readonly schedules: readonly ScheduleView[];
  /**
   * The identities whose clients are attached or listen in this process, in the order of their arrival. All clients of
   * an identity on the same device are one entry. `since`: when the first of these clients arrived, in milliseconds
   * since 1970. `hears`: whether one of them hears for the session's user. `serve` sends this list only if the app
   * shares `presence.changed`; otherwise, the list is empty.
   */
  readonly present: readonly {
    readonly by: string;
    readonly device?: string;
    readonly since: number;
    readonly hears: boolean;
  }[];
  /** The session's usage: by the lead agent, by subagents, and in total. */
  readonly usage: UsageView;
  /** The provider's rate limits; empty until the provider reports them. */
  readonly limits: readonly LimitView[];
}

/** The state of a session before its first event. */
export const emptySessionState: SessionState = Object.freeze({
  connection: 'created',
  outage: null,
  floor: 'nobody',
  agent: null,
  transcript: [],
  subagents: [],
  questions: [],
  deliveries: [],
  schedules: [],
  present: [],
  usage: usageOfBoth(NO_LEAD_USAGE, NO_USAGE),
  limits: [],
});

/** The maximum number of ended items of each kind in the state. */
export const KEPT_VIEWS = {
  transcript: 500,
  subagents: 100,
  questions: 50,
  deliveries: 100,
} as const;

/** Whether an answer was accepted. */
export type AnswerReceipt =
  /** `by`: the identity under which the answer is recorded, if any. */
  | { readonly accepted: true; readonly by?: string }
  | {
      readonly accepted: false;
      readonly reason:
        /** Only other identities may answer; the question stays open. */
        | 'not_allowed'
        | 'unknown'
        | 'queued'
        | 'not_presented'
        /** The user asked to change the call, so an approval must contain the changed arguments as `input`. */
        | 'changed'
        | 'over'
        | 'invalid_option'
        | 'unclear';
    };

/** The position of a quarantined entry, and why it was quarantined. */
export interface QuarantinedEntry {
  /** The scope of the entry. */
  readonly scope: string;
  /** The unit (session or subagent) of the entry. */
  readonly unit: string;
  /** The number of the entry within its unit. */
  readonly seq: number;
  /** The type of the entry's event. */
  readonly event: string;
  /** The cause, as text. */
  readonly reason: string;
}

/** The number of events by result, since this process loaded the session. */
export interface ServiceCounts {
  /** Events that were queued for the agent. */
  readonly accepted: number;
  /** Events that the agent reported to the user. */
  readonly told: number;
  /** Events that the agent did not report to the user. */
  readonly silent: number;
  /** Events that could not be examined. */
  readonly failed: number;
  /** Events that were dropped before the agent received them; `service.dropped` contains the reason. */
  readonly dropped: number;
  /** Events that `shouldInvoke` rejected. */
  readonly ignored: number;
  /** Inputs that did not have the form of an `ExternalEvent`, or were too large. */
  readonly invalid: number;
}

/** The state of an event source, as it appears in views. */
export interface EventSourceView {
  /** The name of the source. */
  readonly name: string;
  /** The current state of the source. */
  readonly state: 'created' | 'starting' | 'running' | 'releasing' | 'backing_off' | 'stopped';
  /** The number of consecutive failures. */
  readonly failures: number;
  /** The error of the last failure. */
  readonly error: string | null;
}

/** The state of a service, as it appears in views. */
export interface ServiceView {
  /** The name of the agent. */
  readonly name: string;
  /** The current state of the service. */
  readonly state: 'created' | 'idle' | 'invoking' | 'waiting' | 'stopped';
  /** The number of waiting events. */
  readonly waiting: number;
  /** The number of its events so far, by result. */
  readonly counts: ServiceCounts;
  /** The event sources of the service. */
  readonly sources: readonly EventSourceView[];
}

/** An event that no agent finished examining. */
export interface DroppedEvent {
  readonly service: string;
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  readonly priority: EventPriority;
  /** `cancelled`: the agent was cancelled while it was examining the event. */
  readonly reason: EventDropReason | 'cancelled';
}

/** Returns the schedules with this one added or updated; schedules that have ended are omitted. */
export function withSchedule(
  schedules: SessionState['schedules'],
  changed: ScheduleView,
): SessionState['schedules'] {
  const index = schedules.findIndex(({ key }) => key === changed.key);
  const isOpen = changed.state === 'waiting' || changed.state === 'starting';
  if (isOpen) return index < 0 ? [...schedules, changed] : schedules.with(index, changed);
  return schedules.filter(({ key }) => key !== changed.key);
}
