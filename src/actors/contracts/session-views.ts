// The public state of a session and its services: plain records for screens, and one union of events. They are
// projections; the machines own the underlying actors.

import type {
  CallAnswer,
  DeliveryKind,
  DeliveryPriority,
  DropReason,
  EventDropReason,
  EventPriority,
  Failure,
  HearingGrade,
} from '../../machines/index.ts';
import { argumentsText } from '../../values/visible.ts';
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
  readonly id: string;
  readonly role: 'user' | 'assistant';
  /** Of words of a user: the identity that the app vouched for. @defaultValue none */
  readonly by?: string;
  /**
   * Empty if there is nothing to show: it was interrupted before any of it was heard, or the words that were shown so
   * far were for nobody (an echo, "mm-hm").
   */
  readonly text: string;
  /** False while more text may follow. */
  readonly final: boolean;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** The user interrupted it: only `text` was heard. */
  readonly interrupted?: boolean;
  /** A filler; neither the model nor a subagent knows of it. */
  readonly filler?: boolean;
  /** In a text session: the delivery that this item tells in full. `session.shown` acknowledges it. */
  readonly deliveryId?: string;
  /** The results that this item tells together. */
  readonly deliveryIds?: readonly string[];
}

/** The state of a subagent; the last three are its ends. */
export type SubagentState =
  | 'spawning'
  | 'ready'
  | 'running'
  | 'waiting_for_input'
  | 'waiting_for_children'
  | 'completed'
  | 'failed'
  | 'cancelled';

/** A subagent, as views show it. */
export interface SubagentView {
  readonly id: string;
  /** The `name` of its configuration. */
  readonly name: string;
  /** The subagent that spawned it; null for a subagent of the lead agent. */
  readonly parentId: string | null;
  /** 1 for a subagent of the lead agent. */
  readonly depth: number;
  /** The lead agent's tool call that it works for. */
  readonly callId: string | null;
  readonly toolName: string;
  /** The description of its task: of a call, the description of the tool. */
  readonly task: string;
  /** Its work in a few words: the `title` of its configuration, or `task`. */
  readonly title: string;
  readonly state: SubagentState;
  /** Whether it has shown no sign of life for a long time; the next sign clears this. */
  readonly hung: boolean;
  /** The current model step, from 1; 0 before the first. */
  readonly step: number;
  readonly maxSteps: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** The latest progress. */
  readonly progress: string | null;
  /** The usage of its own model calls so far; `subtreeUsage` adds that of all subagents below it. */
  readonly usage: Usage;
  readonly outcome: Outcome | null;
}

/** A button. */
export interface QuestionOption {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
}

/** The button of an approval with which the user permits another agent this call and later ones. */
export const APPROVE_LASTING = 'approve_lasting';

/** A question or approval of a subagent for the user, as views show it. */
export interface QuestionView {
  /** The id that an answer must name. */
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly kind: 'question' | 'approval';
  readonly question: string;
  /** Empty: free text is expected. */
  readonly options: readonly QuestionOption[];
  readonly state:
    | 'queued'
    | 'presenting'
    | 'open'
    | 'parked'
    | 'answered'
    | 'expired'
    | 'withdrawn'
    | 'superseded';
  readonly askedAt: number;
  /** When the time to answer is over; null while the clock is paused. */
  readonly dueAt: number | null;
  /** When the question is presented again after the user asked for time, in milliseconds since 1970. */
  readonly heldUntil?: number;
  readonly timeoutMs: number;
  /** The answer in words. */
  readonly answer: string | null;
  /** Why it was withdrawn, such as "cancelled", or the change of its tool over a restart. */
  readonly reason?: string;
  /** The call that an approval covers: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /** It is too long to be said, and `question` is short: only `approved` consents to it, after its `action` was shown. */
  readonly byButton?: true;
  /** The identities that may answer; absent: any. Of the clients of `serve`, only operators get it. */
  readonly answerableBy?: readonly string[];
  /** At a client: whether its user may answer. @defaultValue true */
  readonly mayAnswer?: boolean;
  /** The identity that answered, if the app vouched for one. */
  readonly answeredBy?: string;
  /** What was last said of it, if it was put to the user more than once: a screen shows that it is asked again. */
  readonly putAgain?: QuestionPut;
}

export interface QuestionPut {
  /** How often the question has been put to the user by now, from 1. */
  readonly times: number;
  /** The words of the last time, such as those that read an approval back. */
  readonly text: string;
}

/** Returns the words of a question for a client that shows nothing else of it. */
export function wholeWords({
  question,
  action,
  byButton,
}: Pick<QuestionView, 'question' | 'action' | 'byButton'>): string {
  return byButton && action ? `${question}\n${argumentsText(action.input)}` : question;
}

/** Returns the words of an approval without the arguments of its call; another question as it is. */
export function withoutArguments({
  question,
  action,
}: {
  readonly question: string;
  readonly action?: QuestionView['action'];
}): string {
  return action ? question.replace(` (${argumentsText(action.input)})`, '') : question;
}

/** WHO-1 */
export function mayAnswer(
  { answerableBy }: { readonly answerableBy?: readonly string[] | undefined },
  by: string | undefined,
): boolean {
  return answerableBy === undefined || (by !== undefined && answerableBy.includes(by));
}

/** Returns a question as somebody gets it who is told whether they may answer, and not who else may. */
export function questionFor(question: QuestionView, by: string): QuestionView {
  if (!question.answerableBy) return question;
  const { answerableBy: _, ...shown } = question;
  return { ...shown, mayAnswer: mayAnswer(question, by) };
}

/** A result or notice for the user, as views show it. */
export interface DeliveryView {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
  readonly subagentId: string | null;
  readonly state: 'pending' | 'offered' | 'playing' | 'delivered' | 'dismissed' | 'dropped';
  /** How it reached the user. */
  readonly grade: HearingGrade | null;
  /** The reason why it will not be said. */
  readonly dropped: DropReason | null;
  readonly attempts: number;
  /** The identity that the app named when it was shown or dismissed, if any. */
  readonly by?: string;
  /** Whether it could not be said and is to be shown. */
  readonly card: boolean;
  readonly at: number;
}

/** The remaining allowance of the voice model's provider, as last reported. */
export interface LimitView {
  /** A name such as `requests` or `tokens`. */
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** Time until the allowance is full again, in milliseconds from the report. */
  readonly resetInMs: number;
}

/** The state of a session's connection to its model. */
export type ConnectionState =
  | 'created'
  | 'connecting'
  | 'active'
  | 'reconnecting'
  /**
   * No connection to the voice model can be had. Subagents work on, results and questions wait. The session connects
   * again at `outage.retryAt`, or earlier when a client attaches, the user types, or the app calls `reconnect()`.
   */
  | 'resting'
  /** As `resting`, but the provider has refused the connection, such as for a wrong key: nothing is tried by itself. */
  | 'refused'
  | 'transferring'
  | 'closing'
  | 'closed'
  /** The session has left this process, and continues from its journal when it is started again. */
  | 'suspended';

/** Why there is no connection to the voice model. */
export interface ConnectionOutage {
  /** `TRANSPORT_LOST` or `CONNECT_TIMEOUT`. */
  readonly code: string;
  /** In the words of the provider, if it said why. */
  readonly message: string;
  /** When it is tried again, in milliseconds since 1970; null: now, or not by itself. */
  readonly retryAt: number | null;
}

/** The events of a session, in order. Facts are in the past tense, commands imperative. */
export type SessionEvent =
  | {
      readonly type: 'connection.changed';
      readonly state: ConnectionState;
      /** The last failure, until there is a connection again. @defaultValue none */
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
      /** How the call was answered; `pending`: the work continues in the background. */
      readonly status: CallAnswer;
    }
  /** After a crash: a call that was being run and is not run again; the app must find out its outcome. */
  | ({ readonly type: 'tool.in_doubt' } & DoubtfulCall)
  /**
   * The session has left this process, and continues from its journal when it is started again. `error`: the
   * suspension was not requested: the journal refuses the session, because another process has it.
   */
  | { readonly type: 'session.suspended'; readonly error: Failure | null }
  /** The session continues from its entries in the journal. */
  | ({ readonly type: 'session.recovered' } & RecoveryReport)
  | { readonly type: 'subagent.changed'; readonly subagent: SubagentView }
  | { readonly type: 'question.changed'; readonly question: QuestionView }
  | { readonly type: 'delivery.changed'; readonly delivery: DeliveryView }
  | { readonly type: 'service.changed'; readonly service: ServiceView }
  /** An event of a service that no agent handled completely. */
  | { readonly type: 'service.dropped'; readonly event: DroppedEvent }
  /** An agent begins to lead; `from` led before. After a failed transfer both are the same. */
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
  /** The model has finished speaking. `turn` counts from 1. */
  | { readonly type: 'turn.ended'; readonly turn: number; readonly agentName: string }
  /** A lead agent's call was passed to a subagent. */
  | {
      readonly type: 'subagent.delegated';
      readonly callId: string;
      readonly agentName: string;
      readonly subagentId: string;
      readonly subagentName: string;
      readonly lifetime: 'ephemeral' | 'session';
    }
  /**
   * A subagent reported its progress. `percent` is 0 to 100, or null where it did not say; `at` is
   * milliseconds since 1970.
   */
  | {
      readonly type: 'subagent.progressed';
      readonly subagentId: string;
      readonly text: string;
      readonly percent: number | null;
      readonly at: number;
    }
  /** A subagent has ended; once for each. */
  | {
      readonly type: 'subagent.ended';
      readonly subagent: SubagentView;
      readonly outcome: Outcome;
      /** The batch with which its result is told; null: by itself, or not at all. */
      readonly batchId: string | null;
      /** The user's words that led to it; null where the user did not ask for it. */
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
  /** The client must drop the sound that it has not played yet, and report the sound that it has played. */
  | { readonly type: 'playout.clear' }
  | { readonly type: 'speech.interrupted'; readonly itemId: string; readonly playedMs: number }
  /**
   * The user's utterance was no interruption: speech continues with `itemId` at `playedMs`. The rest arrives
   * as a new item.
   */
  | { readonly type: 'speech.resumed'; readonly itemId: string; readonly playedMs: number }
  /** The user has not been heard since all fell silent, `silentMs` ago; `user.back` follows when they are. */
  | { readonly type: 'user.away'; readonly silentMs: number }
  | { readonly type: 'user.back' }
  /** A backchannel of the user ("mm-hm"), which gets no answer. */
  | { readonly type: 'backchannel.heard'; readonly utteranceId: string; readonly text: string }
  /**
   * An utterance of the user has found its place, once for each: the lead agent, the question that has the
   * floor, or nobody, with the reason.
   */
  | {
      readonly type: 'utterance.routed';
      readonly utteranceId: string;
      readonly to: 'lead' | 'question' | 'nobody';
      readonly reason: UnaddressedReason | null;
    }
  /**
   * The text that the user gets instead of an answer: show it, so that silence is never the answer. `utteranceId` is the
   * user's last one if the lead agent has no reply; null: they have not spoken.
   */
  | {
      readonly type: 'utterance.unanswered';
      readonly utteranceId: string | null;
      readonly reason: UnansweredReason;
    }
  /** `used`: by the lead agent's model since its last report. Absent: a subagent has used more. */
  | { readonly type: 'usage.changed'; readonly usage: UsageView; readonly used?: LeadUsage }
  | { readonly type: 'limits.changed'; readonly limits: readonly LimitView[] }
  /** An error that the session survives. */
  | {
      readonly type: 'error.reported';
      readonly code: string;
      readonly message: string;
      /** With `UNFOLDABLE_ENTRY`: the entry of the journal that was quarantined. */
      readonly entry?: QuarantinedEntry;
    };

/**
 * Why an utterance is addressed to nobody: it has no words; it is a backchannel ("mm-hm"); it is what the
 * lead agent says, heard by the microphone; the wire could not transcribe it; or it is a voice far away that talks on.
 */
export type UnaddressedReason =
  | 'no_words'
  | 'backchannel'
  | 'echo'
  | 'not_transcribed'
  | 'background';

/**
 * Why an utterance gets no answer, or not yet. `words_late`: its words are not known in time; they count when they
 * come. `no_reply`: the model of the lead agent failed, or said nothing, however often it was asked.
 */
export type UnansweredReason = 'words_late' | 'no_reply';

/** A tool call with an unknown outcome. */
export interface DoubtfulCall {
  /** Null for a call of the lead agent. */
  readonly subagentId: string | null;
  readonly subagentName: string | null;
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The key of the call: ask the external system about it. */
  readonly idempotencyKey: string;
}

/** The report of a session that continues from its journal after a crash. */
export interface RecoveryReport {
  /** The number of folded entries. */
  readonly entries: number;
  /** The ids of subagents that continue. */
  readonly resumed: readonly string[];
  /** Subagents that cannot continue; each has ended as `lost`, with the reason. */
  readonly lost: readonly { readonly subagentId: string; readonly reason: string }[];
  /** Entries that could not be folded, and were not quarantined before. */
  readonly setAside: readonly QuarantinedEntry[];
  /** Time since the last entry, in milliseconds. */
  readonly downMs: number;
}

/** The state in `session.store`. */
export interface SessionState {
  readonly connection: ConnectionState;
  /** Why there is no connection to the voice model; null: there is one, or none was lost. */
  readonly outage: ConnectionOutage | null;
  readonly floor: 'user' | 'model' | 'nobody';
  /** The name of the lead agent; null before the session is connected. */
  readonly agent: string | null;
  readonly transcript: readonly TranscriptItem[];
  readonly subagents: readonly SubagentView[];
  readonly questions: readonly QuestionView[];
  readonly deliveries: readonly DeliveryView[];
  /** The usage of the whole session, by the lead agent, by subagents and together. */
  readonly usage: UsageView;
  /** Empty until the wire has reported limits. */
  readonly limits: readonly LimitView[];
}

/** The state of a session of which nothing is known yet. */
export const emptySessionState: SessionState = Object.freeze({
  connection: 'created',
  outage: null,
  floor: 'nobody',
  agent: null,
  transcript: [],
  subagents: [],
  questions: [],
  deliveries: [],
  usage: usageOfBoth(NO_LEAD_USAGE, NO_USAGE),
  limits: [],
});

/** Numbers of views that are over and stay in the state. */
export const KEPT_VIEWS = {
  transcript: 500,
  subagents: 100,
  questions: 50,
  deliveries: 100,
} as const;

/** The fate of an answer. */
export type AnswerReceipt =
  /** `by`: the identity that the answer is recorded under, if there is one. */
  | { readonly accepted: true; readonly by?: string }
  | {
      readonly accepted: false;
      readonly reason:
        /** The question is restricted to other identities: it stays open. */
        | 'not_allowed'
        | 'unknown'
        | 'queued'
        | 'not_presented'
        | 'over'
        | 'invalid_option'
        | 'unclear';
    };

/** The position of an entry that was quarantined, and the reason. */
export interface QuarantinedEntry {
  readonly scope: string;
  readonly unit: string;
  readonly seq: number;
  /** The type of its event. */
  readonly event: string;
  readonly reason: string;
}

/** Numbers of events since this process loaded the session. */
export interface ServiceCounts {
  /** Events that waited for the agent, or still do. */
  readonly accepted: number;
  /** Events that the agent reported to the user. */
  readonly told: number;
  /** Events that the agent did not report. */
  readonly silent: number;
  /** Events on which the agent failed. */
  readonly failed: number;
  /** Events that were dropped before the agent saw them; `service.dropped` gave the reason. */
  readonly dropped: number;
  /** Events that `shouldInvoke` rejected. */
  readonly ignored: number;
  /** Inputs that were no `ExternalEvent`, or too large. */
  readonly invalid: number;
}

/** The state of an event source, as views show it. */
export interface EventSourceView {
  readonly name: string;
  readonly state: 'created' | 'starting' | 'running' | 'releasing' | 'backing_off' | 'stopped';
  /** The number of consecutive failures. */
  readonly failures: number;
  /** The error of the last failure. */
  readonly error: string | null;
}

/** The state of a service, as views show it. */
export interface ServiceView {
  /** The name of the agent. */
  readonly name: string;
  readonly state: 'created' | 'idle' | 'invoking' | 'waiting' | 'stopped';
  /** The number of waiting events. */
  readonly waiting: number;
  readonly counts: ServiceCounts;
  readonly sources: readonly EventSourceView[];
}

/** An event that no agent handled completely. */
export interface DroppedEvent {
  readonly service: string;
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  readonly priority: EventPriority;
  /** `cancelled`: the agent was cancelled while working on it. */
  readonly reason: EventDropReason | 'cancelled';
}
