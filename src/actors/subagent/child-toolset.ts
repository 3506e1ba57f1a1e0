// The tools with which a subagent reports progress to its parent, asks it questions, and submits the result.
//
// Owns:     the schemas of these tools, their descriptions for the model, and the parsing of their arguments.
//           `complete_task` is added if a result must be submitted and no tool has the role for submitting it.
// Does not: handle `request_input` and `complete_task`. In a subagent, the runtime handles these tools. It recognises
//           them by their role, whatever their names are. Their `execute` is called only outside a subagent, where it
//           returns an error.

import { propertiesOf } from '../../values/json.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { tool, zodSchema } from 'ai';
import { z } from 'zod';
import type { Toolset } from '../contracts/task.ts';
import { check, type ChecksOf } from '../../values/checks.ts';
import { callerOf } from '../model/caller.ts';
import { AT_ITS_SESSION, marked, ROLE, roleOf } from '../model/tool-flags.ts';
import type { PreparedTools } from '../model/tools.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import { checkResult } from '../model/output.ts';
import { note, sentence, type Note } from '../notes/note.ts';
import type { ModelCall } from '../model/model-step.ts';
import { toolFailure, type ToolFailure } from '../model/tool-results.ts';

/** The toolset's name in a registry of toolsets. */
export const CHILD_TOOLSET = { name: 'subagent-child', version: '0.1.0' } as const;

const MAX_WORDS = 20_000;

const words = z.string().trim().min(1).max(MAX_WORDS);

/** Names of the tools. */
export type ChildTool = 'report_progress' | 'request_input' | 'complete_task';

/** The options of `createChildSubagentToolset`. */
export interface ChildToolsetOptions {
  /**
   * Whether the result is JSON instead of text. The JSON matches the subagent's `outputSchema`, which the prompt
   * describes.
   * @defaultValue false
   */
  readonly structured?: boolean;
}

const progressInput = z.object({
  update: words.describe('What was done, or is being done, in a sentence'),
  percentComplete: z.number().min(0).max(100).optional().describe('How far it is, 0 to 100'),
});

const requestInput = z.object({
  question: words.describe('What you need to know from the agent that gave you the task'),
  context: z.string().max(MAX_WORDS).optional().describe('What helps to answer it'),
  timeoutMs: z
    .number()
    .int()
    .positive()
    .optional()
    .describe('How long to wait for the answer, in milliseconds; default 60000'),
});

const summary = z
  .string()
  .max(MAX_WORDS)
  .optional()
  .describe('The result in one or two sentences that can be said aloud');

const artifacts = z
  .array(
    z.object({
      type: z.string().min(1).max(200).describe('A media type'),
      name: z.string().min(1).max(200),
      content: z.union([z.string(), z.looseObject({}), z.array(z.unknown())]),
    }),
  )
  .max(20)
  .optional()
  .describe('What was made beside the result');

const textResult = z.object({ result: words.describe('The result, in full'), summary, artifacts });

const structuredResult = z.object({
  result: z
    .union([z.looseObject({}), z.array(z.unknown()), z.string(), z.number(), z.boolean(), z.null()])
    .describe('The result: JSON of the agreed shape'),
  summary,
  artifacts,
});

const optionsSchema = z.strictObject({
  structured: z.boolean().optional(),
} satisfies ChecksOf<ChildToolsetOptions>);

const notASubagent = (): ToolFailure => toolFailure('INVALID_STATE', 'Not running as a subagent');

/**
 * Creates plain AI SDK tools: `report_progress`, `request_input`, `complete_task`. Outside a subagent, each returns
 * `{ error: { code: 'INVALID_STATE' } }`.
 */
export function createChildSubagentToolset(given: ChildToolsetOptions = {}): Toolset<ChildTool> {
  const { structured = false } = check('createChildSubagentToolset(options)', optionsSchema, given);
  return {
    report_progress: marked(
      tool({
        description:
          'Note how far you are: whoever asks about the task reads it. Use it after each significant step, not after every call.',
        inputSchema: zodSchema(progressInput),
        execute: ({ update, percentComplete }, options) => {
          const caller = callerOf(options);
          if (!caller || caller.subagentId === null) return notASubagent();
          const progress = { update, percent: percentComplete ?? null };
          const reported = caller.service.report(caller.subagentId, progress);
          return reported.ok
            ? { reported: true }
            : toolFailure(reported.error.code, reported.error.message);
        },
      }),
      { ...AT_ITS_SESSION, idempotent: true },
    ),
    request_input: marked(
      tool({
        description:
          'Ask the agent that gave you the task a question, and wait for the answer. Returns { responded, response?, timedOut }.',
        inputSchema: zodSchema(requestInput),
        execute: notASubagent,
      }),
      { [ROLE]: 'request_input' as const },
    ),
    complete_task: marked(
      tool({
        description: 'Hand in the result and end the task. Nothing that you do afterwards counts.',
        inputSchema: zodSchema(structured ? structuredResult : textResult),
        execute: notASubagent,
      }),
      { [ROLE]: 'complete_task' as const },
    ),
  };
}

const requestRead = z.object({
  question: z.string().catch(''),
  context: z.string().optional().catch(undefined),
  timeoutMs: z.number().positive().optional().catch(undefined),
});

/** Reads the request from the arguments of a `request_input` call, even if the app's tool has a different schema. */
export function requestedInput(call: ModelCall | undefined): {
  question: string;
  context?: string;
  timeoutMs?: number;
} {
  return withoutUndefined(requestRead.parse(call?.input ?? {}));
}

/** Returns the name of the tool that submits a result, or null if there is none. */
export function completionToolOf(tools: Readonly<Record<string, unknown>>): string | null {
  return Object.keys(tools).find((name) => roleOf(tools[name]) === 'complete_task') ?? null;
}

/** Does the same as `completionToolOf`, for prepared tools. */
export function completionToolIn({ execution }: PreparedTools): string {
  for (const { name, role } of execution.values()) if (role === 'complete_task') return name;
  return 'complete_task';
}

/** Returns the tools that the runtime adds so that the work can be completed. */
export function completionTools({
  completion,
  tools,
  outputSchema,
}: SubagentDefinition): Record<string, unknown> {
  if (completion === 'turn' || completionToolOf(tools) !== null) return {};
  const { complete_task } = createChildSubagentToolset({ structured: outputSchema !== undefined });
  return { complete_task };
}

/**
 * Returns the call with its result, converted by the output schema. If the result does not match the schema, the call
 * is invalid.
 */
export async function checkHandIn(call: ModelCall, outputSchema: unknown): Promise<ModelCall> {
  if (outputSchema === undefined) return call;
  const { result, ...rest } = propertiesOf(call.input);
  const checked = await checkResult(outputSchema, result);
  if (checked.ok) return { ...call, input: { ...rest, result: checked.value } };
  const message = `The result was not accepted: ${checked.reason}`;
  return { ...call, invalid: { message } };
}

const LEFT_AT_WORK = sentence`Your answer would end your subagents that are still at work. Await their results or cancel them, then answer again. If you answer now, they are cancelled.`;

/**
 * Returns the note for a model that would end the run with its answer while its `children` are still running. Returns
 * null if there are none, or if the model has just read this note.
 */
export function leftAtWork(children: readonly string[] = [], last: unknown = null): Note | null {
  if (children.length === 0 || JSON.stringify(last).includes(LEFT_AT_WORK)) return null;
  return note(LEFT_AT_WORK, { subagents: [...children] });
}

/** Returns the note for a model that answers without submitting its result. */
export function notHandedInNote(toolName: string): Note {
  return note(
    sentence`The task is not done before you call the quoted tool with its result. Go on, or call it now: other answers reach no reader.`,
    { tool: toolName },
  );
}
