// A conversation by voice: the lead agent is a voice model behind a transport; audio
// goes in and out as streams, and the client says what was played.

import { Subject, type Observable, type Observer } from 'rxjs';
import { z } from 'zod';
import { ConfigurationError, ProtocolError } from '../errors.ts';
import type { Runtime } from '../actors/runtime/runtime.ts';
import { SessionCore } from '../actors/session/session-core.ts';
import type { SessionOptions } from '../actors/session/session-options.ts';
import { SessionFace } from '../actors/session/session-face.ts';
import { resampleFrames } from './audio/resample-frames.ts';
import { isSampleRateHz } from './audio/resampler.ts';
import type { AudioFrame } from './audio-frame.ts';
import type { Transport } from './transport.ts';
import { VoiceLead } from './voice-lead.ts';

export interface VoiceOptions {
  /** A pause so long before something unasked is said, in milliseconds. @defaultValue 300 */
  readonly quietMs: number;
  /** So much of the audio must have been played to count as heard, 0 to 1. @defaultValue 0.9 */
  readonly heardFraction: number;
  /** No audio was played by then: the attempt failed. In milliseconds. @defaultValue 15000 */
  readonly offerTimeoutMs: number;
  /** The end was not played by then: the attempt failed. In milliseconds. @defaultValue 120000 */
  readonly playTimeoutMs: number;
  /** So many failed attempts, and it rests as a card on the screen. @defaultValue 3 */
  readonly maxAttempts: number;
  /** A transcript may come so long after the utterance, in milliseconds. @defaultValue 5000 */
  readonly settleTimeoutMs: number;
  /** Failed connections in a row before the session gives up. @defaultValue 5 */
  readonly maxReconnects: number;
  /** Before the first reconnect, in milliseconds; doubles each time. @defaultValue 1000 */
  readonly reconnectDelayMs: number;
  /** @defaultValue 30000 */
  readonly maxReconnectDelayMs: number;
  /** The client reports what it played so long after it was told to stop. @defaultValue 300 */
  readonly clearReportMs: number;
  /** A response without any sign of life for so long has failed. @defaultValue 30000 */
  readonly responseTimeoutMs: number;
  /** A connection that is not ready by then has failed, in milliseconds. @defaultValue 30000 */
  readonly connectTimeoutMs: number;
  /** An agent that is not ready to lead by then does not lead, in milliseconds; at most 45000. @defaultValue 30000 */
  readonly transferTimeoutMs: number;
  /** So much of the user's sound is kept while the lead agent changes, in milliseconds; the newest. @defaultValue 10000 */
  readonly transferAudioMs: number;
}

export const defaultVoiceOptions = {
  quietMs: 300,
  heardFraction: 0.9,
  offerTimeoutMs: 15_000,
  playTimeoutMs: 120_000,
  maxAttempts: 3,
  settleTimeoutMs: 5000,
  maxReconnects: 5,
  reconnectDelayMs: 1000,
  maxReconnectDelayMs: 30_000,
  clearReportMs: 300,
  responseTimeoutMs: 30_000,
  connectTimeoutMs: 30_000,
  transferTimeoutMs: 30_000,
  transferAudioMs: 10_000,
} as const satisfies VoiceOptions;

export interface VoiceSessionOptions extends SessionOptions {
  /** The way to the voice model: `openaiRealtime(…)`. */
  readonly transport: Transport;
  readonly runtime: Runtime;
  readonly voice?: Partial<VoiceOptions>;
}

const milliseconds = z.number().min(0);
const voiceSchema = z.strictObject({
  quietMs: milliseconds,
  heardFraction: z.number().gt(0).max(1),
  offerTimeoutMs: milliseconds,
  playTimeoutMs: milliseconds,
  maxAttempts: z.number().int().min(1),
  settleTimeoutMs: milliseconds,
  maxReconnects: z.number().int().min(0),
  reconnectDelayMs: milliseconds,
  maxReconnectDelayMs: milliseconds,
  clearReportMs: milliseconds,
  responseTimeoutMs: milliseconds,
  connectTimeoutMs: z.number().positive(),
  transferTimeoutMs: z.number().positive().max(45_000),
  transferAudioMs: z.number().positive(),
});

/** The client's word on what it has played. */
export interface PlayoutReport {
  readonly itemId: string;
  /** Of this item, from its beginning, in milliseconds. */
  readonly playedMs: number;
}

export class VoiceSession extends SessionFace {
  /** Sound of the user: mono, 8 to 48 kHz, in the rate that each frame states. */
  readonly audioIn: Observer<AudioFrame>;
  /** What the client has played: about every 100 ms, at the end of an item, and after `playout.clear`. */
  readonly playout: Observer<PlayoutReport>;
  readonly #lead: VoiceLead;

  /** @throws {ConfigurationError} for options that cannot work. */
  constructor(options: VoiceSessionOptions) {
    const voice = checkedVoice(options.voice);
    const { transport } = options;
    if (typeof transport?.connect !== 'function')
      throw new ConfigurationError(
        'INVALID_OPTION',
        `Expected \`transport\` to be a transport such as openaiRealtime(…), got ${typeof transport}`,
      );
    let lead: VoiceLead | undefined;
    const core = new SessionCore({
      ...options,
      outbox: voice,
      settleTimeoutMs: voice.settleTimeoutMs,
      maxReconnects: voice.maxReconnects,
      connectTimeoutMs: voice.connectTimeoutMs,
      transferTimeoutMs: voice.transferTimeoutMs,
      canInterrupt:
        transport.capabilities.cancelsResponses && transport.capabilities.truncatesAudio,
      hasVoice: true,
      makeLead: (made) => (lead = new VoiceLead(made, { ...voice, transport })),
    });
    super(core);
    this.#lead = lead as unknown as VoiceLead;
    const microphone = new Subject<AudioFrame>();
    microphone
      .pipe(resampleFrames(transport.capabilities.inputSampleRateHz))
      .subscribe((frame) => this.#lead.userSpoke(frame));
    this.audioIn = {
      next: (frame) => {
        const problem = problemOf(frame);
        if (problem === null) microphone.next(frame);
        else
          core.reportError(new ProtocolError('INVALID_FRAME', problem, { raw: frame }), 'audioIn');
      },
      error: (error) => core.reportError(error, 'audioIn'),
      complete: () => {},
    };
    this.playout = {
      next: ({ itemId, playedMs }) => this.#lead.played(itemId, playedMs),
      error: (error) => core.reportError(error, 'playout'),
      complete: () => {},
    };
  }

  /** Sound of the model; frames carry the `itemId` that playout reports must name. Hot. */
  get audioOut(): Observable<AudioFrame> {
    return this.#lead.audioOut;
  }

  override attach(): () => void {
    const leave = super.attach();
    this.#lead.clientCame();
    return () => {
      leave();
      if (!this.isAttached) this.#lead.clientLeft();
    };
  }
}

function checkedVoice(voice: Partial<VoiceOptions> = {}): VoiceOptions {
  const parsed = voiceSchema.safeParse({ ...defaultVoiceOptions, ...voice });
  if (parsed.success) return parsed.data;
  throw new ConfigurationError('INVALID_OPTION', `voice: ${z.prettifyError(parsed.error)}`);
}

function problemOf(frame: AudioFrame): string | null {
  if (!(frame?.samples instanceof Int16Array))
    return `Expected frame.samples to be an Int16Array, got ${typeof frame?.samples}`;
  if (!isSampleRateHz(frame.sampleRateHz))
    return `Expected frame.sampleRateHz to be from 8000 to 48000, got ${String(frame.sampleRateHz)}`;
  return null;
}
