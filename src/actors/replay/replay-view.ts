// What a session was after an entry: plain records, for people, screens and tests.

import type { DeliveryKind, DeliveryPriority } from '../../machines/index.ts';
import type { ConnectionState, QuestionView, SubagentState } from '../contracts/session-views.ts';
import type { Outcome } from '../contracts/outcome.ts';

/** A line of the conversation as the lead model reads it: words, calls, their results. */
export interface ReplayItem {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'system' | 'tool_call' | 'tool_result' | 'transfer';
  readonly text: string;
  /** When it began; milliseconds since 1970. */
  readonly at: number;
  /** The user broke it off. */
  readonly interrupted: boolean;
}

/** A tool call of the lead agent that is not over. */
export interface ReplayCall {
  readonly callId: string;
  readonly name: string;
  /** Such as `executing`, `delegated`, `settled`. */
  readonly state: string;
  /** The batch that its result is told with, or null. */
  readonly batchId: string | null;
}

/** Something that wants to be said. */
export interface ReplayDelivery {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** `resting`: a card on the screen, which is not told by itself. */
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
  /** The model step it is in, from 1; 0 before the first. */
  readonly step: number;
  /** How many messages its model has said or read. */
  readonly messages: number;
  /** Its tool calls that are settled. */
  readonly settledCalls: number;
  /** How it ended; null while it lives. */
  readonly outcome: Outcome | null;
}

/** A session after one of its entries. What is over stands in it only after the entry that ended it. */
export interface ReplayView {
  /** When the entry was accepted; milliseconds since 1970. */
  readonly at: number;
  readonly connection: ConnectionState;
  readonly client: 'attached' | 'detached';
  readonly floor: 'user' | 'model' | 'nobody';
  /** Who leads; null where there is no session (a program's subagents). */
  readonly agent: string | null;
  /** The question that owns what the user says; null: the lead agent does. */
  readonly owner: string | null;
  readonly questions: readonly QuestionView[];
  readonly calls: readonly ReplayCall[];
  readonly outbox: {
    /** What is being said. */
    readonly current: ReplayDelivery | null;
    /** What waits, in order. */
    readonly pending: readonly ReplayDelivery[];
    /** Places that are kept for results. */
    readonly reserved: number;
  };
  readonly transcript: readonly ReplayItem[];
  /** Also those that have ended. */
  readonly subagents: readonly ReplaySubagent[];
}

/** What there is before anything is. */
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
