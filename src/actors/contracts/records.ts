// The contents behind the actors of a session. The machines hold ids and states; the records hold texts, inputs and results
// under the same ids, folded from the same events.

import type {
  DeliveryKind,
  DeliveryMode,
  DeliveryPriority,
  Failure,
  StepCall,
} from '../../machines/index.ts';
import type { Echo } from '../../values/echo.ts';
import type { Note, Prompt } from '../notes/note.ts';
import type { QuestionOption, QuestionPut } from './session-views.ts';
import type { Outcome } from './outcome.ts';
import type { DirectiveScope } from './directives.ts';
import type { BudgetLimits } from './config.ts';
import type { LeadUsage, ModelNames } from './usage.ts';

/** An answer, as the subagent that asked gets it. */
export interface Answer {
  /** The user's words, or the label of the chosen option. */
  readonly userResponse: string;
  readonly optionId?: string;
  /** For an approval: whether the user approved. */
  readonly approved?: boolean;
  /** The identity for which the app vouched; absent: none. */
  readonly by?: string;
}

export interface AskedQuestion {
  /** The id for `session.answer`. */
  readonly requestId: string;
  /** The subagent that asks. */
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly subagentName: string;
  /** A question wants words or an option, an approval consent. */
  readonly kind: StepCall['kind'] & ('question' | 'approval');
  /** The words of the question. */
  readonly question: string;
  /** The options of the question; empty: it wants words. */
  readonly options: readonly QuestionOption[];
  /** The time for an answer, in milliseconds. */
  readonly timeoutMs: number;
  /** The call that an approval covers: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /** For an approval that is too long to be said: only its buttons count as consent. @defaultValue false */
  readonly byButton?: true;
  /** The identities that may answer. @defaultValue any identity */
  readonly answerableBy?: readonly string[];
  /** Words that the asker got as an answer and returned. @defaultValue none */
  readonly returned?: ReturnedWords;
}

/** Words of the user that a subagent got as an answer, but that do not answer its question. */
export interface ReturnedWords {
  /** The words that were returned. */
  readonly words: string;
  readonly reason: string;
}

/** The reason of a withdrawal: the asker no longer needs an answer. */
export const CANCELLED = 'cancelled';

export interface QuestionRecord extends AskedQuestion {
  readonly askedAt: number;
  readonly answer: Answer | null;
  /** The number of unclear spoken answers since the question was last repeated because of one. */
  readonly timesUnclear: number;
  /** Whether an approval was asked again in speech; this happens once, and afterwards only its buttons count. */
  readonly askedAgain: boolean;
  /** Whether its action is read back: the user consented while other approvals waited, or after other words were said. */
  readonly readBack: boolean;
  /** The last settlement by the lead agent. @defaultValue none */
  readonly settledBy?: SettledBy;
  /** The question is repeated in its short form, in this language, because it was not answered. */
  readonly nudged?: string;
  /** Why the question was withdrawn. */
  readonly reason?: string;
  /** How the question was last put to the user; absent: not yet, or by an earlier version. */
  readonly put?: QuestionPut;
}

/** The call by which the lead agent settled a question, and the words of the user that it rests on. */
export interface SettledBy {
  readonly callId: string;
  readonly utteranceId: string;
}

/** A recently answered question: the user may still correct the answer. */
export interface AnsweredQuestion extends AskedQuestion {
  readonly answer: Answer;
  readonly answeredAt: number;
  readonly settledBy?: SettledBy;
}

/** The actions by which the lead agent can settle a question. */
export const SETTLE_ACTIONS = [
  'answer',
  'correct',
  'decline',
  'cancel',
  'later',
  'repeat',
  'explain',
] as const;
export type SettleAction = (typeof SETTLE_ACTIONS)[number];

/** Why a settlement by the lead agent is refused. */
export type SettleRefusal =
  /** The quotation is not in the user's words. */
  | 'not_said'
  /** Only the user's own yes or no, or a button, gives an approval. */
  | 'needs_consent'
  | 'unknown_option'
  /** These words have settled the question before, or the question was answered otherwise. */
  | 'already_settled'
  /** The asker has already continued with the answer. */
  | 'too_late'
  /** The question is unknown, or was not put to this user before these words. */
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
  /** The output for the model, once it is known. */
  readonly output: unknown;
  /** The user's words that caused the call. */
  readonly request: string | null;
  /**
   * The id of those words' utterance. @defaultValue null: no utterance caused the call, or an earlier version wrote the record
   */
  readonly requestId?: string | null;
  /** The identity behind the utterance, if the app vouched for one. @defaultValue null */
  readonly requestedBy?: string | null;
  readonly subagentId: string | null;
  readonly outcome: Outcome | null;
  /** Whether the model has an output of the call: the result, or a pending message. */
  readonly isAnswered: boolean;
  /** When the call's subagent ended; 0 before that. */
  readonly endedAt: number;
  /** How the result reaches the user. */
  readonly delivery: DeliveryMode;
  /** Whether the call was run and failed or timed out. */
  readonly failed?: boolean;
  /** The reason of the cancellation; absent if the call was not cancelled or no reason was given. */
  readonly cancelReason?: string;
}

export interface DeliveryRecord {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
  /** The prompt for the lead model; a text if an earlier version wrote it. */
  readonly prompt: Prompt;
  readonly subagentId: string | null;
  /** The lead agent's call whose result this is. */
  readonly callId: string | null;
  /** Whether the delivery is the output of a call that still waits for one. */
  readonly answersCall: boolean;
  /** The result of a spawned subagent, if it may be told together with others. */
  readonly result?: ToldResult;
  readonly at: number;
}

/** Speech of the lead agent, calls and results, but not the user's words. Times are start times in milliseconds since 1970. */
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
      /** The id of the utterance that caused the call. @defaultValue null: no utterance */
      readonly requestId?: string | null;
      /** As in `assistant.said`; absent: unknown, and the user's words before the call count as unanswered. */
      readonly repliesTo?: string | null;
      /** Whether the same response makes another call, which has a separate entry. @defaultValue false */
      readonly isFollowed?: boolean;
      /** The response that made the call; its message has this id. Absent: unknown. */
      readonly responseId?: string;
      /** As in `assistant.said`. */
      readonly after?: string;
      /** The data that the provider gets back with the call, and with the parts before it. Absent: none. */
      readonly echo?: Echo;
      /** The time limit of an inline tool, in milliseconds. @defaultValue 30000 */
      readonly timeoutMs?: number;
      /** Whether the result may be told together with others. @defaultValue false */
      readonly isConsolidated?: boolean;
    }
  /** A note of the runtime to the model, possibly in place of a user turn. */
  | {
      readonly type: 'conversation.noted';
      readonly itemId: string;
      readonly role: 'system' | 'user';
      readonly text: string;
      readonly saidAt: number;
      /** The note; absent if an earlier version wrote the text. */
      readonly note?: Note;
    }
  /** A complete message of the lead agent. An empty text: the response has no words, or only calls. */
  | {
      readonly type: 'assistant.said';
      readonly itemId: string;
      readonly text: string;
      readonly saidAt: number;
      /** The item that this one precedes, which began in the same millisecond. */
      readonly before?: string;
      /**
       * The last item that the model had read when it began to reply. Null: the message told a delivery, or is a reply that was
       * cut off and will be repeated. Absent: unknown; the message counts as a reply to all items before it.
       */
      readonly repliesTo?: string | null;
      /**
       * The item that this one follows: the last item that the model had read, or its last call. Items that arrived meanwhile
       * follow the message. Absent: unknown; the message is ordered by its start time.
       */
      readonly after?: string;
      /** The data that the provider gets back with the parts after the last call. Absent: none, or the response was cut off. */
      readonly echo?: Echo;
    }
  /** The user heard only `text` of the message. */
  | {
      readonly type: 'assistant.cut';
      readonly itemId: string;
      readonly text: string;
      readonly audioHeardMs: number;
      /** Absent: the message has an `assistant.said` already. */
      readonly saidAt?: number;
      readonly before?: string;
      /** As in `assistant.said`. */
      readonly repliesTo?: string | null;
    }
  | {
      readonly type: 'call.answered';
      readonly callId: string;
      readonly answeredAt: number;
      /** The output for the model. Absent: that of the call's record. */
      readonly output?: unknown;
      /** Whether that output is an error. @defaultValue false */
      readonly failed?: boolean;
      /** Whether this is the last output of the call. */
      readonly isOver: boolean;
      /**
       * Whether the lead agent has to respond to the output. False: the outbox delivers the result, or it is not told.
       * @defaultValue true
       */
      readonly wantsReply?: boolean;
    };

/** The events of a session's unit that create an actor or carry text. */
export type SessionInputEvent =
  | ConversationEvent
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
      /** The result, if it may be told together with others. Absent: it is told separately. */
      readonly result?: ToldResult;
    }
  /** A subagent was spawned for this utterance: the result under this id may be told together with others. */
  | { readonly type: 'result.expected'; readonly deliveryId: string; readonly requestId: string }
  /** The reply to tools of the lead agent has told the result of a subagent that it spawned. */
  | { readonly type: 'result.told'; readonly deliveryId: string }
  /** The agent of a service has to examine an event, and may report it to the user. */
  | { readonly type: 'invocation.wanted'; readonly eventId: string }
  | {
      readonly type: 'user.said';
      readonly utteranceId: string;
      readonly text: string;
      readonly channel: 'speech' | 'typing';
      /** When the utterance began. */
      readonly startedAt: number;
      /** The language tag by which an answer is read. @defaultValue 'en' */
      readonly language?: string;
      /**
       * How the words are read for the question that has the floor; absent if there is none, or if an earlier version wrote the
       * event.
       */
      readonly reading?: Reading;
      /**
       * The delivery that was being told and that these words postpone ("not now"); absent if there is none, or if an earlier
       * version wrote the event.
       */
      readonly putsOff?: string;
      /** The W3C trace context of the caller. @defaultValue none */
      readonly traceparent?: string;
      /** The identity of the speaker, if the app vouched for one. */
      readonly by?: string;
    }
  | {
      readonly type: 'answer.given';
      readonly ticket: string;
      readonly requestId: string;
      readonly optionId?: string;
      readonly text?: string;
      readonly approved?: boolean;
      /** The identity for which the app vouched. */
      readonly by?: string;
    }
  /** The lead agent has settled a question by a call, on the basis of words of the user. */
  | ({
      readonly type: 'question.settled';
      readonly requestId: string;
      readonly action: SettleAction;
      readonly optionId?: string;
      readonly text?: string;
      /** The words of the user that the call quotes. */
      readonly quote: string;
      /** Why the settlement is refused. Absent: it counts. */
      readonly refused?: SettleRefusal;
      /** Whether the approval's action is read back after the reply. */
      readonly readsBack?: true;
    } & SettledBy)
  /** The use of the lead agent's model since its last report. */
  | {
      readonly type: 'usage.reported';
      /** The lead agent, or `summary`, `facts`, `claim_judge`. */
      readonly agentName: string;
      readonly usage: LeadUsage;
      /** When the call began, in milliseconds since 1970. Absent: the call belongs to the current response. */
      readonly beganAt?: number;
      /** The duration of the current response's call, in milliseconds. Absent: a voice model made it, or it failed. */
      readonly tookMs?: number;
      /** The model. Absent: an earlier version reported the use. */
      readonly model?: ModelNames;
    }
  /** A model call for the lead agent's response has failed, and is retried at `retryAt`; there are at most `attempts` calls. */
  | {
      readonly type: 'model.retried';
      readonly agentName: string;
      /** The number of failed calls for this response. */
      readonly failed: number;
      readonly attempts: number;
      /** When the next call is made, in milliseconds since 1970. */
      readonly retryAt: number;
      readonly error: Failure;
      /** The duration of the failed call, in milliseconds. Absent: a voice model made it. */
      readonly tookMs?: number;
      /** The model. Absent: it is a voice model. */
      readonly model?: ModelNames;
    }
  /** The last model call for the lead agent's response has failed, and the response is given up. */
  | {
      readonly type: 'model.failed';
      readonly agentName: string;
      readonly failed: number;
      readonly error: Failure;
      readonly tookMs?: number;
      readonly model?: ModelNames;
    }
  /** Limits of the session's budget have new totals. */
  | {
      readonly type: 'budget.raised';
      readonly limits: BudgetLimits;
      /** The identity for which the app vouched. */
      readonly by?: string;
    }
  /** The current lead agent has entered: its `onEnter` has run. */
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
  /** `covers`: the ids of the items that the summary replaces. */
  | {
      readonly type: 'conversation.summarised';
      readonly summary: string;
      readonly covers: readonly string[];
    };

/** A result that tools of the lead agent have returned to it: the reply to them tells it. */
export interface ReturnedResult {
  readonly deliveryId: string;
  /** The calls that ran when the result was read. */
  readonly callIds: readonly string[];
}

/** A result, as it is told to the user. */
export interface ToldResult {
  readonly toolName: string;
  readonly subagentId: string | null;
  /** The error; null if the subagent completed. */
  readonly error: Failure | null;
  /** The result; the partial result if the subagent did not complete. */
  readonly text: string;
  /** Keys of entries that the subagent left in working memory. */
  readonly notes: readonly string[];
  /** Claims of the subagent that its tool calls do not support. */
  readonly unverified: readonly string[];
  /** Whether the last words announce work that was not done. */
  readonly isUnfinished: boolean;
  /** The arguments of a failed call, to tell several calls of one tool apart. */
  readonly input?: unknown;
}

/** How an utterance is treated while a question is presented. */
export type Reading =
  /**
   * The words are tried as the answer. `decisive`: they are unambiguous and no consent, so that they may interrupt the
   * question. `more`: they also contain another request, and the lead agent gets the words, too.
   */
  | {
      readonly to: 'question';
      readonly answer: Answer;
      readonly decisive: boolean;
      readonly more?: true;
    }
  /** The words are about the question but cannot be interpreted: the question is asked again. */
  | { readonly to: 'again' }
  /** The user asked to hear the question again: it is repeated with its options. */
  | { readonly to: 'repeat' }
  /** The words are a yes while several approvals wait: the action that they would approve is read back. */
  | { readonly to: 'readBack' }
  /** The user asked only for time: the question is presented again after `forMs`. */
  | { readonly to: 'hold'; readonly forMs: number }
  /**
   * The lead agent gets the words. `about`: the question that had the floor, which the lead agent settles if the words are
   * about it; absent if there was none, or if an earlier version wrote the reading. `readsBack`: other words were said since,
   * so this yes or no may refer to those: the question is read back after the reply.
   */
  | { readonly to: 'lead'; readonly about?: string; readonly readsBack?: true };

/**
 * Returns the id of the delivery of a notice about this: an event of a service, a question of a subagent, a subagent that has
 * ended. The same subject always gets the same id, so that a repetition after a crash is recognised.
 */
export function deliveryAbout(id: string): string {
  return `${PREFIX}${id}`;
}
const PREFIX = 'dlv_';
/** Returns the subject of a delivery whose id `deliveryAbout` made. */
export function subjectOf(deliveryId: string): string {
  return deliveryId.slice(PREFIX.length);
}

/** An utterance of the user, typed or spoken. */
export interface Utterance {
  readonly id: string;
  readonly text: string;
  /** When the utterance began, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly typed: boolean;
}

/** The meaning of an answer to a question. */
export interface AnswerGiven {
  /** The label of the chosen option; null: no option was chosen, or the question is an approval. */
  readonly choice: string | null;
  readonly isApproval: boolean;
}

/** The meaning of words for a subagent's question: an answer, a request for time or for a repetition, or (null) none of these. */
export type WordsToQuestion = AnswerGiven | 'time' | 'repeat' | null;
