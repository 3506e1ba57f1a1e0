// A session's configuration: the initial one, and its changes by `session.update`. Each change is either applied
// completely or rejected.

import { z } from 'zod';
import {
  audioFormat,
  functionTool,
  maxOutputTokens,
  outputModalities,
  reasoning,
  toolChoice,
  voiceChoice,
  type FunctionTool,
  type ToolChoice,
} from './client-events.ts';
import { Refusal } from './wire-events.ts';
import { refusalOf } from './zod-refusal.ts';

const detectionFlags = {
  create_response: z.boolean().nullish(),
  interrupt_response: z.boolean().nullish(),
};
const serverVad = z.strictObject({
  ...detectionFlags,
  type: z.literal('server_vad'),
  threshold: z.number().min(0).max(1).nullish(),
  prefix_padding_ms: z.int().min(0).max(5_000).nullish(),
  silence_duration_ms: z.int().min(0).max(10_000).nullish(),
  // Not supported, because the app decides whether to speak to a silent user.
  idle_timeout_ms: z.null().optional(),
});
const semanticVad = z.strictObject({
  ...detectionFlags,
  type: z.literal('semantic_vad'),
  eagerness: z.enum(['low', 'medium', 'high', 'auto']).nullish(),
});

const transcription = z.strictObject({
  model: z.string().nullish(),
  language: z.string().nullish(),
  languages: z.array(z.string()).nullish(),
  prompt: z.string().nullish(),
  keywords: z.array(z.string()).nullish(),
  delay: z.string().nullish(),
});
const noiseReduction = z.strictObject({
  type: z.enum(['near_field', 'far_field']).nullish(),
  strength: z.number().nullish(),
});

const sessionPatch = z.strictObject({
  type: z.literal('realtime'),
  model: z.string().nullish(),
  instructions: z.string().nullish(),
  output_modalities: outputModalities.nullish(),
  tools: z.array(functionTool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning: reasoning.nullish(),
  max_output_tokens: maxOutputTokens.nullish(),
  truncation: z.union([z.enum(['auto', 'disabled']), z.looseObject({})]).nullish(),
  tracing: z.union([z.literal('auto'), z.looseObject({})]).nullish(),
  prompt: z.null().optional(),
  include: z.array(z.string()).nullish(),
  audio: z
    .strictObject({
      input: z
        .strictObject({
          format: audioFormat.nullish(),
          transcription: transcription.nullish(),
          noise_reduction: noiseReduction.nullish(),
          turn_detection: z.discriminatedUnion('type', [serverVad, semanticVad]).nullish(),
        })
        .nullish(),
      output: z
        .strictObject({
          format: audioFormat.nullish(),
          voice: voiceChoice.nullish(),
          speed: z.number().min(0.25).max(1.5).nullish(),
        })
        .nullish(),
    })
    .nullish(),
});

type SessionPatch = z.output<typeof sessionPatch>;
type TurnDetectionPatch = NonNullable<
  NonNullable<NonNullable<SessionPatch['audio']>['input']>['turn_detection']
>;

export type TurnDetection =
  | {
      readonly type: 'server_vad';
      readonly threshold: number;
      readonly prefix_padding_ms: number;
      readonly silence_duration_ms: number;
      readonly idle_timeout_ms: null;
      readonly create_response: boolean;
      readonly interrupt_response: boolean;
    }
  | {
      readonly type: 'semantic_vad';
      readonly eagerness: 'low' | 'medium' | 'high' | 'auto';
      readonly create_response: boolean;
      readonly interrupt_response: boolean;
    };

const pcm24 = { type: 'audio/pcm', rate: 24_000 } as const;

/** The current configuration, in the protocol's form. */
export interface SessionConfig {
  readonly object: 'realtime.session';
  readonly type: 'realtime';
  readonly id: string;
  readonly model: string;
  readonly instructions: string;
  readonly output_modalities: ('text' | 'audio')[];
  readonly tools: FunctionTool[];
  readonly tool_choice: ToolChoice;
  readonly parallel_tool_calls: boolean | null;
  readonly reasoning: { effort?: 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | null } | null;
  readonly max_output_tokens: number | 'inf';
  readonly truncation: 'auto';
  readonly tracing: null;
  readonly prompt: null;
  readonly include: null;
  /** The extension events that this server accepts; absent if there are none. */
  readonly extensions?: readonly string[];
  readonly audio: {
    readonly input: {
      readonly format: typeof pcm24;
      readonly transcription: {
        model: string;
        language: string | null;
        prompt: string | null;
      } | null;
      readonly noise_reduction: { type: 'near_field' | 'far_field' } | null;
      readonly turn_detection: TurnDetection | null;
    };
    readonly output: {
      readonly format: typeof pcm24;
      readonly voice: string | { id: string };
      readonly speed: number;
    };
  };
}

/** Returns the configuration before the first `session.update`. */
export function defaultSessionConfig(id: string, model: string, voice: string): SessionConfig {
  return {
    object: 'realtime.session',
    type: 'realtime',
    id,
    model,
    instructions: '',
    output_modalities: ['audio'],
    tools: [],
    tool_choice: 'auto',
    parallel_tool_calls: null,
    reasoning: null,
    max_output_tokens: 'inf',
    truncation: 'auto',
    tracing: null,
    prompt: null,
    include: null,
    audio: {
      input: {
        format: pcm24,
        transcription: null,
        noise_reduction: null,
        turn_detection: detectionWithDefaults({ type: 'server_vad' }, null),
      },
      output: { format: pcm24, voice, speed: 1 },
    },
  };
}

/**
 * Returns the updated configuration. Fields that are present replace the old ones, objects are merged, and `null` turns
 * a setting off. Settings that have no effect here (tracing, truncation, noise reduction …) are accepted.
 * @param spoken Whether audio has been generated. After that, the voice cannot be changed.
 * @throws {Refusal}
 */
export function updateSessionConfig(
  current: SessionConfig,
  patch: unknown,
  spoken: boolean,
): SessionConfig {
  const checked = sessionPatch.safeParse(patch);
  if (!checked.success) throw refusalOf(checked.error, patch, 'session');
  const { audio, ...rest } = checked.data;
  const input = audio?.input ?? {};
  const output = audio?.output ?? {};
  const voice = output.voice ?? current.audio.output.voice;
  if (spoken && voiceName(voice) !== voiceName(current.audio.output.voice)) {
    const message = "Cannot update a conversation's voice if assistant audio is present.";
    throw new Refusal('cannot_update_voice', message, 'session.audio.output.voice');
  }
  return {
    ...current,
    model: rest.model ?? current.model,
    instructions: rest.instructions ?? current.instructions,
    output_modalities: rest.output_modalities ?? current.output_modalities,
    tools: rest.tools ?? current.tools,
    tool_choice: rest.tool_choice ?? current.tool_choice,
    parallel_tool_calls: unlessAbsent(rest.parallel_tool_calls, current.parallel_tool_calls),
    reasoning: unlessAbsent(rest.reasoning, current.reasoning),
    max_output_tokens: rest.max_output_tokens ?? current.max_output_tokens,
    audio: {
      input: {
        ...current.audio.input,
        transcription: unlessAbsent(
          input.transcription && {
            model: input.transcription.model ?? 'moonshine-tiny',
            language: input.transcription.language ?? null,
            prompt: input.transcription.prompt ?? null,
          },
          current.audio.input.transcription,
        ),
        noise_reduction: unlessAbsent(
          input.noise_reduction && { type: input.noise_reduction.type ?? 'near_field' },
          current.audio.input.noise_reduction,
        ),
        turn_detection: unlessAbsent(
          input.turn_detection &&
            detectionWithDefaults(input.turn_detection, current.audio.input.turn_detection),
          current.audio.input.turn_detection,
        ),
      },
      output: {
        ...current.audio.output,
        voice,
        speed: output.speed ?? current.audio.output.speed,
      },
    },
  };
}

/** Returns the name of a voice, built-in or custom. */
export function voiceName(voice: string | { readonly id: string }): string {
  return typeof voice === 'string' ? voice : voice.id;
}

function unlessAbsent<T>(next: T | undefined, current: T): T {
  return next === undefined ? current : next;
}

/**
 * Returns the detection settings. If the type is unchanged, missing fields keep their values. Otherwise, they get the
 * defaults.
 */
function detectionWithDefaults(
  patch: TurnDetectionPatch,
  current: TurnDetection | null,
): TurnDetection {
  const flags = {
    create_response: patch.create_response ?? current?.create_response ?? true,
    interrupt_response: patch.interrupt_response ?? current?.interrupt_response ?? true,
  };
  if (patch.type === 'semantic_vad') {
    const before = current?.type === 'semantic_vad' ? current.eagerness : 'auto';
    return { type: 'semantic_vad', eagerness: patch.eagerness ?? before, ...flags };
  }
  const before = current?.type === 'server_vad' ? current : null;
  return {
    type: 'server_vad',
    threshold: patch.threshold ?? before?.threshold ?? 0.5,
    prefix_padding_ms: patch.prefix_padding_ms ?? before?.prefix_padding_ms ?? 300,
    silence_duration_ms: patch.silence_duration_ms ?? before?.silence_duration_ms ?? 500,
    idle_timeout_ms: null,
    ...flags,
  };
}
