// The port to the lead agent, which talks to the user. A voice session implements it with a transport, a text
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

/** The words of a subagent itself. */
export interface SubagentWords {
  readonly kind: 'progress' | 'result';
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly subagentName: string;
  readonly text: string;
}

/**
 * Duties of an implementation. It reports to the session as events: `transport.ready / lost`,
 * `response.requested / waiting / ended`, `utterance.*`, `playout.*`, `delivery.playing / heard / interrupted
 * / failed` with the offer's generation. Guarantee to it: one offer at a time, and only while the gate is
 * open or after `interrupt`.
 */
export interface LeadDriver {
  /** Its machines, as their actors show them. */
  machines?(): Iterable<Shown>;
  connect(attempt: number): void;
  /** Gives up the connection that is being opened. */
  hangUp(): void;
  disconnect(): void;
  /** Prepares the model for the agent `to`; reports `transfer.ended` with this id, once. */
  transfer(transferId: string, to: string): void;
  /**
   * Reports that the session's transfer is over; after an error the model is again, or still, the former
   * agent.
   */
  transferEnded(error: Failure | null): void;
  /** Continues after a crash: a reply that was owed then (`owes`) is given now. */
  resume(owes: boolean): void;
  /** The user has said something, and it is not known yet what. Absent: the model reads them. */
  readonly awaitsWords?: boolean;
  /** Says the greeting of the current agent, if it has one, to the attached user. */
  greet(): void;
  /** Updates the model, because the instructions or tools of the lead agent have changed. */
  configure(): void;
  offer(offer: Offer): void;
  /**
   * Handles a delivery that rests as a card: the model could not tell it, shall not, or has told it without
   * an acknowledgement. Without a screen it is given to the user as it is; `seen` reports that the user has
   * seen it.
   */
  showCard?(deliveryId: string, seen: () => void): void;
  /** Shows the progress or the words of a subagent to the user as they are, not to the model. */
  reported?(report: SubagentWords): void;
  /** Stops speaking at once: an urgent item waits. */
  interrupt(): void;
  /** Cancels the attempt: stops saying it if it is still being said. */
  abandon(generation: number): void;
  /**
   * Answers a tool call. `respond`: the model responds to it. `noteId`: the output is a `Prompt`, with this
   * id.
   */
  answerTool(callId: string, output: unknown, respond: boolean, noteId?: string): void;
  /** Leaves the call open: an offer will answer it, later. */
  deferTool(callId: string): void;
  /** Tells the model a fact that it does not respond to. */
  addNote(prompt: Prompt): void;
  /** Tells the model a fact that it responds to. */
  replyTo(prompt: Prompt): void;
  /**
   * Passes words of the user on to the lead agent, which answers them. `about`: the question that had the floor,
   * which the words did not answer beyond doubt.
   */
  heardUser(utterance: Utterance, about?: string): void;
  /**
   * Reports words of the user to a subagent: the lead agent neither answers them nor takes them as addressed
   * to it. Unless they answer the subagent's question, it stays open.
   */
  overheard(utterance: Utterance, subagentName: string, were: WordsToQuestion): void;
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
