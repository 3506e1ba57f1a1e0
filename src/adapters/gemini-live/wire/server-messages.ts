// The server messages of the Gemini Live wire, and the fields that are read.
//
// A message carries any number of fields at once. Two tables name every field of the official types: either
// with a schema of the parts that are read, or with the reason why it is not read. The compiler refuses a
// table when the official type grows, and a type test fails when a part that is read changes; at run time
// additional fields are accepted, and missing ones are absent.

import { z } from 'zod';
import type { LiveServerContent, LiveServerMessage } from './official.ts';

const transcription = z.object({
  text: z.string().nullish(),
  finished: z.boolean().nullish(),
  /** The offset from the beginning of the sound, such as `1.5s`. */
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

/** A message of the server: the fields that are read, each of which may be missing. */
export type ServerMessage = z.output<ReturnType<typeof readableOf<typeof messageTable>>>;
export type ServerContent = NonNullable<ServerMessage['serverContent']>;

/** The result of parsing a frame. */
export type ParsedServerMessage =
  | {
      readonly kind: 'read';
      readonly message: ServerMessage;
      /** Names of fields that this version does not know. */
      readonly unknown: readonly string[];
      readonly raw: unknown;
    }
  | { readonly kind: 'malformed'; readonly message: string; readonly raw: unknown };

const message = readableOf(messageTable);
const envelope = z.record(z.string(), z.unknown());
const MAX_RAW_LENGTH = 2_000;

/** Reads one frame. Never throws. */
export function parseServerMessage(text: string): ParsedServerMessage {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    const shown = text.slice(0, MAX_RAW_LENGTH);
    return { kind: 'malformed', message: 'Expected JSON, got something else', raw: shown };
  }
  const outer = envelope.safeParse(raw);
  if (!outer.success) return { kind: 'malformed', message: 'Expected an object', raw };
  const read = message.safeParse(raw);
  if (!read.success) {
    const issues = read.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    return { kind: 'malformed', message: `Malformed message: ${issues.join('; ')}`, raw };
  }
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

/** Returns the schema of an object with those fields of a table that are read. */
function readableOf<T extends Table>(table: T): z.ZodObject<ReadIn<T>> {
  const fields = Object.entries(table).flatMap(([name, schema]) =>
    typeof schema === 'string' ? [] : [[name, schema.nullish()] as const],
  );
  return z.object(Object.fromEntries(fields)) as unknown as z.ZodObject<ReadIn<T>>;
}
