// A conversation by voice: the lead agent is a voice model behind a transport; audio
// goes in and out as streams, and the client says what was played.

import type { LanguageModel } from 'ai';
import { Subject, type Observable, type Observer } from 'rxjs';
import { z } from 'zod';
import {
  anObject,
  check,
  checkIsObject,
  notAnObject,
  readable,
  shown,
  type ChecksOf,
} from '../values/checks.ts';
import { ConfigurationError, isA, messageOf, ProtocolError } from '../values/errors.ts';
import type { Runtime } from '../actors/admission/runtime.ts';
import { SessionCore } from '../actors/session/lifecycle/session-core.ts';
import {
  checkSessionOptions,
  sessionChecks,
  type SessionOptions,
} from '../actors/session/lifecycle/session-options.ts';
import { aModel } from '../actors/model/model.ts';
import type { LeadSession } from '../actors/session/lead/lead-session.ts';
import { SessionFace } from '../actors/session/view/session-face.ts';
import {
  checkImage,
  refuseImages,
  type ShownImage,
} from '../actors/session/questions/shown-image.ts';
import { withoutUndefined } from '../values/without-undefined.ts';
import { resampleFrames } from './audio/resample-frames.ts';
import { isSampleRateHz } from './audio/resampler.ts';
import { frameDurationMs, type AudioFrame } from './audio/audio-frame.ts';
import { checkedFiller, type FillerOptions } from './output/filler-options.ts';
import { checkDelegable, withModel, withoutModel, type WorkOut } from './turns/delegation-step.ts';
import type { ThinkingSoundOptions } from './output/thinking-sound.ts';
import type { Transport } from './connection/transport.ts';
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
  /**
   * What the user says over the lead agent's speech stops it at once. If it turns out to be a noise,
   * or a word of somebody who listens ("mm-hm"), within so long after they fell silent, or nothing
   * is known of it by then, speech goes on from where it was heard. 0: every sound of the user is
   * an interruption. In milliseconds. @defaultValue 2000
   */
  readonly falseInterruptionMs: number;
  /** What the user says for longer over the lead agent's speech is an interruption. @defaultValue 1000 */
  readonly backchannelMs: number;
  /**
   * An utterance that lasts longer is ended by the session, such as that of a television: what was
   * understood of it is taken for all of it. What goes on directly behind it takes the floor no
   * more, until it was quiet for three seconds. In milliseconds, at least 1000. @defaultValue 60000
   */
  readonly maxUtteranceMs: number;
  /** A response without any sign of life for so long has failed. @defaultValue 30000 */
  readonly responseTimeoutMs: number;
  /**
   * A model that answers by itself, and stays silent for so long after words that were for it or
   * a tool's answer, is asked to speak. In milliseconds. @defaultValue 5000
   */
  readonly replyTimeoutMs: number;
  /** A connection that is not ready by then has failed, in milliseconds. @defaultValue 30000 */
  readonly connectTimeoutMs: number;
  /** An agent that is not ready to lead by then does not lead, in milliseconds; at most 45000. @defaultValue 30000 */
  readonly transferTimeoutMs: number;
  /**
   * So much of the user's sound is kept while nobody can hear it, in milliseconds; the newest: while
   * the connection is lost or not ready, or the lead agent changes. @defaultValue 10000
   */
  readonly keptAudioMs: number;
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
  falseInterruptionMs: 2000,
  backchannelMs: 1000,
  maxUtteranceMs: 60_000,
  responseTimeoutMs: 30_000,
  replyTimeoutMs: 5000,
  connectTimeoutMs: 30_000,
  transferTimeoutMs: 30_000,
  keptAudioMs: 10_000,
} as const satisfies VoiceOptions;

export interface VoiceSessionOptions extends SessionOptions {
  /** The way to the voice model: `openaiRealtime(…)`. */
  readonly transport: Transport;
  readonly runtime: Runtime;
  readonly voice?: Partial<VoiceOptions>;
  /**
   * What the user hears while the lead agent waits for a tool and nobody speaks, such as
   * `{ loop: workingSound() }`. It has no `itemId`, and ends at once. @defaultValue none
   */
  readonly thinkingSound?: ThinkingSoundOptions;
  /**
   * A short word that the user hears when the lead agent is silent for long: while it waits for a tool,
   * and, where a voice of ours says it, before it begins to reply. Such as `{ afterMs: 1500 }`. It is
   * no reply and no delivery, the user's voice ends it, and the transcript has it with `filler: true`.
   * Without a voice (`filler.voice`, or a transport `withVoice`) the model says it, where
   * `speaksOutOfBand`. @defaultValue none
   */
  readonly filler?: FillerOptions;
  /**
   * Works out which tools a voice model means that delegates without naming any: one short step
   * for each delegation. Needed only with such a transport, unless each agent has at most one
   * tool, which takes one required string: that gets the user's words. @defaultValue `model`
   */
  readonly delegationModel?: LanguageModel;
}

const sessionSchema = z.strictObject({
  ...sessionChecks,
  // By itself, first.
  transport: z.unknown().optional(),
  runtime: anObject('a runtime: createRuntime(…)'),
  // Where they are used.
  voice: z.unknown().optional(),
  thinkingSound: z.unknown().optional(),
  filler: z.unknown().optional(),
  delegationModel: aModel.optional(),
} satisfies ChecksOf<VoiceSessionOptions>);

const EXAMPLE =
  "new VoiceSession({ transport: openaiRealtime({ apiKey }), agents: [{ name: 'lead', instructions: 'You help the user.' }] })";

/** @throws {ConfigurationError} for an option that is unknown or wrong. */
function checkVoiceSession(options: VoiceSessionOptions): void {
  checkIsObject('new VoiceSession(options)', options, EXAMPLE);
  const { transport } = options;
  if (notAnObject(transport) !== null || typeof transport.connect !== 'function')
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`transport\` to be a transport such as openaiRealtime({ apiKey }), got ${notAnObject(transport) ?? 'an object without `connect`'}`,
    );
  checkSessionOptions('VoiceSession', sessionSchema, options);
}

const milliseconds = z.number().min(0);
const voiceChecks = {
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
  falseInterruptionMs: milliseconds,
  backchannelMs: milliseconds,
  maxUtteranceMs: z.number().min(1000),
  responseTimeoutMs: milliseconds,
  replyTimeoutMs: z.number().positive(),
  connectTimeoutMs: z.number().positive(),
  transferTimeoutMs: z.number().positive().max(45_000),
  keptAudioMs: z.number().positive(),
} satisfies ChecksOf<VoiceOptions>;

const voiceSchema = z.strictObject(voiceChecks);

const playoutReport = z.object({ itemId: z.string(), playedMs: milliseconds });

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
  readonly #transport: Transport;

  /** @throws {ConfigurationError} for options that cannot work. */
  constructor(options: VoiceSessionOptions) {
    checkVoiceSession(options);
    const voice = checkedVoice(options.voice);
    const { transport, thinkingSound } = options;
    checkThinkingSound(thinkingSound);
    if (transport.capabilities.output === 'text')
      throw new ConfigurationError(
        'VOICE_NEEDED',
        `The model of \`${transport.name}\` answers in text. Expected \`transport\` to be withVoice(…, { voice })`,
      );
    const filler = options.filler && checkedFiller(options.filler, transport);
    let lead: VoiceLead | undefined;
    const core = new SessionCore({
      ...options,
      systemAs:
        options.systemAs ??
        (transport.capabilities.takesSystemMessages === false ? 'user' : 'system'),
      outbox: voice,
      settleTimeoutMs: voice.settleTimeoutMs,
      maxReconnects: voice.maxReconnects,
      connectTimeoutMs: voice.connectTimeoutMs,
      transferTimeoutMs: voice.transferTimeoutMs,
      // Stopped is what can be cancelled. Where the model's memory cannot be cut it is told what
      // was heard; but one that talks on into the void would talk over what is urgent.
      canInterrupt: transport.capabilities.cancelsResponses,
      acknowledgesCalls: !transport.capabilities.defersToolResults,
      hasVoice: true,
      makeLead: (made) => {
        const workOut = workOutOf(made, options);
        const extras = {
          ...(workOut && { workOut }),
          ...(thinkingSound && { thinkingSound }),
          ...(filler && { filler }),
        };
        return (lead = new VoiceLead(made, { ...voice, transport, ...extras }));
      },
    });
    super(core);
    this.#lead = lead as unknown as VoiceLead;
    this.#transport = transport;
    const { inputSampleRateHz } = transport.capabilities;
    const { audioIn, playout } = checkedStreams(
      core,
      lead as unknown as VoiceLead,
      inputSampleRateHz,
    );
    this.audioIn = audioIn;
    this.playout = playout;
  }

  /** Sound of the model; frames carry the `itemId` that playout reports must name. Hot. */
  get audioOut(): Observable<AudioFrame> {
    return this.#lead.audioOut;
  }

  /**
   * Shows the lead model a picture; no answer is asked for. It is not kept: a model on a later
   * connection, and subagents, only know that there was one. Returns whether it was shown: false
   * while the model is not on the line.
   * @throws {ConfigurationError} `IMAGES_NOT_ACCEPTED` where the transport takes none,
   * `INVALID_IMAGE` for one of another type or size than `ShownImage` says.
   */
  override showImage(image: ShownImage): boolean {
    if (!this.#transport.capabilities.acceptsImages) refuseImages(this.#transport.name);
    checkImage(image);
    this.checkRoom();
    return this.#lead.showImage(image);
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

/**
 * What a client sends, checked: what cannot be taken is dropped and reported, the first time and then
 * ever more seldom, with how often it has happened. Nothing that a client sends throws.
 */
function checkedStreams(
  core: SessionCore,
  lead: VoiceLead,
  sampleRateHz: number,
): Pick<VoiceSession, 'audioIn' | 'playout'> {
  const dropped = { audioIn: 0, playout: 0 };
  const drop = (
    where: 'audioIn' | 'playout',
    code: string,
    problem: string,
    raw: unknown,
  ): void => {
    dropped[where] += 1;
    const count = dropped[where];
    if (!Number.isInteger(Math.log10(count))) return;
    const message = count === 1 ? problem : `${problem} (${count} were dropped so far)`;
    core.reportError(new ProtocolError(code, message, { raw }), where);
  };
  let microphone = new Subject<AudioFrame>();
  const open = (): void => {
    microphone = new Subject();
    microphone.pipe(resampleFrames(sampleRateHz)).subscribe({
      next: (frame) => lead.userSpoke(frame),
      // What follows is resampled anew.
      error: (error: unknown) => {
        open();
        drop('audioIn', 'INVALID_FRAME', messageOf(error), null);
      },
    });
  };
  open();
  let isResampling = false;
  const heard = (frame: AudioFrame): void => {
    const wasResampling = isResampling;
    isResampling = frame.sampleRateHz !== sampleRateHz;
    // What has the rate already takes the short way, behind what is still held back.
    if (isResampling || wasResampling) microphone.next(frame);
    else if (frame.samples.length > 0) lead.userSpoke(frame);
  };
  return {
    audioIn: {
      next(frame) {
        try {
          const problem = problemOf(frame);
          if (problem === null) heard(frame);
          else drop('audioIn', 'INVALID_FRAME', problem, frame);
        } catch (error) {
          drop('audioIn', 'INVALID_FRAME', messageOf(error), null);
        }
      },
      error: (error) => core.reportError(error, 'audioIn'),
      complete() {},
    },
    playout: {
      next(report) {
        try {
          const { itemId, playedMs } = check(
            'playout.next(report)',
            playoutReport,
            report,
            'INVALID_PLAYOUT_REPORT',
          );
          lead.played(itemId, playedMs);
        } catch (error) {
          drop('playout', 'INVALID_PLAYOUT_REPORT', messageOf(error), null);
        }
      },
      error: (error) => core.reportError(error, 'playout'),
      complete() {},
    },
  };
}

/** How delegations are worked out; null: the model names its tools. */
function workOutOf(core: LeadSession, options: VoiceSessionOptions): WorkOut | null {
  const { transport, agents, delegationModel = options.model } = options;
  if (transport.capabilities.toolCalls !== 'delegation') return null;
  if (delegationModel !== undefined) return withModel(core, delegationModel);
  checkDelegable(agents);
  return withoutModel(core);
}

function checkedVoice(voice: Partial<VoiceOptions> = {}): VoiceOptions {
  return check('voice', voiceSchema, { ...defaultVoiceOptions, ...withoutUndefined(voice) });
}

function checkThinkingSound(options: ThinkingSoundOptions | undefined): void {
  if (options === undefined) return;
  const { loop, afterMs = 0 } = options;
  const problem = problemOf(loop);
  if (problem === null && frameDurationMs(loop) >= 100 && afterMs >= 0) return;
  const expected = problem ?? 'Expected a `loop` of at least 100 ms, and `afterMs` of at least 0';
  throw new ConfigurationError('INVALID_OPTION', `thinkingSound: ${expected}`);
}

function problemOf(frame: AudioFrame): string | null {
  const { samples, sampleRateHz } = readable('frame', frame ?? {});
  if (!isA(samples, Int16Array))
    return `Expected frame.samples to be an Int16Array, got ${shown(samples)}`;
  if (samples.buffer.detached)
    return "Expected frame.samples to be the receiver's, got an Int16Array whose buffer was detached";
  if (!isSampleRateHz(sampleRateHz))
    return `Expected frame.sampleRateHz to be from 8000 to 48000, got ${shown(sampleRateHz)}`;
  return null;
}
