// The port to the lead agent: the one who talks to the user. A voice session
// implements it with a transport, a text session with a streaming model.

import type { Prompt } from '../../notes/note.ts';
import type { DeliveryKind, DeliveryPriority, Failure } from '../../../machines/index.ts';
import type { Utterance } from '../../contracts/records.ts';

/** A tool that takes longer, in milliseconds, keeps nothing that is due from being told. */
export const HOLDS_FLOOR_MS = 2000;

/** Something that shall be said now, and the attempt that it is. */
export interface Offer {
  readonly deliveryId: string;
  /** The results that are told together in it; absent: it is one itself. */
  readonly deliveryIds?: readonly string[];
  /** Names the attempt; every `delivery.*` event about it carries this number. */
  readonly generation: number;
  /** From 1. */
  readonly attempt: number;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** What the lead model reads; it says this in its own words. */
  readonly prompt: Prompt;
  /** In whose place the prompt stands in the conversation. @defaultValue 'system' */
  readonly role?: 'system' | 'user';
  /** What the user is meant to learn, for a screen. */
  readonly text: string;
  /** The lead agent's call that this answers, if it has not been answered yet. */
  readonly answersCallId: string | null;
}

/** What a subagent itself said. */
export interface SubagentWords {
  readonly kind: 'progress' | 'result';
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly subagentName: string;
  readonly text: string;
}

/**
 * Duties of an implementation. What happens is told to the session as events:
 * `transport.ready / lost`, `response.requested / waiting / ended`, `utterance.*`, `playout.*`,
 * `delivery.playing / heard / interrupted / failed` with the offer's generation.
 * Guarantee to it: one offer at a time, and only while the gate is open or after `interrupt`.
 */
export interface Lead {
  connect(attempt: number): void;
  /** The connection that is being opened is not wanted any more. */
  hangUp(): void;
  disconnect(): void;
  /** Prepares the model for the agent `to`; `transfer.ended` with this id comes back, once. */
  transfer(transferId: string, to: string): void;
  /** The transfer is over, as the session sees it; on an error the model is again, or still, who it was. */
  transferEnded(error: Failure | null): void;
  /** The session goes on after a crash: a reply that was owed then (`owes`) is given now. */
  resume(owes: boolean): void;
  /** The agent that leads now says its greeting, if it has one, to whoever is there. */
  greet(): void;
  /** What the lead agent is told has changed. */
  configure(): void;
  offer(offer: Offer): void;
  /**
   * It rests as a card: the model could not tell it, shall not, or has told it and nobody has
   * acknowledged it. Where there is no screen it is given to the user as it is; `seen` says that it was.
   */
  rests?(deliveryId: string, seen: () => void): void;
  /** A subagent says how far it is, or what it has; for the user as it is, not for the model. */
  reported?(report: SubagentWords): void;
  /** Stop speaking at once: something urgent waits. */
  interrupt(): void;
  /** The attempt is off: stop saying it if it is still being said. */
  abandon(generation: number): void;
  /** Answers a tool call. `respond`: the model shall speak to it. `noteId`: the output is a `Prompt`, by this id. */
  answerTool(callId: string, output: unknown, respond: boolean, noteId?: string): void;
  /** The call stays open: an offer will answer it, later. */
  deferTool(callId: string): void;
  /** The model shall know this, and not speak to it. */
  note(prompt: Prompt): void;
  /** The user said this to the lead agent: answer it. */
  heardUser(utterance: Utterance): void;
  /**
   * The user said this to a subagent: the lead agent shall not answer it, nor believe that it was
   * asked. `isAnswer`: it answers the subagent's question, which else stays open.
   */
  overheard(utterance: Utterance, subagentName: string, isAnswer: boolean): void;
}
