// The lead of a voice session, which is a voice model behind a transport. Audio enters and leaves as streams, and the
// client reports the audio that it has played. A transport provides this lead (`Transport.lead`), so that a program
// without a transport does not load the voice code. The public class `VoiceSession` imports only its types.

import type { LanguageModel } from 'ai';
import { Subject, type Observer } from 'rxjs';
import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../values/checks.ts';
import { readable, shown } from '../values/plain-checks.ts';
import { ConfigurationError, isA, messageOf, ProtocolError } from '../values/errors.ts';
import { guarded } from '../actors/runtime/guarded-stream.ts';
import type { Runtime } from '../actors/admission/runtime.ts';
import { SessionCore } from '../actors/session/lifecycle/session-core.ts';
import {
  checkSessionOptions,
  sessionChecks,
  someObject,
  type SessionOptions,
} from '../actors/session/lifecycle/session-options.ts';
import { aModel } from '../actors/model/model.ts';
import type { LeadSession } from '../actors/session/lead/lead-agents.ts';
import { withoutUndefined } from '../values/without-undefined.ts';
import { isSampleRateHz } from './audio/resampler.ts';
import { frameDurationMs, type AudioFrame } from './audio/audio-frame.ts';
import { checkedAcknowledgement, type AcknowledgementOptions } from './output/acknowledgement.ts';
import { checkedFiller, type FillerOptions, type ThinkingSoundOptions } from './output/waiting.ts';
import { checkDelegable, withModel, withoutModel, type WorkOut } from './turns/delegations.ts';
import type { Transport } from './connection/transport.ts';
import { VoiceLead } from './voice-lead.ts';
import { resampleFrames } from './audio/frame-operators.ts';
import { withVoice } from './voiced/with-voice.ts';

/** Speech options: when results are spoken, when they count as heard, and how the session reconnects. */
export interface VoiceOptions {
  /** The silence before an unprompted delivery is spoken, in milliseconds. @defaultValue 300 */
  readonly quietMs: number;
  /**
   * The silence after a question before another delivery is spoken, in milliseconds. Urgent deliveries do not wait.
   * During this time the user can answer. The wait ends early if the user speaks or the question is answered.
   * @defaultValue 3000
   */
  readonly answerMs: number;
  /** The fraction of the audio that must be played to count as heard, from 0 to 1. @defaultValue 0.9 */
  readonly heardFraction: number;
  /**
   * The maximum time that an attempt may go without any played audio before it fails, in milliseconds. @defaultValue
   * 15000
   */
  readonly offerTimeoutMs: number;
  /** The maximum time that an attempt may take to be played to its end, in milliseconds. @defaultValue 120000 */
  readonly playTimeoutMs: number;
  /** After this many failed attempts, a delivery remains as a card on the screen. @defaultValue 3 */
  readonly maxAttempts: number;
  /** The maximum time that the transcript may take after the utterance, in milliseconds. @defaultValue 5000 */
  readonly settleTimeoutMs: number;
  /**
   * After this many consecutive failed reconnects, the session rests. Its subagents then continue, results and
   * questions wait, and the pauses grow from `maxReconnectDelayMs` to ten times as much. A session that has never been
   * connected ends instead.
   * @defaultValue 5
   */
  readonly maxReconnects: number;
  /** The delay before the first reconnect, in milliseconds; it doubles with each attempt. @defaultValue 1000 */
  readonly reconnectDelayMs: number;
  /** The maximum reconnect delay, in milliseconds. @defaultValue 30000 */
  readonly maxReconnectDelayMs: number;
  /** The maximum time that the client's playout report may take after a stop, in milliseconds. @defaultValue 300 */
  readonly clearReportMs: number;
  /**
   * After an utterance has stopped the speech, the speech can still be continued for this time, in milliseconds. When
   * the user speaks, the lead agent's speech stops immediately. If the utterance was only a noise or a backchannel
   * ("mm-hm"), or if its words take longer than this, the speech continues from the point up to which it was heard.
   * With 0, any user audio is an interruption.
   * @defaultValue 2000
   */
  readonly falseInterruptionMs: number;
  /**
   * An utterance over the lead agent's speech counts as an interruption from this length on, in milliseconds.
   * @defaultValue 1000
   */
  readonly backchannelMs: number;
  /**
   * The maximum length of an utterance, in milliseconds, at least 1000. The session ends a longer one (such as a
   * television's). The words recognised so far are then treated as the whole utterance. Audio that follows directly
   * does not take the floor until it has been quiet for three seconds. If a transport splits a long utterance (local
   * voice does so after 15 s), the pieces are counted together. @defaultValue 60000
   */
  readonly maxUtteranceMs: number;
  /** The maximum time that a response may go without activity before it fails, in milliseconds. @defaultValue 30000 */
  readonly responseTimeoutMs: number;
  /**
   * The time in milliseconds after which a model that responds on its own is asked to speak, if it stays silent after
   * words addressed to it or after a tool result. @defaultValue 5000
   */
  readonly replyTimeoutMs: number;
  /** The maximum time that a connection may take to become ready, in milliseconds. @defaultValue 30000 */
  readonly connectTimeoutMs: number;
  /**
   * The maximum time that an agent may take to become ready to lead, in milliseconds; at most 45000. After that, the
   * agent does not become the lead agent. @defaultValue 30000
   */
  readonly transferTimeoutMs: number;
  /**
   * The amount of user audio that is stored while no model can hear it, in milliseconds. This is the case while the
   * connection is lost or not ready, or the lead agent is being replaced. The newest audio is kept. @defaultValue 10000
   */
  readonly keptAudioMs: number;
  /**
   * If a question was heard but not answered, it is asked again in its short form ("Economy, Premium, or Van?") after
   * this much silence, in milliseconds; null for never. The session repeats it at most twice; after that, the question
   * stays on the screen until it expires. Silence does not count while a tool of the lead agent is working.
   * @defaultValue 15000
   */
  readonly nudgeAfterMs: number | null;
  /** The silence before `user.away` is reported, in milliseconds; null for never. @defaultValue 15000 */
  readonly awayAfterMs: number | null;
}

export const defaultVoiceOptions = {
  quietMs: 300,
  answerMs: 3000,
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
  nudgeAfterMs: 15_000,
  awayAfterMs: 15_000,
} as const satisfies VoiceOptions;

export interface VoiceSessionOptions extends SessionOptions {
  /** The transport to the voice model: `openaiRealtime(…)`. */
  readonly transport: Transport;
  /** The runtime that the session belongs to. */
  readonly runtime: Runtime;
  /** Settings for listening and speaking. @defaultValue the defaults of `VoiceOptions` */
  readonly voice?: Partial<VoiceOptions>;
  /**
   * A sound that plays while the user is waiting for a reply or a tool and no one is speaking, such as `{ loop:
   * workingSound() }`. The frames of the sound have no `itemId`. The sound stops as soon as anyone speaks.
   * @defaultValue none
   */
  readonly thinkingSound?: ThinkingSoundOptions;
  /**
   * A short phrase that fills a long silence of the lead agent, such as `{ afterMs: 1500 }`. It is said while the agent
   * is waiting for a tool, and also before the agent replies if a voice of the session says the phrase. The phrase is
   * neither a reply nor a delivery, it stops when the user speaks, and the transcript marks it with `filler: true`.
   * Without a voice (`filler.voice`, or a transport created with `withVoice`), the model says the phrase if the
   * transport has `speaksOutOfBand`.
   * @defaultValue none
   */
  readonly filler?: FillerOptions;
  /**
   * The words that acknowledge an answer to a question before the result is ready: "Premium. One moment.". The
   * acknowledgement is not a delivery, it stops when the user speaks, and the transcript marks it with `filler: true`.
   * A model that responds on its own and cannot speak out of band may use other words for the acknowledgement. `false`:
   * none.
   * @defaultValue on
   */
  readonly acknowledgement?: AcknowledgementOptions | false;
  /**
   * The model that chooses the tools when a voice model delegates without naming a tool, in one short step per
   * delegation. It is needed only with such a transport, and only if an agent has several tools, or a tool that does
   * not have exactly one required string parameter. Otherwise, the user's words are passed to the agent's only tool.
   * @defaultValue `model`
   */
  readonly delegationModel?: LanguageModel;
}

const sessionSchema = z.strictObject({
  ...sessionChecks,
  // Validated separately, before the other options.
  transport: z.unknown().optional(),
  runtime: anObject('a runtime: createRuntime(…)'),
  // Validated by the components that use them.
  voice: someObject,
  thinkingSound: someObject,
  filler: z.unknown().optional(),
  acknowledgement: z.unknown().optional(),
  delegationModel: aModel.optional(),
} satisfies ChecksOf<VoiceSessionOptions>);

/** The error codes for invalid client input. */
const INVALID = { audioIn: 'INVALID_AUDIO', playout: 'INVALID_PLAYOUT_REPORT' } as const;
type Input = keyof typeof INVALID;
/** For up to this many different mistakes, the first occurrence is reported immediately. */
const MAX_KINDS_OF_MISTAKES = 10;

const milliseconds = z.number().min(0);
const limitMs = z.number().positive();
const voiceChecks = {
  quietMs: milliseconds,
  answerMs: milliseconds,
  heardFraction: z.number().gt(0).max(1),
  offerTimeoutMs: limitMs,
  playTimeoutMs: limitMs,
  maxAttempts: z.number().int().min(1),
  settleTimeoutMs: milliseconds,
  maxReconnects: z.number().int().min(0),
  reconnectDelayMs: milliseconds,
  maxReconnectDelayMs: milliseconds,
  clearReportMs: milliseconds,
  falseInterruptionMs: milliseconds,
  backchannelMs: milliseconds,
  maxUtteranceMs: z.number().min(1000),
  responseTimeoutMs: limitMs,
  replyTimeoutMs: limitMs,
  connectTimeoutMs: limitMs,
  transferTimeoutMs: limitMs.max(45_000),
  keptAudioMs: limitMs,
  nudgeAfterMs: limitMs.nullable(),
  awayAfterMs: limitMs.nullable(),
} satisfies ChecksOf<VoiceOptions>;

const voiceSchema = z
  .strictObject(voiceChecks)
  .refine(({ reconnectDelayMs, maxReconnectDelayMs }) => reconnectDelayMs <= maxReconnectDelayMs, {
    path: ['reconnectDelayMs'],
    error: 'expected at most `maxReconnectDelayMs`',
  });

const playoutReport = z.object({ itemId: z.string(), playedMs: milliseconds });

/** A client's report of how much audio has been played. */
export interface PlayoutReport {
  /** The `itemId` of the frames that were played. */
  readonly itemId: string;
  /** How much of this item has been played, measured from its start, in milliseconds. */
  readonly playedMs: number;
}

/** The lead that a transport provides, as seen by the class `VoiceSession`. */
export interface SpokenLead {
  /** Marks the lead, so that `VoiceSession` can refuse a transport without one. */
  readonly leadsBy: 'voice';
  readonly open: typeof open;
  readonly withVoice: typeof withVoice;
}

/** Leads a voice session: `Transport.lead`. */
export const spokenLead: SpokenLead = { leadsBy: 'voice', open, withVoice };

/**
 * Opens a voice session: returns its core, its lead, and their streams.
 * @throws {ConfigurationError} if options contradict each other
 */
function open(options: VoiceSessionOptions) {
  checkSessionOptions('VoiceSession', sessionSchema, options);
  const { transport, thinkingSound, delegationModel = options.model } = options;
  const given = withoutUndefined(options.voice ?? {});
  const voice: VoiceOptions = check('voice', voiceSchema, { ...defaultVoiceOptions, ...given });
  checkThinkingSound(thinkingSound);
  const { capabilities } = transport;
  if (capabilities.output === 'text')
    throw new ConfigurationError(
      'VOICE_NEEDED',
      `The model of \`${transport.name}\` answers in text. Expected \`transport\` to be withVoice(…, { voice })`,
    );
  const filler = options.filler && checkedFiller(options.filler, transport);
  const { acknowledgement: wanted = {} } = options;
  const acknowledgement = wanted === false ? undefined : checkedAcknowledgement(wanted, transport);
  const core = new SessionCore({
    ...options,
    systemAs: options.systemAs ?? (capabilities.takesSystemMessages === false ? 'user' : 'system'),
    outbox: voice,
    settleTimeoutMs: voice.settleTimeoutMs,
    maxReconnects: voice.maxReconnects,
    connectTimeoutMs: voice.connectTimeoutMs,
    transferTimeoutMs: voice.transferTimeoutMs,
    // A response can be interrupted only if it can be cancelled, because the model would otherwise talk over an urgent
    // delivery. If the model's memory cannot be truncated, the model receives a note that states which part was heard.
    canInterrupt: capabilities.cancelsResponses,
    acknowledgesCalls: !capabilities.defersToolResults,
    hasVoice: true,
    leadSettles: capabilities.toolCalls !== 'delegation' || delegationModel !== undefined,
    makeLead: (made) => {
      const workOut = workOutOf(made, options);
      const extras = withoutUndefined({ workOut, thinkingSound, filler, acknowledgement });
      return new VoiceLead(made, { ...voice, transport, ...extras });
    },
  });
  const { lead, host } = core;
  const audioOut = guarded(lead.audioOut, host, 'audioOut');
  return { core, lead, audioOut, ...checkedStreams(core, lead, capabilities.inputSampleRateHz) };
}

/**
 * Validates client input. Invalid input is dropped and reported with a count, immediately the first time and later at
 * growing intervals. Client input never causes the session to throw.
 */
function checkedStreams(core: SessionCore, lead: VoiceLead, sampleRateHz: number) {
  const dropped = { audioIn: 0, playout: 0 };
  /**
   * The mistakes that have already been reported. A repeated mistake is reported only when the number of dropped inputs
   * reaches a power of ten.
   */
  const reported = new Set<string>();
  const drop = (where: Input, problem: string, raw: unknown): void => {
    dropped[where] += 1;
    const count = dropped[where];
    const isNew = reported.size < MAX_KINDS_OF_MISTAKES && !reported.has(problem);
    if (!isNew && !Number.isInteger(Math.log10(count))) return;
    reported.add(problem);
    const message = count === 1 ? problem : `${problem} (${count} were dropped so far)`;
    core.reportError(new ProtocolError(INVALID[where], message, { raw }), where);
  };
  let microphone = new Subject<AudioFrame>();
  const listen = (): void => {
    microphone = new Subject();
    microphone.pipe(resampleFrames(sampleRateHz)).subscribe({
      next: (frame) => lead.userSpoke(frame),
      // After the error, the resampler starts from a fresh state.
      error: (error: unknown) => {
        listen();
        drop('audioIn', messageOf(error), null);
      },
    });
  };
  listen();
  let isResampling = false;
  const heard = (frame: AudioFrame): void => {
    const wasResampling = isResampling;
    isResampling = frame.sampleRateHz !== sampleRateHz;
    // A frame that already has the target rate bypasses the resampler, unless the resampler is still holding back
    // earlier samples.
    if (isResampling || wasResampling) microphone.next(frame);
    else if (frame.samples.length > 0) lead.userSpoke(frame);
  };
  const input = <Value>(where: Input, take: (value: Value) => void): Observer<Value> => ({
    next(value) {
      try {
        take(value);
      } catch (error) {
        drop(where, messageOf(error), null);
      }
    },
    error: (error) => core.reportError(error, where),
    complete() {},
  });
  return {
    audioIn: input('audioIn', (frame: AudioFrame) => {
      const problem = problemOf(frame);
      if (problem === null) heard(frame);
      else drop('audioIn', problem, frame);
    }),
    playout: input('playout', (report: PlayoutReport) => {
      const { itemId, playedMs } = check('playout.next(report)', playoutReport, report);
      lead.played(itemId, playedMs);
    }),
  };
}

/** Returns the component that chooses the tools for a delegation; undefined if the model names its tools. */
function workOutOf(core: LeadSession, options: VoiceSessionOptions): WorkOut | undefined {
  const { transport, agents, delegationModel = options.model } = options;
  if (transport.capabilities.toolCalls !== 'delegation') return undefined;
  if (delegationModel !== undefined) return withModel(core, delegationModel);
  checkDelegable(agents);
  return withoutModel(core);
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
  const isNone = typeof frame !== 'object' || frame === null || ArrayBuffer.isView(frame);
  if (isNone)
    return `Expected a frame { samples, sampleRateHz }, got ${shown(frame)}${asSamples(frame)}`;
  const { samples, sampleRateHz } = readable('frame', frame);
  if (!isA(samples, Int16Array))
    return `Expected frame.samples to be an Int16Array, got ${shown(samples)}${asSamples(samples)}`;
  if (samples.buffer.detached)
    return "Expected frame.samples to be the receiver's, got an Int16Array whose buffer was detached";
  if (!isSampleRateHz(sampleRateHz))
    return `Expected frame.sampleRateHz to be from 8000 to 48000, got ${shown(sampleRateHz)}`;
  return null;
}

/** Returns a hint on how to convert audio of this type to Int16 samples. */
function asSamples(sound: unknown): string {
  if (typeof sound === 'string')
    return '. If it is 16-bit PCM in base64: decodePcm16Base64(text) of offstage/voice';
  if (isA(sound, Uint8Array)) return '. If it is 16-bit PCM: decodePcm16(bytes) of offstage/voice';
  if (!isA(sound, Float32Array)) return '';
  return '. Samples from -1 to 1 are clipped, and multiplied by 32767';
}
