// Decides whether the user's speech over the lead agent is an interruption, and which work it breaks off.
//
// Owns:     the effect of a beginning utterance on the speech under way.
// Does not: know when words are known (listening), or how long a doubt lasts (interruptions).
//
// Invariants
//   BARGE-IN-5. Interrupting the voice cancels no subagent, unless the subagent requests that (`onBargeIn`).

import { backchannelIn } from '../../language/backchannel.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { Interruptions, type InterruptionsOptions } from './interruptions.ts';
import type { ModelVoice } from '../output/model-voice.ts';
import type { Replies } from './replies.ts';
import type { TransportCapabilities } from '../connection/transport.ts';
import type { VoiceTranscript } from '../output/voice-transcript.ts';

export interface BargeInOptions extends InterruptionsOptions {
  readonly capabilities: TransportCapabilities;
}

export class BargeIn {
  readonly #core: LeadSession;
  readonly #isInferred: boolean;
  readonly #voice: ModelVoice;
  readonly #replies: Replies;
  readonly #interruptions: Interruptions;

  constructor(
    core: LeadSession,
    options: BargeInOptions,
    transcript: VoiceTranscript,
    voice: ModelVoice,
    replies: Replies,
  ) {
    this.#core = core;
    this.#isInferred = options.capabilities.utterances === 'inferred';
    this.#voice = voice;
    this.#replies = replies;
    this.#interruptions = new Interruptions(core.host.environment, options, {
      // While a question is open, every word may be its answer.
      pause: () => core.unit.owner === null && voice.pause(),
      isPaused: () => voice.isPaused,
      resume: () => voice.resume(),
      breakOff: () => this.#breakOff(),
      backchannelIn: (text) =>
        transcript.asks(voice.playing) ? 'none' : backchannelIn(text, core.agents.current.language),
    });
  }

  /** Handles the start of an utterance. `startedAt` is in milliseconds since 1970. */
  began(utteranceId: string, startedAt: number): void {
    // If the start is reported late, the model may already be answering these very words.
    if (this.#isInferred && startedAt <= this.#voice.ownSince) return;
    this.#replies.userSpeaks();
    this.#voice.held.expectWanted();
    if (this.#voice.isSpeaking) this.#interruptions.began(utteranceId);
  }

  ended(utteranceId: string): void {
    this.#interruptions.ended(utteranceId);
  }

  /** Returns whether the words are a backchannel of a listener. `final`: the transcript is complete. */
  isBackchannel(utteranceId: string, text: string, final: boolean): boolean {
    const isBackchannel = this.#interruptions.understood(utteranceId, text, final);
    if (isBackchannel)
      this.#core.projection.emit({ type: 'backchannel.heard', utteranceId, text: text.trim() });
    return isBackchannel;
  }

  /** Confirms the interruption: the model itself has stopped. */
  confirm(): void {
    this.#interruptions.confirm();
  }

  /** Forgets the doubt: no transcript will resolve it. */
  reset(): void {
    this.#interruptions.reset();
  }

  #breakOff(): void {
    if (!this.#voice.isSpeaking) return;
    for (const subagent of this.#core.delegation.live)
      if (subagent.definition.onBargeIn === 'cancel') subagent.cancel('the user broke in');
    this.#voice.silence();
  }
}
