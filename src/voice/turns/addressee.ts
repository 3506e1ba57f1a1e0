// Tracks whether the user's words are addressed to the lead agent or to a subagent, for models that hear
// every word and may answer by themselves; silences model replies to words that are addressed to a subagent.
//
// Owns:     when the addressee is undecided, and which answers are not wanted.
// Does not: decide the addressee (session), or hold sound back (held-speech).
//
// Invariants
//   ADDRESSEE-1. While a question has the floor and the user's words are unknown, every response that the
//        model begins is undecided.
//   ADDRESSEE-2. Words addressed to a subagent silence at most one answer of the model; two if the model may
//        answer twice, because its requested response failed meanwhile.

import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import type { HeldSpeech } from '../output/held-speech.ts';
import type { TransportCapabilities } from '../connection/transport.ts';

export interface AddresseePorts {
  readonly held: Pick<HeldSpeech, 'silence' | 'expectUnwanted' | 'expectWanted'>;
  /** Returns whether the user speaks or their last words are not known yet. */
  hasFloor(): boolean;
  /** Returns whether the model is about to reply by itself, or should be. */
  isReplyExpected(): boolean;
}

export class Addressee {
  readonly #core: LeadSession;
  readonly #capabilities: TransportCapabilities;
  readonly #replyTimeoutMs: number;
  readonly #ports: AddresseePorts;
  /** A requested response failed since the user spoke: the model may still answer both. */
  #mayAnswerBoth = false;

  constructor(
    core: LeadSession,
    capabilities: TransportCapabilities,
    replyTimeoutMs: number,
    ports: AddresseePorts,
  ) {
    this.#core = core;
    this.#capabilities = capabilities;
    this.#replyTimeoutMs = replyTimeoutMs;
    this.#ports = ports;
  }

  /** ADDRESSEE-1 */
  get isUndecided(): boolean {
    const { owner, questions } = this.#core.unit;
    if (owner === null) return false;
    if (this.#ports.hasFloor()) return true;
    // If the user's speech is inferred, the model may begin before the transport reports the utterance.
    if (this.#capabilities.utterances === 'reported') return false;
    const asked = questions.stateOf(owner)?.context as { playingSince: number | null } | undefined;
    const isBeingAsked = asked !== undefined && asked.playingSince !== null;
    return isBeingAsked && !this.#ports.isReplyExpected();
  }

  /** Handles the end of the requested response. */
  responded(status: string, calledOff: boolean): void {
    this.#mayAnswerBoth = status === 'cancelled' && !calledOff;
  }

  /** Records that the words were addressed to the lead agent. */
  isLead(): void {
    this.#ports.held.expectWanted();
    this.#mayAnswerBoth = false;
  }

  /**
   * Records that the words were addressed to a subagent, and drops the reply that the model has begun.
   * Returns whether there was one.
   */
  isSubagent(typed: boolean): boolean {
    return !typed && this.#ports.held.silence();
  }

  /** Silences the further replies to the words; called after `isSubagent`, when the words are settled. */
  expectsNothing(typed: boolean, wasHeld: boolean): void {
    const isAnswered = wasHeld && !this.#mayAnswerBoth;
    this.#mayAnswerBoth = false;
    const mayAnswer = this.#capabilities.responds === 'by_itself' && !typed && !isAnswered;
    // A reply to words that are not settled yet is held anyway.
    if (mayAnswer && !this.#ports.hasFloor()) this.#ports.held.expectUnwanted(this.#replyTimeoutMs);
  }
}
