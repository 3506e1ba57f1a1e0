// The data that belongs to a session's actors. The machines contain ids and states. The records contain texts, inputs
// and results under the same ids, and are derived from the same events.

import type {
  ClientCallInput,
  DeliveryKind,
  DeliveryMode,
  DeliveryPriority,
  Failure,
  ReachInput,
  StepCall,
} from '../../machines/index.ts';
import type { Schema } from 'ai';
import type { Echo } from '../../values/echo.ts';
import type { Note, Prompt } from '../notes/note.ts';
import type { QuestionOption, QuestionPut, ScheduleView } from './session-views.ts';
import type { Outcome } from './outcome.ts';
import type { DirectiveScope } from './directives.ts';
import type { BudgetLimits } from './config.ts';
import type { LeadUsage, ModelNames } from './usage.ts';

/** Arguments that the tool's schema accepted: the model's, or different ones that the user approved. */
export interface CallInput {
  /** The arguments for `execute`, after the schema applied defaults and coercions. */
  readonly input: unknown;
  /**
   * True if the arguments for `execute` are not JSON (for example, because they contain a Date). `input` then contains
   * the original arguments, to which the schema is applied when the call runs: pass this flag to `runToolCall` and
   * `approvalNeeded`.
   */
  readonly raw?: true;
  /** The original arguments, if the schema changed them. */
  readonly given?: unknown;
}

/** An answer, as the asking subagent receives it. */
export interface Answer {
  /** The user's words or the label of the chosen option. */
  readonly userResponse: string;
  readonly optionId?: string;
  /** For an approval: whether the user approved. */
  readonly approved?: boolean;
  /** The arguments that the user approved, if they differ from those of the `action`. */
  readonly changed?: CallInput;
  /** How long the approval also covers later calls. @defaultValue this call only */
  readonly lasts?: ApprovalScope;
  /** The identity that the app vouched for; absent if there is none. */
  readonly by?: string;
}

/** How long an approval lasts: until the subagent that asked has ended (`task`), or until the session has ended. */
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];
export const APPROVAL_SCOPES = ['task', 'session'] as const;

/**
 * A call that the user asked to change before approving it, or an approval that the user wants to last. It is read back
 * to the user, and a yes counts only after the read-back.
 */
export interface ProposedCall {
  readonly changed: CallInput;
  /** How long the approval also covers later calls. @defaultValue this call only */
  readonly lasts?: ApprovalScope;
  /** The text of the question that reads it back. */
  readonly question: string;
  /** For a lasting approval: the text of the question that asks about this call only. */
  readonly alone?: string;
  /** As in `AskedQuestion`. */
  readonly byButton?: true;
}

export interface AskedQuestion {
  /** The id for `session.answer`. */
  readonly requestId: string;
  /** The subagent that is asking. */
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly subagentName: string;
  /** A question expects text or an option; an approval expects a yes or no. */
  readonly kind: StepCall['kind'] & ('question' | 'approval');
  /** The text of the question. */
  readonly question: string;
  /** The options; empty if the question expects free text. */
  readonly options: readonly QuestionOption[];
  /** The time limit for the user's answer, in milliseconds. */
  readonly timeoutMs: number;
  /** The call that an approval covers: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /** Set if the approval is too long for speech, so that only its buttons can approve it. @defaultValue false */
  readonly byButton?: true;
  /**
   * If the approval lasts: the arguments that may be different in later calls; false if it cannot last. @defaultValue
   * none: the approval covers only calls with exactly the same arguments
   */
  readonly mayDiffer?: false | readonly string[];
  /** The identities that may answer the question. @defaultValue any identity */
  readonly answerableBy?: readonly string[];
  /** Set if the session's user may not answer, so that the question waits beside the floor. @defaultValue false */
  readonly beside?: true;
  /** The user's words that the subagent received as an answer but returned. @defaultValue none */
  readonly returned?: ReturnedWords;
}

/** The user's words that a subagent received as an answer, although they do not answer its question. */
export interface ReturnedWords {
  /** The user's words. */
  readonly words: string;
  /** Why the subagent returned them. */
  readonly reason: string;
}

/** The reason that is recorded when a question is withdrawn because the asker no longer needs an answer. */
export const CANCELLED = 'cancelled';

export interface QuestionRecord extends AskedQuestion {
  readonly askedAt: number;
  readonly answer: Answer | null;
  /** When it was answered. @defaultValue it is not answered, or an earlier version wrote the record */
  readonly answeredAt?: number;
  /** The number of unclear spoken answers since an unclear answer last caused the question to be repeated. */
  readonly timesUnclear: number;
  /**
   * Whether the approval has been asked a second time in speech. This happens only once; after that, only its buttons
   * approve.
   */
  readonly askedAgain: boolean;
  /** Whether the action is being read back because it was unclear what the user approved. */
  readonly readBack: boolean;
  /** The changed call that is read back in place of the `action`. @defaultValue none */
  readonly proposed?: ProposedCall;
  /** The number of times that the user has asked to change the call. @defaultValue 0 */
  readonly changes?: number;
  /**
   * The user's words that a model is still interpreting, oldest first; it is not yet decided who receives them.
   * @defaultValue none
   */
  readonly unread?: readonly Unread[];
  /** The number of times that a model took too long to interpret the user's words. @defaultValue 0 */
  readonly timesLate?: number;
  /** The last call with which the lead agent settled the question. @defaultValue none */
  readonly settledBy?: SettledBy;
  /** The language in which the unanswered question was repeated in its short form. */
  readonly nudged?: string;
  /** Why the question was withdrawn. */
  readonly reason?: string;
  /**
   * How the question was last presented; absent if it has not been presented, or if an earlier version presented it.
   */
  readonly put?: QuestionPut;
}

/** The lead agent's tool call that settled a question, and the user's words on which it is based. */
export interface SettledBy {
  readonly callId: string;
  readonly utteranceId: string;
}

/** A recently answered question, whose answer the user may still correct. */
export interface AnsweredQuestion extends AskedQuestion {
  readonly answer: Answer;
  readonly answeredAt: number;
  readonly settledBy?: SettledBy;
}

/** The ways in which the lead agent can settle a question. */
export const SETTLE_ACTIONS = [
  'answer',
  'correct',
  'change',
  'always',
  'revoke',
  'decline',
  'cancel',
  'later',
  'repeat',
  'explain',
] as const;
export type SettleAction = (typeof SETTLE_ACTIONS)[number];

/** Why the lead agent may not settle a question in this way. */
export type SettleRefusal =
  /** The user's words do not contain the words that the call quotes. */
  | 'not_said'
  /** Only the user's own yes or no, or a button, decides an approval. */
  | 'needs_consent'
  | 'unknown_option'
  /** The question is not an approval, its tool does not accept the changed arguments, or the approval cannot last. */
  | 'invalid_change'
  /** The same words have already settled the question, or the question was answered in another way. */
  | 'already_settled'
  /** The asker has already continued its work with the answer. */
  | 'too_late'
  /** The question is unknown, or the user said these words before the question was presented to them. */
  | 'not_open';

export interface CallRecord {
  readonly callId: string;
  readonly name: string;
  /** The lead agent whose model made the call. */
  readonly agentName: string;
  /** The arguments as JSON text, as the model wrote them. */
  readonly arguments: string;
  /** The arguments after validation. */
  readonly input: unknown;
  /** The output for the model, once known. */
  readonly output: unknown;
  /** Inline: the output that the model receives if the call is detached. @defaultValue none */
  readonly pendingMessage?: string;
  /** When the call was detached; absent if it was not detached. */
  readonly detachedAt?: number;
  /** The user's words that caused the call. */
  readonly request: string | null;
  /**
   * The id of the utterance that contains those words. @defaultValue null: no utterance caused the call, or the record
   * comes from an earlier version
   */
  readonly requestId?: string | null;
  /** The identity of the user who spoke, if the app vouched for one. @defaultValue null */
  readonly requestedBy?: string | null;
  readonly subagentId: string | null;
  readonly outcome: Outcome | null;
  /** Whether the model has received output for the call: its result, or a message that the work continues. */
  readonly isAnswered: boolean;
  /** When the call's subagent ended; 0 if it has not ended. */
  readonly endedAt: number;
  /** How the user receives the result. */
  readonly delivery: DeliveryMode;
  /** Whether the call ran and failed or timed out. */
  readonly failed?: boolean;
  /** Why the call was cancelled; absent if it was not cancelled, or if no reason was given. */
  readonly cancelReason?: string;
}

/** A call that a client executes; the call's machine has the same id. */
export interface ClientCallRecord {
  /** The id that the client and the tool use for the call: its idempotency key. */
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** The user whose client may execute the call; null if any session user's client may execute it. */
  readonly user: string | null;
  /** The result, or the client's error message; absent if the client has not answered. */
  readonly output?: unknown;
}

/** How a client of the user executes a tool's calls (`runsAt: 'client'`). */
export interface ClientTool {
  readonly timeoutMs: number;
  /** Whether a call without a client waits, or fails after a few seconds. */
  readonly absent: 'wait' | 'fail';
  /** Whether a call may be executed again after its client has left. */
  readonly idempotent: boolean;
  /** The schema of a result; null if any JSON is accepted. */
  readonly schema: Schema | null;
}

/** A schedule as stored in its journal entry. The schedule's machine has the same key and stores the next due time. */
export interface ScheduleRecord extends Omit<ScheduleView, 'state'> {
  /** The first time. */
  readonly dueAt: number;
}

/** A call for a client. */
export interface ClientCallRequest extends Omit<ClientCallRecord, 'output'> {
  /** The id of the call in the conversation with the model. */
  readonly callId: string;
  /** Null if the lead agent made the call. */
  readonly subagentId: string | null;
  readonly tool: ClientTool;
}

export interface DeliveryRecord {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
  /** The prompt for the lead model; a string if it was written by an earlier version. */
  readonly prompt: Prompt;
  readonly subagentId: string | null;
  /** The lead agent's call that produced this result. */
  readonly callId: string | null;
  /** Whether the delivery is the output for a call that is still waiting for it. */
  readonly answersCall: boolean;
  /** The result of a spawned subagent, if that result may be reported together with others. */
  readonly result?: ToldResult;
  readonly at: number;
}

/** The lead agent's speech, calls and results, but not the user's words. Times are start times in milliseconds since 1970. */
export type ConversationEvent =
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
      /** @defaultValue the time at which the event was accepted */
      readonly calledAt?: number;
      /** The agent whose model made the call. @defaultValue the current lead agent */
      readonly agentName?: string;
      /** The id of the utterance that caused the call. @defaultValue null: no utterance caused it */
      readonly requestId?: string | null;
      /**
       * Like `repliesTo` of `assistant.said`; but if it is absent, the user's words before the call count as
       * unanswered.
       */
      readonly repliesTo?: string | null;
      /** Whether the same response continues with another call, which has its own entry. @defaultValue false */
      readonly isFollowed?: boolean;
      /** The response that made the call; the id is also that of the response's message. Absent if unknown. */
      readonly responseId?: string;
      /** As in `assistant.said`. */
      readonly after?: string;
      /** The provider's own data, which is sent back with the call and the parts before it. Absent if there is none. */
      readonly echo?: Echo;
      /** The time limit of an inline tool, in milliseconds. @defaultValue 30000 */
      readonly timeoutMs?: number;
      /** Whether the result may be reported together with other results. @defaultValue false */
      readonly isConsolidated?: boolean;
    }
  /** A note from the runtime to the model, possibly in place of a user turn. */
  | {
      readonly type: 'conversation.noted';
      readonly itemId: string;
      readonly role: 'system' | 'user';
      readonly text: string;
      readonly saidAt: number;
      /** The note; absent if an earlier version stored it as text. */
      readonly note?: Note;
    }
  /** A complete message from the lead agent. An empty text means that the response is empty or contains only calls. */
  | {
      readonly type: 'assistant.said';
      readonly itemId: string;
      readonly text: string;
      readonly saidAt: number;
      /** The item that directly follows this message, if both started in the same millisecond. */
      readonly before?: string;
      /**
       * The last item that the model had read when it started to reply. Null if the message is a delivery, or a reply
       * that was cut off and will be repeated. Absent if unknown; the message then counts as a reply to all earlier items.
       */
      readonly repliesTo?: string | null;
      /**
       * The item that directly precedes this message: the last item that the model had read, or the model's last call.
       * Items that arrived during the response follow the message. Absent if unknown; the start time then determines the
       * message's position.
       */
      readonly after?: string;
      /**
       * The provider's own data, to be sent back with the parts after the last call; absent if the response was cut
       * off.
       */
      readonly echo?: Echo;
    }
  /** The user interrupted the message and heard only `text`. */
  | {
      readonly type: 'assistant.cut';
      readonly itemId: string;
      readonly text: string;
      readonly audioHeardMs: number;
      /** Absent if the message already has an `assistant.said`. */
      readonly saidAt?: number;
      readonly before?: string;
      /** As in `assistant.said`. */
      readonly repliesTo?: string | null;
    }
  | {
      readonly type: 'call.answered';
      readonly callId: string;
      readonly answeredAt: number;
      /** The output for the model. If absent, the output is in the call's record. */
      readonly output?: unknown;
      /** Whether that output is an error. @defaultValue false */
      readonly failed?: boolean;
      /** Whether this is the last output of the call. */
      readonly isOver: boolean;
      /**
       * Whether the lead agent must respond to this output. False if the outbox delivers the result, or if the result
       * is not delivered at all.
       * @defaultValue true
       */
      readonly wantsReply?: boolean;
    };

/** The events of a session's unit that create an actor or contain text. */
export type SessionInputEvent =
  | ConversationEvent
  | ({ readonly type: 'client.called' } & Omit<ClientCallRecord, 'output'> &
      Omit<ClientCallInput, 'at'>)
  | ({ readonly type: 'question.asked' } & AskedQuestion)
  | {
      readonly type: 'notice.posted';
      readonly deliveryId: string;
      readonly kind: 'result' | 'notice' | 'progress';
      readonly priority: DeliveryPriority;
      readonly label: string;
      readonly text: string;
      readonly prompt: Prompt;
      readonly subagentId: string | null;
      readonly ttlMs: number | null;
      readonly reserved: boolean;
      /** While this notice is waiting, a later notice with the same value replaces it. @defaultValue none does */
      readonly replaces?: string;
      /** The result, if it may be reported together with others. If absent, the result is reported separately. */
      readonly result?: ToldResult;
    }
  /** A subagent was spawned for this utterance: the result with this id may be reported together with others. */
  | { readonly type: 'result.expected'; readonly deliveryId: string; readonly requestId: string }
  /**
   * The lead agent's reply to the output of its tools has reported the result of a subagent that those tools spawned.
   */
  | { readonly type: 'result.told'; readonly deliveryId: string }
  /** A service's agent must examine an event and may report it to the user. */
  | { readonly type: 'invocation.wanted'; readonly eventId: string }
  | {
      readonly type: 'user.said';
      readonly utteranceId: string;
      readonly text: string;
      readonly channel: 'speech' | 'typing';
      /** When the utterance started. */
      readonly startedAt: number;
      /** The language tag for interpreting an answer. @defaultValue 'en' */
      readonly language?: string;
      /**
       * How the words are handled while a question has the floor; absent if no question has the floor, or if an earlier
       * version wrote the event.
       */
      readonly reading?: Reading;
      /** The delivery in progress that these words postpone ("not now"); absent in events from earlier versions. */
      readonly putsOff?: string;
      /** The caller's W3C trace context. @defaultValue none */
      readonly traceparent?: string;
      /** The speaker's identity, if the app vouched for one. */
      readonly by?: string;
    }
  | {
      readonly type: 'answer.given';
      readonly ticket: string;
      readonly requestId: string;
      readonly optionId?: string;
      readonly text?: string;
      readonly approved?: boolean;
      /** The arguments that the user approved, if they differ from those of the `action`. */
      readonly changed?: CallInput;
      readonly lasts?: ApprovalScope;
      /** The identity that the app vouched for. */
      readonly by?: string;
      /** Whether the answer counts only if the question is still waiting, and never revokes an approval that lasts. */
      readonly onlyOpen?: boolean;
    }
  /** The lead agent has settled a question with a call, based on the user's words. */
  | ({
      readonly type: 'question.settled';
      readonly requestId: string;
      readonly action: SettleAction;
      readonly optionId?: string;
      readonly text?: string;
      /** The changed call, or the approval that is to last; absent for other actions. */
      readonly proposed?: ProposedCall;
      /** The user's words that the call quotes. */
      readonly quote: string;
      /** Why the settlement is refused. Absent if it is accepted. */
      readonly refused?: SettleRefusal;
      /** Whether the approval's action is read back after the lead agent's reply. */
      readonly readsBack?: true;
    } & SettledBy)
  /** The usage of the lead agent's model since the last such event. */
  | {
      readonly type: 'usage.reported';
      /** The name of the lead agent, or `summary`, `facts`, `claim_judge`. */
      readonly agentName: string;
      readonly usage: LeadUsage;
      /** When the call started, in milliseconds since 1970. Absent if the call belongs to the current response. */
      readonly beganAt?: number;
      /**
       * The duration of the call for the current response, in milliseconds; absent for a failed call or a voice model.
       */
      readonly tookMs?: number;
      /** The model. Absent if an earlier version reported the usage. */
      readonly model?: ModelNames;
    }
  /** A model call for the lead agent's response failed and is retried at `retryAt`, up to `attempts` calls in total. */
  | {
      readonly type: 'model.retried';
      readonly agentName: string;
      /** The number of failed calls for this response. */
      readonly failed: number;
      readonly attempts: number;
      /** When the next call is made, in milliseconds since 1970. */
      readonly retryAt: number;
      readonly error: Failure;
      /** The duration of the failed call, in milliseconds. Absent if a voice model made the call. */
      readonly tookMs?: number;
      /** The model. Absent for a voice model. */
      readonly model?: ModelNames;
    }
  /** The last model call for the lead agent's response has failed, and no response follows. */
  | {
      readonly type: 'model.failed';
      readonly agentName: string;
      readonly failed: number;
      readonly error: Failure;
      readonly tookMs?: number;
      readonly model?: ModelNames;
    }
  /** Limits of the session's budget have been raised to new totals. */
  | {
      readonly type: 'budget.raised';
      readonly limits: BudgetLimits;
      /** The identity that the app vouched for. */
      readonly by?: string;
    }
  /** The current lead agent has taken over: its `onEnter` has run. */
  | { readonly type: 'agent.entered'; readonly agentName: string }
  | {
      readonly type: 'transfer.requested';
      readonly transferId: string;
      readonly to: string;
      /** Whether `agent.entered` follows, because the agent has an `onEnter` or a greeting. @defaultValue false */
      readonly enters?: true;
    }
  | {
      readonly type: 'directive.set';
      readonly key: string;
      readonly value: string | null;
      readonly scope: DirectiveScope;
    }
  | { readonly type: 'schedule.set'; readonly schedule: ScheduleRecord }
  /** The first step through the `reach` channels was planned, for a delivery that is waiting for the user. */
  | ({ readonly type: 'reach.planned' } & ReachInput)
  /** `covers`: the ids of the items that the summary replaces. */
  | {
      readonly type: 'conversation.summarised';
      readonly summary: string;
      readonly covers: readonly string[];
    };

/** A result that the lead agent's tools have returned to its model and that the model's reply reports to the user. */
export interface ReturnedResult {
  readonly deliveryId: string;
  /** The calls that were running when the model read the result. */
  readonly callIds: readonly string[];
}

/** A result, as the user receives it. */
export interface ToldResult {
  readonly toolName: string;
  readonly subagentId: string | null;
  /** The error; null if the subagent completed its task. */
  readonly error: Failure | null;
  /** The result; the partial result if the subagent did not complete its task. */
  readonly text: string;
  /** The keys of the subagent's remaining entries in working memory. */
  readonly notes: readonly string[];
  /** The subagent's claims that no tool call supports. */
  readonly unverified: readonly string[];
  /** Whether the last text announces work that was not done. */
  readonly isUnfinished: boolean;
  /** The arguments of a failed call, which distinguish it from other calls of the same tool. */
  readonly input?: unknown;
}

/** The user's words that a model is interpreting, and how they are handled if the model does not understand them. */
export interface Unread {
  readonly utterance: Utterance;
  readonly by?: string;
  readonly otherwise: Reading;
}

/** The meanings that a model can find in the user's words while a question is open. */
export const MEANINGS = [
  'yes',
  'always',
  'no',
  'option',
  'wait',
  'repeat',
  'other',
  'unclear',
] as const;

/** A model's interpretation of the user's words. */
export interface ModelReading {
  /** Null if the model failed or its answer was unusable. */
  readonly means: (typeof MEANINGS)[number] | null;
  /** The chosen option. */
  readonly optionId?: string;
  /** Why the model found no meaning. */
  readonly error?: string;
  readonly tookMs: number;
  readonly model?: ModelNames;
  readonly usage?: LeadUsage;
}

/** How an utterance is handled while a question is presented. */
export type Reading =
  /**
   * The words are treated as the answer. `decisive`: they are unambiguous and not a yes, so they may interrupt the
   * question while it is being spoken. `more`: they also contain another request, so the lead agent receives them as
   * well.
   */
  | {
      readonly to: 'question';
      readonly answer: Answer;
      readonly decisive: boolean;
      readonly more?: true;
    }
  /** The words are about the question but cannot be interpreted, so the question is asked again. */
  | { readonly to: 'again' }
  /** The user asked to hear the question again, so the question is repeated with its options. */
  | { readonly to: 'repeat' }
  /** The words are a yes while several approvals are waiting, so the action that the yes would approve is read back. */
  | { readonly to: 'readBack' }
  /** The words are a yes that should also cover later calls, so the lasting approval is read back first. */
  | { readonly to: 'always' }
  /** The user only asked for time, so the question is presented again after `forMs`. */
  | { readonly to: 'hold'; readonly forMs: number }
  /**
   * The language has no word tables, so a model interprets the words. `otherwise`: how they are handled if the model
   * returns no answer.
   */
  | { readonly to: 'model'; readonly otherwise: Reading }
  /**
   * The lead agent receives the words. `about`: the question that had the floor; the lead agent settles it if the words
   * concern it. Absent if no question had the floor, or if an earlier version wrote the reading. `readsBack`: since the
   * question was asked, the session has said something else that this yes or no may refer to, so the question is read
   * back after the reply.
   */
  | { readonly to: 'lead'; readonly about?: string; readonly readsBack?: true };

/**
 * Returns the delivery id of a notice about a subject: a service's event, a subagent's question, or a subagent that has
 * ended. The id is always the same for the same subject, so that a notice that is posted again after a crash is
 * recognised.
 */
export function deliveryAbout(id: string): string {
  return `${PREFIX}${id}`;
}
const PREFIX = 'dlv_';
/** Returns the subject for which `deliveryAbout` created a delivery id. */
export function subjectOf(deliveryId: string): string {
  return deliveryId.slice(PREFIX.length);
}

/** An utterance by the user, typed or spoken. */
export interface Utterance {
  readonly id: string;
  readonly text: string;
  /** When the utterance started, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly typed: boolean;
}

/** The meaning of the user's answer to a question. */
export interface AnswerGiven {
  /** The label of the chosen option; null if no option was chosen or if the question is an approval. */
  readonly choice: string | null;
  readonly isApproval: boolean;
}

/**
 * The meaning of the user's words for a subagent's question: an answer, a request for time or for a repetition, or
 * (null) none of these.
 */
export type WordsToQuestion = AnswerGiven | 'time' | 'repeat' | null;
