// The messages that a client sends in the Gemini Live protocol. A field that is unknown or has the wrong shape ends the
// connection, because the protocol has no error messages.

import { z } from 'zod';
import { propertiesOf } from '../../../values/json.ts';
import type { ClientField } from './official.ts';

const INVALID = 'Request contains an invalid argument.';

/** The connection must be closed with 1007 and this reason. */
export class InvalidMessage extends Error {}

const blob = z.strictObject({ mimeType: z.string(), data: z.string() });
const functionResponse = z.strictObject({
  id: z.string().optional(),
  name: z.string().optional(),
  response: z.record(z.string(), z.unknown()),
  parts: z.array(z.unknown()).optional(),
  scheduling: z.enum(['SILENT', 'WHEN_IDLE', 'INTERRUPT']).optional(),
  willContinue: z.boolean().optional(),
});
const part = z.strictObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  inlineData: blob.optional(),
  functionCall: z
    .strictObject({
      id: z.string().optional(),
      name: z.string(),
      args: z.record(z.string(), z.unknown()).optional(),
    })
    .optional(),
  functionResponse: functionResponse.optional(),
});
const content = z.strictObject({
  role: z.enum(['user', 'model', 'system']).optional(),
  parts: z.array(part).optional(),
});
const behavior = z.enum(['BLOCKING', 'NON_BLOCKING']);
const declaration = z.strictObject({
  name: z.string().min(1),
  description: z.string().optional(),
  behavior: behavior.optional(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  parametersJsonSchema: z.record(z.string(), z.unknown()).optional(),
  response: z.record(z.string(), z.unknown()).optional(),
  responseJsonSchema: z.record(z.string(), z.unknown()).optional(),
});
const anything = z.record(z.string(), z.unknown());
const tool = z.strictObject({
  functionDeclarations: z.array(declaration).optional(),
  googleSearch: anything.optional(),
  codeExecution: anything.optional(),
  urlContext: anything.optional(),
});
/** 64-bit numbers may be written as strings. */
const count = z.union([z.number(), z.string().regex(/^\d+$/)]);

const setup = z.strictObject({
  model: z.string().startsWith('models/'),
  generationConfig: z
    .strictObject({
      responseModalities: z.array(z.enum(['AUDIO', 'TEXT'])).optional(),
      temperature: z.number().optional(),
      topP: z.number().optional(),
      topK: z.number().optional(),
      maxOutputTokens: z.number().optional(),
      mediaResolution: z.string().optional(),
      seed: z.number().optional(),
      speechConfig: anything.optional(),
      thinkingConfig: z
        .strictObject({
          includeThoughts: z.boolean().optional(),
          thinkingBudget: z.number().optional(),
          thinkingLevel: z.string().optional(),
        })
        .optional(),
      enableAffectiveDialog: z.boolean().optional(),
      translationConfig: anything.optional(),
    })
    .optional(),
  systemInstruction: content.optional(),
  tools: z.array(tool).optional(),
  realtimeInputConfig: z
    .strictObject({
      automaticActivityDetection: z
        .strictObject({
          disabled: z.boolean().optional(),
          startOfSpeechSensitivity: z.string().optional(),
          endOfSpeechSensitivity: z.string().optional(),
          prefixPaddingMs: z.number().optional(),
          silenceDurationMs: z.number().optional(),
        })
        .optional(),
      activityHandling: z.enum(['START_OF_ACTIVITY_INTERRUPTS', 'NO_INTERRUPTION']).optional(),
      turnCoverage: z.string().optional(),
    })
    .optional(),
  sessionResumption: z
    .strictObject({ handle: z.string().optional(), transparent: z.boolean().optional() })
    .optional(),
  contextWindowCompression: z
    .strictObject({
      triggerTokens: count.optional(),
      slidingWindow: z.strictObject({ targetTokens: count.optional() }).optional(),
    })
    .optional(),
  inputAudioTranscription: anything.optional(),
  outputAudioTranscription: anything.optional(),
  proactivity: anything.optional(),
  historyConfig: z
    .strictObject({ initialHistoryInClientContent: z.boolean().optional() })
    .optional(),
  safetySettings: z.array(anything).optional(),
  avatarConfig: anything.optional(),
});

const schemas = {
  setup,
  clientContent: z.strictObject({
    turns: z.array(content).optional(),
    turnComplete: z.boolean().optional(),
  }),
  realtimeInput: z.strictObject({
    audio: blob.optional(),
    video: blob.optional(),
    mediaChunks: z.array(blob).optional(),
    text: z.string().optional(),
    audioStreamEnd: z.boolean().optional(),
    activityStart: z.strictObject({}).optional(),
    activityEnd: z.strictObject({}).optional(),
  }),
  toolResponse: z.strictObject({ functionResponses: z.array(functionResponse) }),
  contextUpdate: z.strictObject({
    systemInstruction: content.optional(),
    tools: z.strictObject({ tools: z.array(tool).optional() }).optional(),
  }),
} satisfies Record<ClientField, z.ZodType>;

type Schemas = typeof schemas;
export type GeminiClientMessage = {
  [Field in keyof Schemas]: { readonly type: Field; readonly value: z.output<Schemas[Field]> };
}[keyof Schemas];
type ValueOf<Field extends keyof Schemas> = z.output<Schemas[Field]>;
export type Setup = ValueOf<'setup'>;
export type ClientContent = ValueOf<'clientContent'>;
export type RealtimeInput = ValueOf<'realtimeInput'>;
export type Content = z.output<typeof content>;
export type FunctionResponse = z.output<typeof functionResponse>;
export type FunctionDeclaration = z.output<typeof declaration>;
export type Tool = z.output<typeof tool>;
export type Blob = z.output<typeof blob>;

/** Parses a frame, which is an object with exactly one of the known fields. @throws {InvalidMessage} */
export function parseGeminiFrame(text: string): GeminiClientMessage {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw new InvalidMessage('Invalid JSON payload received.');
  }
  const fields = Object.keys(propertiesOf(raw));
  const unknown = fields.find((field) => !Object.hasOwn(schemas, field));
  if (unknown !== undefined) throw new InvalidMessage(unknownName(unknown, ''));
  const [field] = fields as (keyof Schemas)[];
  if (field === undefined || fields.length > 1) throw new InvalidMessage(INVALID);
  const checked = schemas[field].safeParse(propertiesOf(raw)[field]);
  if (checked.success) return { type: field, value: checked.data } as GeminiClientMessage;
  const [issue] = checked.error.issues;
  if (issue?.code !== 'unrecognized_keys') throw new InvalidMessage(INVALID);
  throw new InvalidMessage(unknownName(issue.keys[0] ?? '', [field, ...issue.path].join('.')));
}

function unknownName(name: string, place: string): string {
  const at = place === '' ? '' : ` at '${place}'`;
  return `Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`;
}
