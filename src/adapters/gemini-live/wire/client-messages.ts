// What we say on the Gemini Live wire: one builder for each client message, typed
// against the official union. Pure.

import type { TransportConfiguration } from '../../../voice/connection/transport.ts';
import type { ClientMessage } from './official.ts';

/** The server takes other rates too, if they are named truly; this is the one that it is made for. */
export const INPUT_SAMPLE_RATE_HZ = 16_000;
export const OUTPUT_SAMPLE_RATE_HZ = 24_000;

/** How the sound of a session is treated, fixed when it begins. */
export interface SessionSettings {
  readonly model: string;
  readonly voice?: string;
  readonly language?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly thinking?: {
    readonly level?: 'minimal' | 'low' | 'medium' | 'high';
    readonly budget?: number;
  };
  readonly voiceActivity?: {
    /** How easily sound is taken for the beginning of speech. */
    readonly startSensitivity?: 'high' | 'low';
    /** How easily a pause is taken for its end. */
    readonly endSensitivity?: 'high' | 'low';
    /** So much speech before it counts as begun, in milliseconds. */
    readonly prefixPaddingMs?: number;
    /** So much silence before it counts as ended, in milliseconds. */
    readonly silenceDurationMs?: number;
    /** Whether the user's voice stops the model's. */
    readonly interrupts?: boolean;
    /** What belongs to what the user says: only speech, all sound, or speech and every picture. */
    readonly turnCoverage?: 'only_activity' | 'all_input' | 'activity_and_video';
  };
  readonly transcription?: {
    readonly languages?: readonly string[];
    readonly vocabulary?: readonly string[];
  };
  readonly compression: false | { readonly triggerTokens?: number; readonly targetTokens?: number };
  readonly transparentResumption: boolean;
}

/** What depends on the model and on the connection. */
export interface SetupExtras {
  /** What is declared of each tool; null: nothing, the model decides. */
  readonly toolBehavior: 'NON_BLOCKING' | null;
  /** The first client content is the conversation so far. */
  readonly beginsWithHistory: boolean;
  /** The session that this one goes on from. */
  readonly handle: string | null;
}

/** One message of a conversation. There is no role for the system: it speaks in brackets. */
export interface Turn {
  readonly role: 'user' | 'model';
  readonly parts: readonly (
    | { readonly text: string }
    | { readonly inlineData: { readonly mimeType: string; readonly data: string } }
  )[];
}

/** The first message of a connection: everything. */
export function setup(
  settings: SessionSettings,
  configuration: TransportConfiguration,
  { toolBehavior, beginsWithHistory, handle }: SetupExtras,
) {
  const { voice, language, temperature, maxOutputTokens, thinking } = settings;
  const { transcription, compression, transparentResumption } = settings;
  const hasTools = configuration.tools.length > 0;
  return {
    setup: {
      model: settings.model.includes('/') ? settings.model : `models/${settings.model}`,
      generationConfig: {
        responseModalities: ['AUDIO'],
        ...((voice !== undefined || language !== undefined) && {
          speechConfig: {
            ...(voice !== undefined && {
              voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } },
            }),
            ...(language !== undefined && { languageCode: language }),
          },
        }),
        ...(temperature !== undefined && { temperature }),
        ...(maxOutputTokens !== undefined && { maxOutputTokens }),
        ...(thinking && { thinkingConfig: thinkingConfig(thinking) }),
      },
      systemInstruction: instruction(configuration),
      ...(hasTools && { tools: toolsOf(configuration, toolBehavior) }),
      ...(settings.voiceActivity && { realtimeInputConfig: realtimeInput(settings.voiceActivity) }),
      inputAudioTranscription: {
        ...(transcription?.languages && { languageCodes: transcription.languages }),
        ...(transcription?.vocabulary && { customVocabulary: transcription.vocabulary }),
      },
      outputAudioTranscription: {},
      sessionResumption: {
        ...(handle !== null && { handle }),
        ...(transparentResumption && { transparent: true }),
      },
      ...(compression && { contextWindowCompression: compressionOf(compression) }),
      ...(beginsWithHistory && { historyConfig: { initialHistoryInClientContent: true } }),
    },
  } satisfies ClientMessage;
}

/** Instructions and tools from now on. A list of tools that is empty takes all of them away. */
export function contextUpdate(
  configuration: TransportConfiguration,
  toolBehavior: SetupExtras['toolBehavior'],
) {
  const tools = configuration.tools.length > 0 ? toolsOf(configuration, toolBehavior) : [];
  return {
    contextUpdate: { systemInstruction: instruction(configuration), tools: { tools } },
  } satisfies ClientMessage;
}

/** Adds to the conversation. `turnComplete`: the model shall answer it now. */
export function clientContent(turns: readonly Turn[], turnComplete: boolean) {
  return {
    clientContent: { ...(turns.length > 0 && { turns }), turnComplete },
  } satisfies ClientMessage;
}

export function realtimeText(text: string) {
  return { realtimeInput: { text } } satisfies ClientMessage;
}

export function realtimePicture(mimeType: string, data: string) {
  return { realtimeInput: { video: { mimeType, data } } } satisfies ClientMessage;
}

/** The microphone is off: what the server has cached is complete. */
export function audioStreamEnd() {
  return { realtimeInput: { audioStreamEnd: true } } satisfies ClientMessage;
}

/** The answer to one call, as the wire wants it: always named, always an object. */
export interface FunctionResponse {
  readonly id: string;
  readonly name: string;
  readonly response: Readonly<Record<string, unknown>>;
  readonly scheduling?: 'SILENT' | 'WHEN_IDLE' | 'INTERRUPT';
}

export function toolResponse(functionResponses: readonly FunctionResponse[]) {
  return { toolResponse: { functionResponses } } satisfies ClientMessage;
}

const AUDIO_TYPE = `audio/pcm;rate=${INPUT_SAMPLE_RATE_HZ}`;

/** A frame of sound, as text: base64 needs no escaping, so JSON.stringify (7 times slower) has nothing to do. */
export function audioText(base64: string): string {
  return `{"realtimeInput":{"audio":{"data":"${base64}","mimeType":"${AUDIO_TYPE}"}}}`;
}

function instruction({ instructions }: TransportConfiguration) {
  return { parts: [{ text: instructions }] };
}

function toolsOf(
  { tools }: TransportConfiguration,
  behavior: SetupExtras['toolBehavior'],
): readonly [{ readonly functionDeclarations: readonly FunctionDeclaration[] }] {
  const functionDeclarations = tools.map(({ name, description, parameters }) => {
    // A tool without parameters says so by leaving them out; the dialect is known.
    const { $schema: _, ...parametersJsonSchema } = parameters;
    return { name, description, parametersJsonSchema, ...(behavior && { behavior }) };
  });
  return [{ functionDeclarations }];
}

interface FunctionDeclaration {
  readonly name: string;
  readonly description: string;
  readonly parametersJsonSchema: unknown;
  readonly behavior?: 'NON_BLOCKING';
}

const LEVELS = { minimal: 'MINIMAL', low: 'LOW', medium: 'MEDIUM', high: 'HIGH' } as const;

function thinkingConfig({ level, budget }: NonNullable<SessionSettings['thinking']>) {
  return {
    ...(level !== undefined && { thinkingLevel: LEVELS[level] }),
    ...(budget !== undefined && { thinkingBudget: budget }),
  };
}

const START_SENSITIVITIES = {
  high: 'START_SENSITIVITY_HIGH',
  low: 'START_SENSITIVITY_LOW',
} as const;
const END_SENSITIVITIES = { high: 'END_SENSITIVITY_HIGH', low: 'END_SENSITIVITY_LOW' } as const;
const COVERAGES = {
  only_activity: 'TURN_INCLUDES_ONLY_ACTIVITY',
  all_input: 'TURN_INCLUDES_ALL_INPUT',
  activity_and_video: 'TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO',
} as const;

function realtimeInput(activity: NonNullable<SessionSettings['voiceActivity']>) {
  const { startSensitivity, endSensitivity, interrupts, turnCoverage } = activity;
  const { prefixPaddingMs, silenceDurationMs } = activity;
  return {
    automaticActivityDetection: {
      ...(startSensitivity && { startOfSpeechSensitivity: START_SENSITIVITIES[startSensitivity] }),
      ...(endSensitivity && { endOfSpeechSensitivity: END_SENSITIVITIES[endSensitivity] }),
      ...(prefixPaddingMs !== undefined && { prefixPaddingMs }),
      ...(silenceDurationMs !== undefined && { silenceDurationMs }),
    },
    ...(interrupts === false && { activityHandling: 'NO_INTERRUPTION' as const }),
    ...(turnCoverage && { turnCoverage: COVERAGES[turnCoverage] }),
  };
}

/** Numbers of 64 bits are texts in the JSON of protobuf. */
function compressionOf({
  triggerTokens,
  targetTokens,
}: Exclude<SessionSettings['compression'], false>) {
  return {
    ...(triggerTokens !== undefined && { triggerTokens: String(triggerTokens) }),
    slidingWindow: { ...(targetTokens !== undefined && { targetTokens: String(targetTokens) }) },
  };
}
