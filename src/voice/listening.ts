// The user's side of a spoken conversation: when they speak, and what they said.
//
// Owns:     who of both has the floor, as far as the user's speech is concerned, and how
//           long words are waited for.
// Does not: decide what is answered, or to whom it was said (session).
//
// Invariants
//   F2. The user has the floor while they speak, and until it is known what they said (for
//       `settleTimeoutMs` at most). Late words of one utterance do not end another one.

import type { LeadSession } from '../actors/session/session-parts.ts';
import { Watchdog } from '../actors/session/watchdog.ts';
import type { TransportEvent } from './transport.ts';
import { RecentIds } from './recent-ids.ts';
import { Utterances } from './utterances.ts';
import type { VoiceTranscript } from './voice-transcript.ts';

/** Speech is noticed a little late. */
const ONSET_MS = 300;

type UtteranceEvent = Extract<TransportEvent, { type: `utterance.${string}` }>;

export interface ListeningPorts {
  /** They speak, since `startedAt` on our clock. */
  brokeIn(utteranceId: string, startedAt: number): void;
  fellSilent(utteranceId: string): void;
  /** Words of it, all or some; empty: none. Returns whether they were said only to show that they listen. */
  isBackchannel(utteranceId: string, text: string, final: boolean): boolean;
  /** It was a noise, no words. */
  meantNothing(utteranceId: string): void;
  /** They may not have the floor any more. */
  settled(): void;
}

export class Listening {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #ports: ListeningPorts;
  readonly #utterances = new Utterances();
  /** Utterances whose words are known: a wire may say them twice. */
  readonly #known = new RecentIds();
  readonly #patience: Watchdog;
  readonly #settleTimeoutMs: number;

  constructor(
    core: LeadSession,
    transcript: VoiceTranscript,
    ports: ListeningPorts,
    settleTimeoutMs: number,
  ) {
    this.#core = core;
    this.#transcript = transcript;
    this.#ports = ports;
    this.#settleTimeoutMs = settleTimeoutMs;
    this.#patience = new Watchdog(core.host.environment, () => {
      this.#utterances.wordsAreOverdue();
      ports.settled();
    });
  }

  get hasFloor(): boolean {
    return this.#utterances.hasFloor;
  }

  /** So much of what was sent last, in milliseconds, holds words of the user that are not known. */
  get unknownMs(): number {
    const since = this.#utterances.unknownSince;
    const now = this.#core.host.environment.clock.now();
    return since === null ? 0 : now - since + ONSET_MS;
  }

  /** Sound of the user went to the wire. */
  sent(durationMs: number): void {
    this.#utterances.sent(durationMs);
  }

  /** The connection is another one: what was said on the one before is not waited for. */
  reset(): void {
    this.#known.clear();
    this.#patience.stop();
    this.#utterances.reset();
    this.#transcript.lost();
  }

  /** Whoever spoke has gone. */
  giveUpWaiting(): void {
    this.#utterances.giveUpWaiting();
  }

  happened(event: UtteranceEvent): void {
    const core = this.#core;
    switch (event.type) {
      case 'utterance.started': {
        const now = core.host.environment.clock.now();
        const startedAt = this.#utterances.began(event.utteranceId, event.audioStartMs, now);
        // What was understood of an earlier one by now is all that will be.
        this.#transcript.reset();
        core.receive('session', { type: 'utterance.started' });
        this.#ports.brokeIn(event.utteranceId, startedAt);
        break;
      }
      case 'utterance.ended':
        this.#utterances.ended(event.utteranceId);
        this.#patience.watch(this.#settleTimeoutMs);
        core.receive('session', { type: 'utterance.ended' });
        this.#ports.fellSilent(event.utteranceId);
        break;
      case 'utterance.transcribed':
        this.#transcribed(event);
        break;
      case 'utterance.untranscribed':
        core.reportError(new Error(event.reason), 'transcription');
        this.#ports.isBackchannel(event.utteranceId, '', true);
        this.understood(event.utteranceId);
        this.#ports.settled();
        break;
    }
  }

  /** It is known what was said; unless they speak again, the user has the floor no more. */
  understood(utteranceId: string): void {
    this.#transcript.finished(utteranceId);
    this.#utterances.understood(utteranceId);
    if (!this.#utterances.hasFloor) this.#core.receive('session', { type: 'utterance.settled' });
  }

  #transcribed({
    utteranceId,
    text,
    final,
  }: Extract<UtteranceEvent, { type: 'utterance.transcribed' }>): void {
    const core = this.#core;
    const startedAt = this.#utterances.beganAt(utteranceId) ?? core.host.environment.clock.now();
    if (this.#known.has(utteranceId)) return;
    if (final) this.#known.add(utteranceId);
    const isBackchannel = this.#ports.isBackchannel(utteranceId, text, final);
    if (!final) this.#transcript.userPartial(utteranceId, text, startedAt);
    else if (text.trim() === '' || isBackchannel) {
      this.#ports.meantNothing(utteranceId);
      this.understood(utteranceId);
      this.#ports.settled();
    } else
      core.tell('user', {
        type: 'user.said',
        utteranceId,
        text: text.trim(),
        channel: 'speech',
        startedAt,
      });
  }
}
