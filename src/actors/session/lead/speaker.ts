// The port through which the lead agent talks to the user. A voice session implements it with a transport, a text session
// with a streaming model.

import type { Prompt } from '../../notes/note.ts';
import type { DeliveryKind, DeliveryPriority, Failure } from '../../../machines/index.ts';
import type { Utterance, WordsToQuestion } from '../../contracts/records.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Shown } from '../../runtime/hosting.ts';

/** The time after which a running tool no longer delays due deliveries, in milliseconds. */
export const HOLDS_FLOOR_MS = 2000;

/** An item that has to be told now, and the number of the attempt. */
export interface Offer {
  readonly deliveryId: string;
  /** The results that are told together in the item; absent: it is a single delivery. */
  readonly deliveryIds?: readonly string[];
  /** Identifies the attempt; every `delivery.*` event about it carries this number. */
  readonly generation: number;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /**
   * The first attempt of which the user heard at least a sentence before interrupting it: this attempt continues from
   * there. Absent: it starts from the beginning.
   */
  readonly begunIn?: number;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** The prompt for the lead model, which tells the content in its own words. */
  readonly prompt: Prompt;
  /** The role of the prompt in the conversation. @defaultValue 'system' */
  readonly role?: 'system' | 'user';
  /** The content as text, for a screen. */
  readonly text: string;
  /** The lead agent's call that the item answers, if the call has no answer yet. */
  readonly answersCallId: string | null;
}

/** A subagent's own words, for the user and not for the model. */
export interface SubagentWords {
  readonly kind: 'progress' | 'result';
  readonly subagentId: string;
  /** The `name` of the subagent's configuration. */
  readonly subagentName: string;
  readonly text: string;
}

/** A resting delivery: the model could not tell it, must not tell it, or told it without an acknowledgement. */
export interface RestingCard {
  readonly kind: 'card';
  readonly deliveryId: string;
  /** Reports that the user has seen it. */
  readonly seen: () => void;
}

/** The output of a tool call; with a `noteId`, the output is a `Prompt` with this id. */
export interface ToolAnswer {
  readonly output: unknown;
  /** Whether the model responds to the output. */
  readonly respond: boolean;
  readonly noteId?: string;
}

/** A subagent to which the user spoke, and the meaning of the words for its question. */
export interface SpokenTo {
  readonly subagentName: string;
  readonly were: WordsToQuestion;
}

/**
 * The lead agent's side of a session. Duties of an implementation: it reports to the session as events: `transport.ready /
 * lost`, `response.requested / waiting / ended`, `utterance.*`, `playout.*`, `delivery.playing / heard / interrupted /
 * failed` with the offer's generation. Guarantee to it: it gets one offer at a time, and only while the gate is open or
 * after `stop(null)`.
 */
export interface Speaker {
  /** The machines of the implementation, as their actors show them. */
  machines?(): Iterable<Shown>;
  /** Whether the user has spoken words that are not transcribed yet. Absent: the model reads text. */
  readonly awaitsWords?: boolean;
  connect(): void;
  /** Closes the connection, also one that is being opened; `forGood`: no connection follows. */
  disconnect(forGood: boolean): void;
  /** Prepares the model for the agent `to`; reports `transfer.ended` with this id, once. */
  transfer(transferId: string, to: string): void;
  /**
   * Reports that the session's transfer is over; after an error the model is again, or still, that of the former agent.
   */
  transferEnded(error: Failure | null): void;
  /**
   * Begins to speak with the greeting of the current agent, if it has one; after a crash, with the reply that was due
   * then, or with nothing (null).
   */
  begin(owes: 'greeting' | 'reply' | null): void;
  /** Updates the model, because the instructions or tools of the lead agent have changed. */
  configure(): void;
  say(offer: Offer): void;
  /**
   * Cancels the attempt of this generation, if it is still being told; null: cancels all speech at once, because an urgent
   * item waits.
   */
  stop(generation: number | null): void;
  /** Answers a tool call; null: the call stays open, and an offer will answer it later. */
  answer(callId: string, answer: ToolAnswer | null): void;
  /** Tells the model a fact. */
  note(prompt: Prompt, respond: boolean): void;
  /**
   * Passes on words of the user, which the lead agent answers. With `to` they went to a subagent: the lead agent neither
   * answers them nor takes them as addressed to it; unless they answered the subagent's question, the question stays open.
   */
  heard(utterance: Utterance, to: SpokenTo | null): void;
  /** Shows an item to the user unchanged. Absent: clients have a screen for such items. */
  show?(shown: RestingCard | SubagentWords): void;
}

/** Records that the user is told something other than the question that has the floor (QUESTION-10). */
export function followQuestion(session: Receiver & { readonly unit: SessionUnit }): void {
  const { owner } = session.unit;
  if (owner === null) return;
  const event = { type: 'question.followed' } as const;
  const isNews = session.unit.accepts(`question:${owner}`, { ...event, at: 0 });
  if (isNews) session.receive(`question:${owner}`, event);
}

/** Returns the event that an offer begins to be heard. */
export function isHeardNow({ generation, attempt, deliveryId, deliveryIds = [deliveryId] }: Offer) {
  return { type: 'delivery.playing', generation, attempt, deliveryIds } as const;
}
