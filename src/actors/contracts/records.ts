// What the lives of a session are about. The machines hold ids and states; the words,
// inputs and results are kept here, under the same ids, folded from the same events.

import type {
  DeliveryKind,
  DeliveryMode,
  DeliveryPriority,
  Failure,
  StepCall,
} from '../../machines/index.ts';
import type { Note, Prompt } from '../notes/note.ts';
import type { QuestionOption } from './session-views.ts';
import type { Outcome } from './outcome.ts';
import type { DirectiveScope } from './directives.ts';

/** How an answer reads to the subagent that asked. */
export interface Answer {
  /** The user's words, or the label of the option. */
  readonly userResponse: string;
  readonly optionId?: string;
  /** For an approval. */
  readonly approved?: boolean;
  /** Whom the app vouched for; left out: nobody. */
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
  /** What an approval consents to: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /** Only these identities may answer. @defaultValue anybody may */
  readonly answerableBy?: readonly string[];
}

export interface QuestionRecord extends AskedQuestion {
  readonly askedAt: number;
  answer: Answer | null;
  /** Spoken words that could not be taken, since it was last presented because of them. */
  timesUnclear: number;
  /** An approval that was asked again in words, once: after that its buttons are left. */
  askedAgain: boolean;
  /** Consent was given while other approvals wait too: this one's action is read back first. */
  readBack: boolean;
}

export interface CallRecord {
  readonly callId: string;
  readonly name: string;
  /** The lead agent whose model made the call. */
  readonly agentName: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
  /** The arguments, once they are known to be valid. */
  input: unknown;
  /** What the model is told, once it is known. */
  output: unknown;
  /** What the user said that it was made for. */
  readonly request: string | null;
  /** The utterance. @defaultValue null: nobody asked for it, or an earlier version wrote it down */
  readonly requestId?: string | null;
  /** Who said that, where the app vouched for somebody. @defaultValue null */
  readonly requestedBy?: string | null;
  subagentId: string | null;
  outcome: Outcome | null;
  /** The model has its answer: the result, or that the work goes on. */
  isAnswered: boolean;
  /** When its subagent ended; 0 before. */
  endedAt: number;
  /** How its result wants to reach the user. */
  delivery: DeliveryMode;
  /** It was run, and failed or took too long. */
  failed?: boolean;
  /** Why it was cancelled; absent while it was not, or where nobody said why. */
  cancelReason?: string;
}

export interface DeliveryRecord {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
  /** What the lead model is told; text: by an earlier version. */
  readonly prompt: Prompt;
  readonly subagentId: string | null;
  /** The lead agent's call whose result it is. */
  readonly callId: string | null;
  /** The call still waits for its answer: this is it. */
  readonly answersCall: boolean;
  /** What a spawned subagent came to, where it may be told together with others. */
  readonly result?: ToldResult;
  readonly at: number;
}

/** What was said, called and answered, and is not the user's. Times are when it began, milliseconds since 1970. */
export type ConversationEvent =
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
      /** @defaultValue when it was taken in */
      readonly calledAt?: number;
      /** Whose model made it. @defaultValue the agent that leads */
      readonly agentName?: string;
      /** The utterance that it was made for. @defaultValue null: nobody asked for it */
      readonly requestId?: string | null;
      /** The same response makes another call after it, with an entry of its own. @defaultValue false */
      readonly isFollowed?: boolean;
      /** Time that its tool may take, if it is an inline one, in milliseconds. @defaultValue 30000 */
      readonly timeoutMs?: number;
      /** May its result be told with others? @defaultValue false */
      readonly isConsolidated?: boolean;
    }
  /** A word of the runtime to the model, or in the user's place. */
  | {
      readonly type: 'conversation.noted';
      readonly itemId: string;
      readonly role: 'system' | 'user';
      readonly text: string;
      readonly saidAt: number;
      /** The note that it is. Left out: an earlier version wrote the text. */
      readonly note?: Note;
    }
  /** All that the lead agent said in one go. */
  | {
      readonly type: 'assistant.said';
      readonly itemId: string;
      readonly text: string;
      readonly saidAt: number;
      /** It stands before this item, which began in the same millisecond. */
      readonly before?: string;
    }
  /** The user heard only this of it. */
  | {
      readonly type: 'assistant.cut';
      readonly itemId: string;
      readonly text: string;
      readonly audioHeardMs: number;
      /** Left out: it has been said. */
      readonly saidAt?: number;
      readonly before?: string;
    }
  | {
      readonly type: 'call.answered';
      readonly callId: string;
      readonly answeredAt: number;
      /** What the model was told. Left out: what the call's record says. */
      readonly output?: unknown;
      /** What the model was told is an error. @defaultValue false */
      readonly failed?: boolean;
      /** Nothing comes of this call any more. */
      readonly isOver: boolean;
    };

/** The events of a session's unit that create a life, or bring words. */
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
      /** For telling it together with others. Absent: it is told by itself. */
      readonly result?: ToldResult;
    }
  /** A subagent that was spawned for this utterance: the result under this id may be told with others. */
  | { readonly type: 'result.expected'; readonly deliveryId: string; readonly requestId: string }
  /** A service's agent shall look at an event, and may find something to tell. */
  | { readonly type: 'invocation.wanted'; readonly eventId: string }
  | {
      readonly type: 'user.said';
      readonly utteranceId: string;
      readonly text: string;
      readonly channel: 'speech' | 'typing';
      /** When the utterance began. */
      readonly startedAt: number;
      /** A language tag: what an answer is read in. @defaultValue 'en' */
      readonly language?: string;
      /** What they are to the question that has the floor; absent: none could be meant, or an earlier version wrote it. */
      readonly reading?: Reading;
      /** Who said it, where the app vouched for somebody. */
      readonly by?: string;
    }
  | {
      readonly type: 'answer.given';
      readonly ticket: string;
      readonly requestId: string;
      readonly optionId?: string;
      readonly text?: string;
      readonly approved?: boolean;
      /** Whom the app vouched for. */
      readonly by?: string;
    }
  | { readonly type: 'call.refused'; readonly callId: string; readonly error: Failure }
  /** The one that leads has entered: its `onEnter` is done. */
  | { readonly type: 'agent.entered'; readonly agentName: string }
  | {
      readonly type: 'transfer.requested';
      readonly transferId: string;
      readonly to: string;
      /** `agent.entered` follows: it has an `onEnter`, or a greeting. @defaultValue false */
      readonly enters?: true;
    }
  | {
      readonly type: 'directive.set';
      readonly key: string;
      readonly value: string | null;
      readonly scope: DirectiveScope;
    }
  /** `covers`: the ids of the items that the summary stands for. */
  | {
      readonly type: 'conversation.summarised';
      readonly summary: string;
      readonly covers: readonly string[];
    };

/** A result that shall be told. */
export interface ToldResult {
  readonly toolName: string;
  readonly subagentId: string | null;
  /** Null: it completed. */
  readonly error: Failure | null;
  /** The result; what there was of it when it did not complete. */
  readonly text: string;
  /** Keys that the subagent left in working memory. */
  readonly notes: readonly string[];
  /** What it says that it has done, and its tools have not. */
  readonly unverified: readonly string[];
  /** Its last words announce work that it has not done. */
  readonly isUnfinished: boolean;
}

/** What shall become of an utterance while a question is up. */
export type Reading =
  /** Try it as the answer. `decisive`: beyond doubt, so that it may interrupt the question. */
  | { readonly to: 'question'; readonly answer: Answer; readonly decisive: boolean }
  /** Ask again: it was meant for the question, but cannot be taken. */
  | { readonly to: 'again' }
  /** Say the question again, with its options: the user wants to hear it. */
  | { readonly to: 'repeat' }
  /** A yes, while more than one approval waits: read back what it would be a yes to. */
  | { readonly to: 'readBack' }
  /** Nothing but time was asked for: wait so long, and then put the question again. */
  | { readonly to: 'hold'; readonly forMs: number }
  | { readonly to: 'lead' };

/**
 * The delivery of the notice about this: an event of a service, what a subagent asks, a subagent
 * that has ended. It is always the same one, so that what is posted again after a crash is known.
 */
export function deliveryAbout(id: string): string {
  return `${PREFIX}${id}`;
}
const PREFIX = 'dlv_';
/** What this delivery is about, if it was named by `deliveryAbout`. */
export function subjectOf(deliveryId: string): string {
  return deliveryId.slice(PREFIX.length);
}

/** Words of the user. */
export interface Utterance {
  readonly id: string;
  readonly text: string;
  /** When it began; milliseconds since 1970. */
  readonly startedAt: number;
  readonly typed: boolean;
}
