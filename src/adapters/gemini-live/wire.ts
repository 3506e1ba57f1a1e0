// The Gemini Live protocol without a socket. It contains a builder for each client message, typed against the official
// union, and schemas for the fields of server messages that this package reads. Pure.
//
// A server message may combine any number of fields. Two tables list each field of the official types, either with a
// schema for the parts that are read or with the reason why the field is ignored. If the official type gains a field,
// compilation fails until the table lists it. A type test fails if a part that is read changes. At run time, unknown
// fields are accepted, and every field is optional.

import { jsonOf, malformed, type MalformedFrame } from '../socket/event-table.ts';
import { z } from 'zod';
import type { TransportConfiguration } from '../../voice/connection/transport.ts';
import type { ClientMessage, LiveServerContent, LiveServerMessage } from './official.ts';

/** The server's native rate. It also accepts other rates if they are stated. */
export const INPUT_SAMPLE_RATE_HZ = 16_000;
export const OUTPUT_SAMPLE_RATE_HZ = 24_000;

/** The audio settings of a session, fixed at its start. */
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
    /** How sensitively the start of speech is detected. */
    readonly startSensitivity?: 'high' | 'low';
    /** How sensitively the end of speech is detected. */
    readonly endSensitivity?: 'high' | 'low';
    /** How long speech must last before it counts as started, in milliseconds. */
    readonly prefixPaddingMs?: number;
    /** How long silence must last before speech counts as ended, in milliseconds. */
    readonly silenceDurationMs?: number;
    /** Whether the user's voice interrupts the model. */
    readonly interrupts?: boolean;
    /** The content of a user turn: only speech, all audio, or speech and every picture. */
    readonly turnCoverage?: 'only_activity' | 'all_input' | 'activity_and_video';
  };
  readonly transcription?: {
    readonly languages?: readonly string[];
    readonly vocabulary?: readonly string[];
  };
  readonly compression: false | { readonly triggerTokens?: number; readonly targetTokens?: number };
  readonly transparentResumption: boolean;
}

/** The parts of the setup that depend on the model and the connection. */
interface SetupExtras {
  /** The declared behaviour of each tool; null leaves the behaviour to the model. */
  readonly toolBehavior: 'NON_BLOCKING' | null;
  /** Whether the first client content contains the conversation so far. */
  readonly beginsWithHistory: boolean;
  /** The handle of the session to resume. */
  readonly handle: string | null;
}

/** One conversation message. The protocol has no system role, so system messages become notes in user turns. */
export interface Turn {
  readonly role: 'user' | 'model';
  readonly parts: readonly (
    | { readonly text: string }
    | { readonly inlineData: { readonly mimeType: string; readonly data: string } }
  )[];
}

/** The first message of a connection: the whole setup. */
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

/** Replaces the instructions and tools. An empty tool list removes all tools. */
export function contextUpdate(
  configuration: TransportConfiguration,
  toolBehavior: SetupExtras['toolBehavior'],
) {
  const tools = configuration.tools.length > 0 ? toolsOf(configuration, toolBehavior) : [];
  return {
    contextUpdate: { systemInstruction: instruction(configuration), tools: { tools } },
  } satisfies ClientMessage;
}

/** Adds turns to the conversation. `turnComplete`: whether the model should respond now. */
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

/** Reports that the microphone is off, so that the server processes its buffered audio. */
export function audioStreamEnd() {
  return { realtimeInput: { audioStreamEnd: true } } satisfies ClientMessage;
}

/** The response to one call, in the protocol's form: an object with the function's name. */
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

/** Returns the JSON text for an audio frame. Base64 needs no escaping, and JSON.stringify would be 7 times slower. */
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
    // A tool without parameters omits the field; the server knows the schema dialect.
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

/** Returns the compression setting. Protobuf JSON writes 64-bit numbers as text. */
function compressionOf({
  triggerTokens,
  targetTokens,
}: Exclude<SessionSettings['compression'], false>) {
  return {
    ...(triggerTokens !== undefined && { triggerTokens: String(triggerTokens) }),
    slidingWindow: { ...(targetTokens !== undefined && { targetTokens: String(targetTokens) }) },
  };
}

const transcription = z.object({
  text: z.string().nullish(),
  finished: z.boolean().nullish(),
  /** The offset from the start of the audio, such as `1.5s`. */
  startOffset: z.string().nullish(),
});

const part = z.object({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  inlineData: z.object({ data: z.string().nullish(), mimeType: z.string().nullish() }).nullish(),
});

const contentTable = {
  modelTurn: z.object({ parts: z.array(part).nullish() }),
  turnComplete: z.boolean(),
  generationComplete: z.boolean(),
  interrupted: z.boolean(),
  inputTranscription: transcription,
  interimInputTranscription: transcription,
  outputTranscription: transcription,
  turnCompleteReason: z.string(),
  waitingForInput: z.boolean(),
  interactionStatus: z.string(),
  groundingMetadata: 'where the model looked something up: nothing here shows it',
  urlContextMetadata: 'pages that the model read: no such tool is configured',
} satisfies Record<keyof LiveServerContent, z.ZodType | string>;

const functionCall = z.object({
  id: z.string().nullish(),
  name: z.string(),
  args: z.record(z.string(), z.unknown()).nullish(),
});

const count = z.number().nullish();

/** The breakdown of a token count. Parts that cannot be read are dropped, but the count remains. */
const modalities = z
  .array(z.object({ modality: z.string(), tokenCount: z.number() }))
  .nullish()
  .catch(null);

const messageTable = {
  setupComplete: z.object({ sessionId: z.string().nullish() }),
  serverContent: readableOf(contentTable),
  toolCall: z.object({ functionCalls: z.array(functionCall).nullish() }),
  toolCallCancellation: z.object({ ids: z.array(z.string()).nullish() }),
  usageMetadata: z.object({
    promptTokenCount: count,
    toolUsePromptTokenCount: count,
    responseTokenCount: count,
    thoughtsTokenCount: count,
    cachedContentTokenCount: count,
    promptTokensDetails: modalities,
    responseTokensDetails: modalities,
  }),
  goAway: z.object({ timeLeft: z.string().nullish() }),
  sessionResumptionUpdate: z.object({
    newHandle: z.string().nullish(),
    resumable: z.boolean().nullish(),
    lastConsumedClientMessageIndex: z.union([z.string(), z.number()]).nullish(),
  }),
  voiceActivityDetectionSignal: z.object({ vadSignalType: z.string().nullish() }),
  voiceActivity: z.object({
    voiceActivityType: z.string().nullish(),
    audioOffset: z.string().nullish(),
  }),
} satisfies Record<Exclude<keyof LiveServerMessage, 'text' | 'data'>, z.ZodType | string>;

/** A parsed server message, which contains only the fields that this package reads. All fields are optional. */
export type ServerMessage = z.output<ReturnType<typeof readableOf<typeof messageTable>>>;
export type ServerContent = NonNullable<ServerMessage['serverContent']>;

/** The result of parsing a frame. */
type ParsedServerMessage =
  | {
      readonly kind: 'read';
      readonly message: ServerMessage;
      /** Field names that are unknown to this version. */
      readonly unknown: readonly string[];
      readonly raw: unknown;
    }
  | MalformedFrame;

const message = readableOf(messageTable);
const envelope = z.record(z.string(), z.unknown());

/** Parses one frame. Never throws. */
export function parseServerMessage(text: string): ParsedServerMessage {
  const parsed = jsonOf(text);
  if (parsed.kind === 'malformed') return parsed;
  const { raw } = parsed;
  const outer = envelope.safeParse(raw);
  if (!outer.success) return { kind: 'malformed', message: 'Expected an object', raw };
  const read = message.safeParse(raw);
  if (!read.success) return malformed('message', read.error, raw);
  const content = envelope.safeParse(outer.data['serverContent']);
  const unknown = [
    ...unknownIn(outer.data, messageTable),
    ...unknownIn(content.data ?? {}, contentTable).map((name) => `serverContent.${name}`),
  ];
  return { kind: 'read', message: read.data, unknown, raw };
}

function unknownIn(fields: object, table: object): readonly string[] {
  return Object.keys(fields).filter((name) => !Object.hasOwn(table, name));
}

type Table = Readonly<Record<string, z.ZodType | string>>;
type ReadIn<T extends Table> = {
  [Name in keyof T as T[Name] extends z.ZodType ? Name : never]: z.ZodOptional<
    z.ZodNullable<Extract<T[Name], z.ZodType>>
  >;
};

/** Returns an object schema with those fields of the table that are read. */
function readableOf<T extends Table>(table: T) {
  const fields = Object.entries(table).flatMap(([name, schema]) =>
    typeof schema === 'string' ? [] : [[name, schema.nullish()] as const],
  );
  return z.object(Object.fromEntries(fields) as ReadIn<T>);
}

/** Returns the milliseconds of a protobuf duration such as `9.5s`; null for any other text. */
export function durationMs(text: string | null | undefined): number | null {
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(text ?? '')?.[1];
  return seconds === undefined ? null : Math.round(Number(seconds) * 1000);
}
