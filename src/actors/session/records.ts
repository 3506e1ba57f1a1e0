// What the lives of a session are about. The machines hold ids and states; the words,
// inputs and results are kept here, under the same ids, folded from the same events.

import type { DeliveryKind, DeliveryPriority, Failure, StepCall } from '../../machines/index.ts';
import type { QuestionOption } from '../session-views.ts';
import type { Outcome } from '../subagent/outcome.ts';

/** How an answer reads to the subagent that asked. */
export interface Answer {
  /** The user's words, or the label of the option. */
  readonly userResponse: string;
  readonly optionId?: string;
  /** For an approval. */
  readonly approved?: boolean;
}

export interface AskedQuestion {
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly kind: StepCall['kind'] & ('question' | 'approval');
  readonly question: string;
  readonly options: readonly QuestionOption[];
  readonly timeoutMs: number;
}

export interface QuestionRecord extends AskedQuestion {
  readonly askedAt: number;
  answer: Answer | null;
  /** Spoken words that could not be taken, since it was last presented because of them. */
  timesUnclear: number;
}

export interface CallRecord {
  readonly callId: string;
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
  /** The arguments, once they are known to be valid. */
  input: unknown;
  /** What the model is told, once it is known. */
  output: unknown;
  subagentId: string | null;
  outcome: Outcome | null;
  /** When its subagent ended; 0 before. */
  endedAt: number;
}

export interface DeliveryRecord {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
  readonly prompt: string;
  readonly subagentId: string | null;
  /** The lead agent's call whose result it is. */
  readonly callId: string | null;
  /** The call still waits for its answer: this is it. */
  readonly answersCall: boolean;
  readonly at: number;
}

/** The events of a session's unit that create a life, or bring words. */
export type SessionInputEvent =
  | ({ readonly type: 'question.asked' } & AskedQuestion)
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
    }
  | {
      readonly type: 'notice.posted';
      readonly deliveryId: string;
      readonly kind: 'result' | 'notice' | 'progress';
      readonly priority: DeliveryPriority;
      readonly label: string;
      readonly text: string;
      readonly prompt: string;
      readonly subagentId: string | null;
      readonly ttlMs: number | null;
      readonly reserved: boolean;
    }
  | {
      readonly type: 'user.said';
      readonly utteranceId: string;
      readonly text: string;
      readonly channel: 'speech' | 'typing';
      /** When the utterance began. */
      readonly startedAt: number;
    }
  | {
      readonly type: 'answer.given';
      readonly ticket: string;
      readonly requestId: string;
      readonly optionId?: string;
      readonly text?: string;
      readonly approved?: boolean;
    }
  | { readonly type: 'call.refused'; readonly callId: string; readonly error: Failure };
