// The port through which the lead agent talks to the user. A voice session implements it with a transport, a text
// session with a streaming model.

import type { Prompt } from '../../notes/note.ts';
import type { DeliveryKind, DeliveryPriority, Failure } from '../../../machines/index.ts';
import type { Utterance, WordsToQuestion } from '../../contracts/records.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Shown } from '../../runtime/hosting.ts';

/** Duration in milliseconds after which a running tool no longer delays due deliveries. */
export const HOLDS_FLOOR_MS = 2000;

/** An item that has to be said now, and the number of its attempt. */
export interface Offer {
  readonly deliveryId: string;
  /** The results that are told together in it; absent: the offer is a single one. */
  readonly deliveryIds?: readonly string[];
  /** Identifies the attempt; every `delivery.*` event about it carries this number. */
  readonly generation: number;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /**
   * The first attempt of which the user heard a sentence or more, before they interrupted it: this one goes on
   * from there. Absent: it begins anew.
   */
  readonly begunIn?: number;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** The prompt that the lead model reads; it says the content in its own words. */
  readonly prompt: Prompt;
  /** The role of the prompt in the conversation. @defaultValue 'system' */
  readonly role?: 'system' | 'user';
  /** The content for the user, for a screen. */
  readonly text: string;
  /** The lead agent's call that this answers, if it has not been answered yet. */
  readonly answersCallId: string | null;
}

/** The words of a subagent itself, for the user and not for the model. */
export interface SubagentWords {
  readonly kind: 'progress' | 'result';
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly subagentName: string;
  readonly text: string;
}

/** A delivery that rests: the model could not tell it, shall not, or has told it without an acknowledgement. */
export interface RestingCard {
  readonly kind: 'card';
  readonly deliveryId: string;
  /** Reports that the user has seen it. */
  readonly seen: () => void;
}

/** The output of a tool call; with a `noteId` it is a `Prompt` with this id. */
export interface ToolAnswer {
  readonly output: unknown;
  /** The model responds to it. */
  readonly respond: boolean;
  readonly noteId?: string;
}

/** A subagent to which the user spoke, and how its question took the words. */
export interface SpokenTo {
  readonly subagentName: string;
  readonly were: WordsToQuestion;
}

/**
 * Duties of an implementation. It reports to the session as events: `transport.ready / lost`,
 * `response.requested / waiting / ended`, `utterance.*`, `playout.*`, `delivery.playing / heard / interrupted
 * / failed` with the offer's generation. Guarantee to it: one offer at a time, and only while the gate is
 * open or after `stop(null)`.
 */
export interface Speaker {
  /** Its machines, as their actors show them. */
  machines?(): Iterable<Shown>;
  /** The user has said something, and it is not known yet what. Absent: the model reads them. */
  readonly awaitsWords?: boolean;
  connect(): void;
  /** Gives up the connection, also one that is being opened; `forGood`: it speaks no more. */
  disconnect(forGood: boolean): void;
  /** Prepares the model for the agent `to`; reports `transfer.ended` with this id, once. */
  transfer(transferId: string, to: string): void;
  /**
   * Reports that the session's transfer is over; after an error the model is again, or still, the former
   * agent.
   */
  transferEnded(error: Failure | null): void;
  /**
   * Gives the user what they are owed: the greeting of the current agent, if it has one; after a crash the reply that
   * was owed then, or nothing (null).
   */
  begin(owes: 'greeting' | 'reply' | null): void;
  /** Updates the model, because the instructions or tools of the lead agent have changed. */
  configure(): void;
  say(offer: Offer): void;
  /** Cancels the attempt of this generation, if it is still being said; null: all, at once, as an urgent item waits. */
  stop(generation: number | null): void;
  /** Answers a tool call; null: it stays open, and an offer will answer it, later. */
  answer(callId: string, answer: ToolAnswer | null): void;
  /** Tells the model a fact. */
  note(prompt: Prompt, respond: boolean): void;
  /**
   * Reports words of the user, which the lead agent answers. To a subagent (`to`): the lead agent neither answers them nor
   * takes them as addressed to it, and unless they answer the subagent's question, it stays open.
   */
  heard(utterance: Utterance, to: SpokenTo | null): void;
  /** Shows it to the user as it is. Absent: clients have a screen for it. */
  show?(shown: RestingCard | SubagentWords): void;
}

/** Reports that the user is told something else than the question that has the floor (QUESTION-10). */
export function followQuestion(session: Receiver & { readonly unit: SessionUnit }): void {
  const { owner } = session.unit;
  if (owner === null) return;
  const event = { type: 'question.followed' } as const;
  const isNews = session.unit.accepts(`question:${owner}`, { ...event, at: 0 });
  if (isNews) session.receive(`question:${owner}`, event);
}

/** The event that an offer begins to be heard. */
export function isHeardNow({ generation, attempt, deliveryId, deliveryIds = [deliveryId] }: Offer) {
  return { type: 'delivery.playing', generation, attempt, deliveryIds } as const;
}
