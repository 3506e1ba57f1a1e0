// What a session shows of itself: plain records for screens, and one union of events.
// They are projections; the machines own the lives behind them.

import type {
  Failure,
  CallAnswer,
  DeliveryKind,
  DeliveryPriority,
  DropReason,
  HearingGrade,
} from '../../machines/index.ts';
import type { MemoryFact } from '../ports/memory-store.ts';
import type { DroppedEvent, ServiceView } from './service-view.ts';
import type { Outcome } from './outcome.ts';

/** One line of the conversation. */
export interface TranscriptItem {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  /** Empty where it was broken off before anything was heard: there is nothing to show. */
  readonly text: string;
  /** False while more may follow. */
  readonly final: boolean;
  /** When it began; milliseconds since 1970. */
  readonly at: number;
  /** The user broke it off: what follows `text` was not heard. */
  readonly interrupted?: boolean;
  /** It was said only to fill a silence; neither the model nor a subagent knows of it. */
  readonly filler?: boolean;
  /** In a text session: the delivery that this tells in full. `session.shown` acknowledges it. */
  readonly deliveryId?: string;
  /** The results that are told together in it. */
  readonly deliveryIds?: readonly string[];
}

export type SubagentState =
  | 'spawning'
  | 'ready'
  | 'running'
  | 'waiting_for_input'
  | 'waiting_for_children'
  | 'completed'
  | 'failed'
  | 'cancelled';

export interface SubagentView {
  readonly id: string;
  /** The `name` of its configuration. */
  readonly name: string;
  /** The subagent that spawned it; null for one of the lead agent. */
  readonly parentId: string | null;
  /** 1 for one of the lead agent. */
  readonly depth: number;
  /** The lead agent's tool call that it works for. */
  readonly callId: string | null;
  readonly toolName: string;
  readonly task: string;
  readonly state: SubagentState;
  /** It has shown no sign of life for long; the next one clears this. */
  readonly hung: boolean;
  /** The model step it is in, from 1; 0 before the first. */
  readonly step: number;
  readonly maxSteps: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** The latest progress. */
  readonly progress: string | null;
  readonly outcome: Outcome | null;
}

/** A button. */
export interface QuestionOption {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
}

export interface QuestionView {
  /** What an answer must name. */
  readonly requestId: string;
  readonly subagentId: string;
  readonly subagentName: string;
  readonly kind: 'question' | 'approval';
  readonly question: string;
  /** Empty: any words will do. */
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
  /** When the time to answer is over; null while the clock stands still. */
  readonly dueAt: number | null;
  /** The user asked for time: when it is put to them again, milliseconds since 1970. */
  readonly heldUntil?: number;
  readonly timeoutMs: number;
  /** What was answered, in words. */
  readonly answer: string | null;
  /** What an approval is about: this tool with exactly these arguments. */
  readonly action?: { readonly toolName: string; readonly input: unknown };
  /** Only these identities may answer; absent: anybody may. */
  readonly answerableBy?: readonly string[];
  /** Who answered, where the app vouched for somebody. */
  readonly answeredBy?: string;
}

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
  /** Why it will not be said. */
  readonly dropped: DropReason | null;
  readonly attempts: number;
  /** The identity that the app named when it was shown or dismissed, where it named one. */
  readonly by?: string;
  /** It could not be said; show it. */
  readonly card: boolean;
  readonly at: number;
}

/** Tokens of the lead agent's voice model; null: its wire has not said. Subagents have budgets of their own. */
export interface UsageView {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** What the provider of the voice model still allows, as it last said. */
export interface LimitView {
  /** Such as `requests` or `tokens`. */
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** Until it is full again, in milliseconds from when it was said. */
  readonly resetInMs: number;
}

export type ConnectionState =
  | 'created'
  | 'connecting'
  | 'active'
  | 'reconnecting'
  | 'transferring'
  | 'closing'
  | 'closed'
  /** It has left this process, and goes on from its journal where it is started again. */
  | 'suspended';

/** Everything that happens in a session, in order. Facts are in the past tense, commands imperative. */
export type SessionEvent =
  | { readonly type: 'connection.changed'; readonly state: ConnectionState }
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
      /** How it came to its answer; `pending`: the work goes on in the background. */
      readonly status: CallAnswer;
    }
  /** After a crash: a call that was being run and is not run again; somebody must look what became of it. */
  | ({ readonly type: 'tool.in_doubt' } & DoubtfulCall)
  /**
   * The session has left this process, and goes on from its journal when it is started again.
   * `error`: it was not asked to: its journal refuses it, since another process has it.
   */
  | { readonly type: 'session.suspended'; readonly error: Failure | null }
  /** The session goes on from what the journal has of it. */
  | ({ readonly type: 'session.recovered' } & RecoveryReport)
  | { readonly type: 'subagent.changed'; readonly subagent: SubagentView }
  | { readonly type: 'question.changed'; readonly question: QuestionView }
  | { readonly type: 'delivery.changed'; readonly delivery: DeliveryView }
  | { readonly type: 'service.changed'; readonly service: ServiceView }
  /** An event of a service that no agent looked at, or not to the end. */
  | { readonly type: 'service.dropped'; readonly event: DroppedEvent }
  /** An agent begins to lead; `from` led before. After a transfer that failed it is the same one again. */
  | { readonly type: 'agent.entered'; readonly agentName: string; readonly from: string | null }
  | { readonly type: 'agent.exited'; readonly agentName: string; readonly to: string }
  | {
      readonly type: 'transfer.completed';
      readonly from: string;
      readonly to: string;
      /** The call of `transfer_to_agent`, if it was one. */
      readonly callId: string | null;
    }
  /** The agent that led before leads on. */
  | {
      readonly type: 'transfer.failed';
      readonly from: string;
      readonly to: string;
      readonly callId: string | null;
      readonly code: string;
      readonly message: string;
    }
  /** The model has said what it had to say. `turn` counts from 1. */
  | { readonly type: 'turn.ended'; readonly turn: number; readonly agentName: string }
  /** A lead agent's call was handed to a subagent. */
  | {
      readonly type: 'subagent.delegated';
      readonly callId: string;
      readonly agentName: string;
      readonly subagentId: string;
      readonly subagentName: string;
      readonly lifetime: 'ephemeral' | 'session';
    }
  /** The beginning of the conversation was put into fewer words, which stand for `items` items. */
  | { readonly type: 'conversation.summarised'; readonly items: number; readonly summary: string }
  /** Facts were remembered from the conversation. */
  | { readonly type: 'memory.distilled'; readonly facts: readonly MemoryFact[] }
  /** An agent or a tool has something for the clients. */
  | { readonly type: 'client.json'; readonly data: unknown }
  /** The client must drop what it has not played yet, and report what it has. */
  | { readonly type: 'playout.clear' }
  | { readonly type: 'speech.interrupted'; readonly itemId: string; readonly playedMs: number }
  /** What the user said was no interruption: speech goes on with `itemId` at `playedMs`. The rest comes as a new item. */
  | { readonly type: 'speech.resumed'; readonly itemId: string; readonly playedMs: number }
  /** A word of somebody who listens ("mm-hm"): nobody answers it. */
  | { readonly type: 'backchannel.heard'; readonly utteranceId: string; readonly text: string }
  /** The voice model has used `used` since it last said so, and `usage` in this session. */
  | { readonly type: 'usage.changed'; readonly usage: UsageView; readonly used: UsageView }
  | { readonly type: 'limits.changed'; readonly limits: readonly LimitView[] }
  /** Something went wrong that the session survives. */
  | {
      readonly type: 'error.reported';
      readonly code: string;
      readonly message: string;
      /** With `UNFOLDABLE_ENTRY`: the entry of the journal that was set aside. */
      readonly entry?: SetAsideEntry;
    };

/** A tool call whose fate nobody knows. */
export interface DoubtfulCall {
  /** Null: a call of the lead agent. */
  readonly subagentId: string | null;
  readonly subagentName: string | null;
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The key that it was run with: ask the other side about it. */
  readonly idempotencyKey: string;
}

/** What a session that goes on after a crash found in its journal. */
export interface RecoveryReport {
  /** Entries that were folded again. */
  readonly entries: number;
  /** Subagents that go on. */
  readonly resumed: readonly string[];
  /** Subagents that cannot go on; each has ended as `lost`, and says why. */
  readonly lost: readonly { readonly subagentId: string; readonly reason: string }[];
  /** Entries that could not be taken in, and were not set aside before. */
  readonly setAside: readonly SetAsideEntry[];
  /** Since the last entry, in milliseconds. */
  readonly downMs: number;
}

/** What `session.store` holds. */
export interface SessionState {
  readonly connection: ConnectionState;
  readonly floor: 'user' | 'model' | 'nobody';
  /** The name of the agent that leads; null before the session is connected. */
  readonly agent: string | null;
  readonly transcript: readonly TranscriptItem[];
  readonly subagents: readonly SubagentView[];
  readonly questions: readonly QuestionView[];
  readonly deliveries: readonly DeliveryView[];
  /** Of the whole session, over all its connections. */
  readonly usage: UsageView;
  /** Empty until the wire has said. */
  readonly limits: readonly LimitView[];
}

/** What became of an answer. */
export type AnswerReceipt =
  /** `by`: the identity that the answer is recorded under, where there is one. */
  | { readonly accepted: true; readonly by?: string }
  | {
      readonly accepted: false;
      readonly reason:
        /** The question says who may answer it, and this is nobody of them: it stays open. */
        | 'not_allowed'
        | 'unknown'
        | 'queued'
        | 'not_presented'
        | 'over'
        | 'invalid_option'
        | 'unclear';
    };

/** Where an entry is that was set aside, and why. */
export interface SetAsideEntry {
  readonly scope: string;
  readonly unit: string;
  readonly seq: number;
  /** The type of its event. */
  readonly event: string;
  readonly reason: string;
}
