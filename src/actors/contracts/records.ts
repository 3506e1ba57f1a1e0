// The contents behind the actors of a session. The machines hold ids and states; the words, inputs and
// results are kept here, under the same ids, folded from the same events.

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

/** An answer as the subagent that asked reads it. */
export interface Answer {
  /** The user's words, or the label of the chosen option. */
  readonly userResponse: string;
  readonly optionId?: string;
  /** For an approval: whether it was given. */
  readonly approved?: boolean;
  /** The identity that the app vouched for; absent: none. */
  readonly by?: string;
}

export interface AskedQuestion {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly kind: StepCall['kind'] & ('question' | 'approval');
  readonly question: string;
  readonly options: readonly QuestionOption[];
  readonly timeoutMs: number;
  /** The call that an approval covers: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /** For an approval that is too long to be said: no words consent to it. @defaultValue false */
  readonly byButton?: true;
  /** The identities that may answer. @defaultValue any identity */
  readonly answerableBy?: readonly string[];
  /** Words that were taken for its answer, and that the asker gives back. @defaultValue none */
  readonly returned?: ReturnedWords;
}

/** Words of the user that a subagent got as an answer, and that were no answer. */
export interface ReturnedWords {
  readonly words: string;
  readonly reason: string;
}

/** The reason for which a question is withdrawn whose asker needs no answer any more. */
export const CANCELLED = 'cancelled';

export interface QuestionRecord extends AskedQuestion {
  readonly askedAt: number;
  readonly answer: Answer | null;
  /** The number of unclear spoken answers since the question was last presented because of them. */
  readonly timesUnclear: number;
  /**
   * Whether an approval was asked again in words; that happens once, afterwards only its buttons are left.
   */
  readonly askedAgain: boolean;
  /** Whether its action is read back: consent was given while other approvals wait, or something else was said since. */
  readonly readBack: boolean;
  /** The last settlement by the lead agent. @defaultValue none */
  readonly settledBy?: SettledBy;
  /** It is asked again because nobody answered: in short, in this language. */
  readonly nudged?: string;
  /** Why it was withdrawn. */
  readonly reason?: string;
  /** How it was last put to the user; absent: not yet, or by an earlier version. */
  readonly put?: QuestionPut;
}

/** The call by which the lead agent settled a question, and the words of the user that it rests on. */
export interface SettledBy {
  readonly callId: string;
  readonly utteranceId: string;
}

/** A question that was answered a short time ago: the user may still correct the answer. */
export interface AnsweredQuestion extends AskedQuestion {
  readonly answer: Answer;
  readonly answeredAt: number;
  readonly settledBy?: SettledBy;
}

/** The lead agent's reading of the user's words about a question. */
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

/** Why a settlement by the lead agent does not count. */
export type SettleRefusal =
  /** The quotation is not in the user's words. */
  | 'not_said'
  /** An approval is given by the user's own yes or no, or by a button. */
  | 'needs_consent'
  | 'unknown_option'
  /** These words have settled the question before, or it was answered otherwise. */
  | 'already_settled'
  /** The asker has gone on with the answer. */
  | 'too_late'
  /** There is no such question, or it was not put to this user before these words. */
  | 'not_open';

export interface CallRecord {
  readonly callId: string;
  readonly name: string;
  /** The lead agent whose model made the call. */
  readonly agentName: string;
  /** JSON text as the model wrote it. */
  readonly arguments: string;
  /** The arguments, once they are validated. */
  readonly input: unknown;
  /** The output for the model, once it is known. */
  readonly output: unknown;
  /** The words of the user that caused the call. */
  readonly request: string | null;
  /**
   * The id of that utterance. @defaultValue null: no utterance caused it, or an earlier version wrote the
   * record
   */
  readonly requestId?: string | null;
  /** The identity behind that utterance, if the app vouched for one. @defaultValue null */
  readonly requestedBy?: string | null;
  readonly subagentId: string | null;
  readonly outcome: Outcome | null;
  /** Whether the model has its answer: the result, or a pending message. */
  readonly isAnswered: boolean;
  /** When its subagent ended; 0 before that. */
  readonly endedAt: number;
  /** How its result reaches the user. */
  readonly delivery: DeliveryMode;
  /** Whether it was run and failed or timed out. */
  readonly failed?: boolean;
  /** The reason for its cancellation; absent if it was not cancelled or no reason was given. */
  readonly cancelReason?: string;
}

export interface DeliveryRecord {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
  /** The prompt for the lead model; text if an earlier version wrote it. */
  readonly prompt: Prompt;
  readonly subagentId: string | null;
  /** The lead agent's call whose result the delivery is. */
  readonly callId: string | null;
  /** Whether this delivery answers a call that still waits. */
  readonly answersCall: boolean;
  /** The result of a spawned subagent, if it may be told together with others. */
  readonly result?: ToldResult;
  readonly at: number;
}

/**
 * Speech of the lead agent, calls and results; everything but the user's words. Times are start times in
 * milliseconds since 1970.
 */
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
      /** The id of the utterance that caused it. @defaultValue null: no utterance */
      readonly requestId?: string | null;
      /** As of `assistant.said`; absent: unknown, and what it asked for counts as unanswered. */
      readonly repliesTo?: string | null;
      /** The same response makes another call after it, with an entry of its own. @defaultValue false */
      readonly isFollowed?: boolean;
      /** The response that made it; its message has this id. Absent: unknown. */
      readonly responseId?: string;
      /** As of `assistant.said`. */
      readonly after?: string;
      /** What the provider gets back with the call, and with the parts before it. Absent: nothing. */
      readonly echo?: Echo;
      /** The time limit of an inline tool, in milliseconds. @defaultValue 30000 */
      readonly timeoutMs?: number;
      /** Whether its result may be told with others. @defaultValue false */
      readonly isConsolidated?: boolean;
    }
  /** A note of the runtime to the model, or one in place of a user turn. */
  | {
      readonly type: 'conversation.noted';
      readonly itemId: string;
      readonly role: 'system' | 'user';
      readonly text: string;
      readonly saidAt: number;
      /** The note; absent if an earlier version wrote the text. */
      readonly note?: Note;
    }
  /** A complete message of the lead agent. Without text: it said nothing, or nothing beside its calls. */
  | {
      readonly type: 'assistant.said';
      readonly itemId: string;
      readonly text: string;
      readonly saidAt: number;
      /** The item that it precedes, which began in the same millisecond. */
      readonly before?: string;
      /**
       * The last item that the model had read when it began to reply. Null: it told a delivery, or is a reply that
       * was cut off and will be given again. Absent: unknown; it counts as a reply to all that stands before it.
       */
      readonly repliesTo?: string | null;
      /**
       * The item that it follows: the last one that the model had read, or the last call that it had made. What came
       * meanwhile stands after it. Absent: unknown; it stands where it began.
       */
      readonly after?: string;
      /** What the provider gets back with the parts after the last call. Absent: nothing, or it was broken off. */
      readonly echo?: Echo;
    }
  /** The user heard only this part of the message. */
  | {
      readonly type: 'assistant.cut';
      readonly itemId: string;
      readonly text: string;
      readonly audioHeardMs: number;
      /** Absent: the message had already been said. */
      readonly saidAt?: number;
      readonly before?: string;
      /** As of `assistant.said`. */
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
      /** Whether no further output of this call follows. */
      readonly isOver: boolean;
      /** Whether the lead agent is to say something to it. False: the outbox tells it, or nobody. @defaultValue true */
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
      /** For telling it together with others. Absent: it is told separately. */
      readonly result?: ToldResult;
    }
  /** A subagent was spawned for this utterance: the result under this id may be told with others. */
  | { readonly type: 'result.expected'; readonly deliveryId: string; readonly requestId: string }
  /** The agent of a service is to examine an event, and may report it to the user. */
  | { readonly type: 'invocation.wanted'; readonly eventId: string }
  | {
      readonly type: 'user.said';
      readonly utteranceId: string;
      readonly text: string;
      readonly channel: 'speech' | 'typing';
      /** When the utterance began. */
      readonly startedAt: number;
      /** The language tag for interpreting an answer. @defaultValue 'en' */
      readonly language?: string;
      /**
       * The interpretation of the words for the question that has the floor; absent if there is none, or if
       * an earlier version wrote the event.
       */
      readonly reading?: Reading;
      /**
       * The delivery that was being told, which these words put off ("not now"); absent if there is none, or if
       * an earlier version wrote the event.
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
      /** The identity that the app vouched for. */
      readonly by?: string;
    }
  /** The lead agent has settled a question by a call, from words of the user. */
  | ({
      readonly type: 'question.settled';
      readonly requestId: string;
      readonly action: SettleAction;
      readonly optionId?: string;
      readonly text?: string;
      /** The words of the user that the call rests on. */
      readonly quote: string;
      /** Absent: it counts. */
      readonly refused?: SettleRefusal;
      /** The action of the approval is read back after the reply. */
      readonly readsBack?: true;
    } & SettledBy)
  /** The lead agent's model has used this since its last report. */
  | {
      readonly type: 'usage.reported';
      /** Or `summary`, `facts`, `claim_judge`. */
      readonly agentName: string;
      readonly usage: LeadUsage;
      /** When the call began, in milliseconds since 1970. Absent: it is one of the response under way. */
      readonly beganAt?: number;
      /** How long the call of the response under way took, in milliseconds. Absent: it is a voice model's, or failed. */
      readonly tookMs?: number;
      /** Absent: an earlier version reported it. */
      readonly model?: ModelNames;
    }
  /** A model call for the lead agent's response has failed, and is made again at `retryAt`: at most `attempts` calls. */
  | {
      readonly type: 'model.retried';
      readonly agentName: string;
      /** The calls for this response that have failed. */
      readonly failed: number;
      readonly attempts: number;
      /** In milliseconds since 1970. */
      readonly retryAt: number;
      readonly error: Failure;
      /** How long the call that failed took, in milliseconds. Absent: it is a voice model's. */
      readonly tookMs?: number;
      /** Absent: it is a voice model's. */
      readonly model?: ModelNames;
    }
  /** The last model call for the lead agent's response has failed: there is none. */
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
      /** The identity that the app vouched for. */
      readonly by?: string;
    }
  /** The current lead agent has entered: its `onEnter` is done. */
  | { readonly type: 'agent.entered'; readonly agentName: string }
  | {
      readonly type: 'transfer.requested';
      readonly transferId: string;
      readonly to: string;
      /** `agent.entered` follows, because the agent has an `onEnter` or a greeting. @defaultValue false */
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

/** A result that is to be told to the user. */
export interface ToldResult {
  readonly toolName: string;
  readonly subagentId: string | null;
  /** Null if it completed. */
  readonly error: Failure | null;
  /** The result; the partial result if it did not complete. */
  readonly text: string;
  /** Keys that the subagent left in working memory. */
  readonly notes: readonly string[];
  /** Claims of the subagent that its tool calls do not support. */
  readonly unverified: readonly string[];
  /** Whether its last words announce work that it has not done. */
  readonly isUnfinished: boolean;
  /** The arguments of a call that failed: there may have been several of one tool. */
  readonly input?: unknown;
}

/** The treatment of an utterance while a question is presented. */
export type Reading =
  /**
   * Try it as the answer. `decisive`: unambiguous and no consent, so that it may interrupt the question. `more`: a wish of its own
   * follows, and the lead agent gets the words, too.
   */
  | {
      readonly to: 'question';
      readonly answer: Answer;
      readonly decisive: boolean;
      readonly more?: true;
    }
  /** Ask again: it was addressed to the question but cannot be interpreted. */
  | { readonly to: 'again' }
  /** Repeat the question with its options, on the user's request. */
  | { readonly to: 'repeat' }
  /** A yes while several approvals wait: read back the action that it would approve. */
  | { readonly to: 'readBack' }
  /** Only more time was requested: wait this long, and then present the question again. */
  | { readonly to: 'hold'; readonly forMs: number }
  /**
   * For the lead agent. `about`: the question that had the floor, which the lead agent settles if the words were
   * about it. Absent if there was none, or if an earlier version wrote the reading. `readsBack`: something else was
   * said since, so this yes or no may mean that: the question is read back after the reply.
   */
  | { readonly to: 'lead'; readonly about?: string; readonly readsBack?: true };

/**
 * Returns the id of the delivery of a notice about this: an event of a service, a question of a subagent, a
 * subagent that has ended. It is always the same id, so that a repetition after a crash is recognised.
 */
export function deliveryAbout(id: string): string {
  return `${PREFIX}${id}`;
}
const PREFIX = 'dlv_';
/** Returns the subject of a delivery that `deliveryAbout` named. */
export function subjectOf(deliveryId: string): string {
  return deliveryId.slice(PREFIX.length);
}

/** Words of the user. */
export interface Utterance {
  readonly id: string;
  readonly text: string;
  /** When it began, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly typed: boolean;
}

/** The meaning of words that answered a question. */
export interface AnswerGiven {
  /** The label of the option that they chose; null: none, or they approved or denied an action. */
  readonly choice: string | null;
  readonly isApproval: boolean;
}

/** The meaning of words to a question of a subagent: its answer, a request for time or to hear it again, or none of these. */
export type WordsToQuestion = AnswerGiven | 'time' | 'repeat' | null;
