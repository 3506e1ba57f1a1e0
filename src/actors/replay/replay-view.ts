// The state of a session after an entry: plain records, for people, screens and tests.

import type { DeliveryKind, DeliveryPriority } from '../../machines/index.ts';
import type { ConnectionState, QuestionView, SubagentState } from '../contracts/session-views.ts';
import type { Outcome } from '../contracts/outcome.ts';

/** A line of the conversation as the lead model reads it: words, calls, their results. */
export interface ReplayItem {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'system' | 'tool_call' | 'tool_result' | 'transfer';
  readonly text: string;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** Whether the user interrupted it. */
  readonly interrupted: boolean;
}

/** A tool call of the lead agent that is not over. */
export interface ReplayCall {
  readonly callId: string;
  readonly name: string;
  /** A state such as `executing`, `delegated`, `settled`. */
  readonly state: string;
  /** The batch that its result is told with; null if there is none. */
  readonly batchId: string | null;
}

/** A delivery that is to be spoken. */
export interface ReplayDelivery {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** `resting`: a card on the screen, which is not spoken by itself. */
  readonly state: 'pending' | 'resting' | 'offered' | 'playing';
  readonly attempts: number;
  readonly text: string;
}

export interface ReplaySubagent {
  readonly id: string;
  /** The `name` of its configuration. */
  readonly name: string;
  readonly parentId: string | null;
  /** The call that spawned it: of the lead agent, or of its parent. */
  readonly callId: string | null;
  readonly task: string;
  readonly state: SubagentState;
  /** The current model step, from 1; 0 before the first. */
  readonly step: number;
  /** The number of messages in its model's conversation. */
  readonly messages: number;
  /** The number of its settled tool calls. */
  readonly settledCalls: number;
  /** Its end; null while it lives. */
  readonly outcome: Outcome | null;
}

/**
 * A session after one of its entries. An actor that has ended is included only after the entry that ended it.
 */
export interface ReplayView {
  /** When the entry was accepted, in milliseconds since 1970. */
  readonly at: number;
  readonly connection: ConnectionState;
  readonly client: 'attached' | 'detached';
  readonly floor: 'user' | 'model' | 'nobody';
  /** The current lead agent; null if there is no session (a program's subagents). */
  readonly agent: string | null;
  /** The question to which the user's words are addressed; null: they are addressed to the lead agent. */
  readonly owner: string | null;
  readonly questions: readonly QuestionView[];
  readonly calls: readonly ReplayCall[];
  readonly outbox: {
    /** The delivery being spoken. */
    readonly current: ReplayDelivery | null;
    /** The waiting deliveries, in order. */
    readonly pending: readonly ReplayDelivery[];
    /** The number of places that are reserved for results. */
    readonly reserved: number;
  };
  readonly transcript: readonly ReplayItem[];
  /** All subagents, including those that have ended. */
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
};
