// Whom the user's words are for, where the model hears them all and may answer by itself:
// what it says to words that are for a subagent is not heard.
//
// Owns:     when it is undecided whom words are for, and which answers are not wanted.
// Does not: decide it (session), or hold sound back (held-speech).
//
// Invariants
//   ADDRESSEE-1. While a question has the floor and it is not known what the user said, whatever the model
//        begins to say is undecided.
//   ADDRESSEE-2. Words for a subagent leave at most one answer of the model unheard; where it may answer
//        twice, since what was asked of it came to nothing meanwhile, both.

import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import type { HeldSpeech } from '../output/held-speech.ts';
import type { TransportCapabilities } from '../connection/transport.ts';

export interface AddresseePorts {
  readonly held: Pick<HeldSpeech, 'silence' | 'expectUnwanted' | 'expectWanted'>;
  /** The user speaks, or it is not known yet what they said. */
  hasFloor(): boolean;
  /** The model is about to reply by itself, or should be. */
  isReplyExpected(): boolean;
}

export class Addressee {
  readonly #core: LeadSession;
  readonly #capabilities: TransportCapabilities;
  readonly #replyTimeoutMs: number;
  readonly #ports: AddresseePorts;
  /** What was asked for came to nothing since somebody spoke: the model may still answer both. */
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
    // Where the user's speech is inferred, the model may be quicker than the word that they spoke.
    if (this.#capabilities.utterances === 'reported') return false;
    const asked = questions.stateOf(owner)?.context as { playingSince: number | null } | undefined;
    const isBeingAsked = asked !== undefined && asked.playingSince !== null;
    return isBeingAsked && !this.#ports.isReplyExpected();
  }

  /** What was asked of the model has ended. */
  responded(status: string, calledOff: boolean): void {
    this.#mayAnswerBoth = status === 'cancelled' && !calledOff;
  }

  /** The words were for the lead agent. */
  isLead(): void {
    this.#ports.held.expectWanted();
    this.#mayAnswerBoth = false;
  }

  /** They were for a subagent: what the model has begun to say to them is dropped. Returns whether it had. */
  isSubagent(typed: boolean): boolean {
    return !typed && this.#ports.held.silence();
  }

  /** After `isSubagent`, when the words are settled: what the model will still say to them is not heard. */
  expectsNothing(typed: boolean, wasHeld: boolean): void {
    const isAnswered = wasHeld && !this.#mayAnswerBoth;
    this.#mayAnswerBoth = false;
    const mayAnswer = this.#capabilities.responds === 'by_itself' && !typed && !isAnswered;
    // What the model says to words that are not settled yet is held.
    if (mayAnswer && !this.#ports.hasFloor()) this.#ports.held.expectUnwanted(this.#replyTimeoutMs);
  }
}
