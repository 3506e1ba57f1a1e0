// The port through which the lead agent talks to the user. A voice session implements it with a transport, and a text
// session with a streaming model.

import type { Prompt } from '../../notes/note.ts';
import type { DeliveryKind, DeliveryPriority, Failure } from '../../../machines/index.ts';
import type { Utterance, WordsToQuestion } from '../../contracts/records.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Shown } from '../../runtime/hosting.ts';

/** The time in milliseconds after which a running tool stops delaying due deliveries. */
export const HOLDS_FLOOR_MS = 2000;

/** An item that must be delivered now, with the number of the attempt. */
export interface Offer {
  readonly deliveryId: string;
  /** The results that the item reports together; absent for a single delivery. */
  readonly deliveryIds?: readonly string[];
  /** Identifies the attempt. Every `delivery.*` event about the attempt contains this number. */
  readonly generation: number;
  /** The attempt's number, from 1. */
  readonly attempt: number;
  /**
   * The first attempt in which the user heard at least a sentence before interrupting. This attempt continues from
   * there. If absent, this attempt starts from the beginning.
   */
  readonly begunIn?: number;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** The prompt for the lead model, which reports the content in its own words. */
  readonly prompt: Prompt;
  /** The prompt's role in the conversation. @defaultValue 'system' */
  readonly role?: 'system' | 'user';
  /** The content as text, for a screen. */
  readonly text: string;
  /** The lead agent's call that the item answers; absent if the call already has an answer. */
  readonly answersCallId: string | null;
}

/** A message to the user, and not to the model, in a subagent's own words. */
export interface SubagentWords {
  readonly kind: 'progress' | 'result';
  readonly subagentId: string;
  /** The `name` in the subagent's configuration. */
  readonly subagentName: string;
  readonly text: string;
}

/** A resting delivery. The model could not or must not speak it, or spoke it and received no acknowledgement. */
export interface RestingCard {
  readonly kind: 'card';
  readonly deliveryId: string;
  /** Reports that the user has seen the delivery. */
  readonly seen: () => void;
}

/** The output of a tool call. With a `noteId`, the output is a `Prompt` with this id. */
export interface ToolAnswer {
  readonly output: unknown;
  /** Whether the model responds to the output. */
  readonly respond: boolean;
  readonly noteId?: string;
}

/** A subagent that the user addressed, and how the user's words affect its question. */
export interface SpokenTo {
  readonly subagentName: string;
  readonly were: WordsToQuestion;
}

/**
 * The lead agent's side of a session. An implementation must report the following events to the session:
 * `transport.ready / lost`, `response.requested / waiting / ended`, `utterance.*`, `playout.*`, `delivery.playing /
 * heard / interrupted / failed` with the offer's generation. An implementation receives one offer at a time, either
 * while the gate is open or after `stop(null)`.
 */
export interface Speaker {
  /** The implementation's machines, as their actors expose them. */
  machines?(): Iterable<Shown>;
  /** Whether the user has said something that is not transcribed yet. Absent if the model reads text. */
  readonly awaitsWords?: boolean;
  /** Whether the model replies to the user without being asked to. @defaultValue false */
  readonly repliesUnasked?: boolean;
  connect(): void;
  /**
   * Closes the connection, even one that is still being opened. With `forGood`, no other connection is opened later.
   */
  disconnect(forGood: boolean): void;
  /** Prepares the model for the agent `to`, and then reports `transfer.ended` with this id, exactly once. */
  transfer(transferId: string, to: string): void;
  /** Reports that the session's transfer is over. After an error, the model is still that of the previous agent. */
  transferEnded(error: Failure | null): void;
  /**
   * Starts with the current agent's greeting or, after a crash, with the reply that was due at that time. If `owes` is
   * null, says nothing.
   */
  begin(owes: 'greeting' | 'reply' | null): void;
  /** Updates the model, because the lead agent's instructions or tools have changed. */
  configure(): void;
  say(offer: Offer): void;
  /**
   * Cancels this generation's attempt if it is still in progress. Null cancels all speech immediately, because an
   * urgent item is waiting.
   */
  stop(generation: number | null): void;
  /** Answers a tool call. Null leaves the call open, and a later offer answers it. */
  answer(callId: string, answer: ToolAnswer | null): void;
  /** Passes a note to the model. With `id`, only if the conversation does not contain the note. */
  note(prompt: Prompt, respond: boolean, id?: string): void;
  /**
   * Passes on the user's input for the lead agent to answer. With `to`, the input was addressed to a subagent. The lead
   * agent does not answer it or treat it as its own input. The subagent's question stays open unless the input answered
   * it.
   */
  heard(utterance: Utterance, to: SpokenTo | null): void;
  /** Shows an item to the user unchanged. Absent if clients have a screen for such items. */
  show?(shown: RestingCard | SubagentWords): void;
}

/** Records that the user is receiving something other than the questions that have been presented (QUESTION-10). */
export function followQuestion(session: Receiver & { readonly unit: SessionUnit }): void {
  const { unit } = session;
  const { owner, beside } = unit;
  const event = { type: 'question.followed' } as const;
  for (const id of owner === null ? beside : [owner, ...beside])
    if (unit.accepts(`question:${id}`, { ...event, at: 0 }))
      session.receive(`question:${id}`, event);
}

/** Returns the event that reports the start of an offer's playback. */
export function isHeardNow({ generation, attempt, deliveryId, deliveryIds = [deliveryId] }: Offer) {
  return { type: 'delivery.playing', generation, attempt, deliveryIds } as const;
}
