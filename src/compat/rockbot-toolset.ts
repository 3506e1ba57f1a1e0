// The tools of RockBot's subagents, with RockBot's names, arguments and texts, implemented on the subagent service.
//
// Does not: return a text that starts with `Error:`. A program receives `{ error: { code, message } }`. The model
//           receives it as an error, so that no description or id can be mistaken for one.

import { tool, zodSchema, type Schema } from 'ai';
import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../values/checks.ts';
import { clip } from '../values/clip.ts';
import { nodeEnvironment } from '../adapters/node/environment.ts';
import type { Clock } from '../actors/ports/environment.ts';
import { callerOf } from '../actors/model/caller.ts';
import { AT_ITS_SESSION, marked, recipeOf, reconfigures } from '../actors/model/tool-flags.ts';
import type { SubagentService } from '../actors/contracts/service-types.ts';
import type { SubagentConfig } from '../actors/contracts/config.ts';
import {
  checkSpawnBase,
  withQuoted,
  type SpawnBase,
} from '../actors/subagents/toolsets/spawn-plan.ts';
import { inScope, type ToolScope } from '../actors/subagents/toolsets/toolset-scope.ts';
import { isToolFailure, toolFailure, type ToolFailure } from '../actors/model/tool-results.ts';

/** The options of `rockbotToolset`. */
export interface RockbotToolsetOptions {
  /** The clock for the running time of subagents. @defaultValue real time */
  readonly clock?: Clock;
  /** The service that executes calls from a program. In a session, the session's own service executes the calls. */
  readonly service?: SubagentService;
  /**
   * The base configuration of every subagent. The `timeout` applies to calls without `timeout_minutes` (RockBot's
   * `DefaultTimeoutMinutes`). @defaultValue name 'subagent', maxSteps 12, timeout 600000
   */
  readonly agent?: SpawnBase;
}

/** The limits that these tools were designed for: 3 subagents at a time and no queue. */
export const rockbotLimits = {
  maxConcurrentPerSession: 3,
  maxLivePerSession: 3,
  whenFull: 'reject',
} as const;

/** RockBot has no nested subagents, so only the primary agent receives these tools. */
const MANAGEMENT = ['spawn_subagent', 'cancel_subagent', 'list_subagents'] as const;

const MINUTE_MS = 60_000;
const DEFAULT_TIMEOUT_MS = 10 * MINUTE_MS;
const MAX_TIMEOUT_MINUTES = 24 * 60;
const MAX_LISTED_CHARS = 100;

const INSTRUCTIONS =
  'You do one task for another agent, in the background. Act directly. Call ReportProgress after ' +
  'each significant step. End with a summary of what you found and did, never with an empty message.';

function required(name: string) {
  return z
    .string({ error: `Missing required argument: ${name}` })
    .trim()
    .min(1, `Missing required argument: ${name}`)
    .max(100_000);
}

const spawnInput = z.object({
  description: required('description').describe('Detailed instructions for the subagent'),
  context: z.string().max(100_000).optional().describe('Additional data that it needs'),
  timeout_minutes: z
    .number()
    .positive()
    .max(MAX_TIMEOUT_MINUTES)
    .optional()
    .describe('Time that it may take, in minutes'),
});

/** The arguments from which the configuration is restored. */
const recipe = spawnInput.omit({ description: true });
const RECIPE = 'rockbot';

const cancelInput = z.object({ task_id: required('task_id') });

interface CallOptions {
  readonly toolCallId: string;
}

type Said = string | ToolFailure;

const optionsSchema = z.strictObject({
  clock: anObject('a clock', 'now').optional(),
  service: anObject('a service: createSubagentService(…)', 'spawn').optional(),
  agent: z.unknown().optional(),
} satisfies ChecksOf<RockbotToolsetOptions>);

/**
 * Creates the tools of RockBot's primary agent: `spawn_subagent`, `cancel_subagent` and `list_subagents`, with RockBot's
 * arguments and texts.
 * @throws {ConfigurationError} if an option, or an option in `agent`, is unknown or invalid.
 */
export function rockbotToolset(options: RockbotToolsetOptions = {}) {
  check('rockbotToolset(options)', optionsSchema, options);
  const { clock = nodeEnvironment().clock, service: given, agent = {} } = options;
  checkSpawnBase('rockbotToolset({ agent })', agent);
  const say = (call: CallOptions, work: (scope: ToolScope) => Said) => inScope(call, given, work);
  return {
    spawn_subagent: marked(
      spoken({
        description:
          'Start a subagent that works on a task in the background. Returns at once with a task_id.',
        inputSchema: zodSchema(spawnInput),
        execute: (input, call: CallOptions) =>
          say(call, (scope) => spawn(scope, input, call.toolCallId, agent)),
      }),
      reconfigures(RECIPE, recipe, (input) => configure(input, agent)),
    ),
    cancel_subagent: spoken({
      description: 'Cancel a running subagent.',
      inputSchema: zodSchema(cancelInput),
      execute: ({ task_id: id }, call: CallOptions) =>
        say(call, ({ service, requester }) =>
          service.cancel(id, requester, 'cancelled by the primary agent')
            ? `Subagent ${id} cancelled.`
            : `No active subagent found with task_id: ${id}`,
        ),
    }),
    list_subagents: spoken({
      description: 'The subagents that are running, with their latest progress.',
      inputSchema: zodSchema(z.object({})),
      execute: (_, call: CallOptions) => say(call, (scope) => list(scope, clock)),
    }),
  };
}

/** Creates the subagent's tool `ReportProgress`. `rockbotToolset` passes it to the subagents that it spawns. */
export function rockbotChildToolset() {
  return {
    ReportProgress: spoken({
      description:
        'Note how far you are: whoever asks about the task reads it. After a significant step, not after every call.',
      inputSchema: zodSchema(z.object({ message: required('message') })),
      execute: async ({ message }, call: CallOptions): Promise<Said> => {
        const caller = callerOf(call);
        if (!caller || caller.subagentId === null)
          return toolFailure('INVALID_STATE', 'Not running as a subagent');
        const note = { update: message, percent: null };
        const reported = caller.service.report(caller.subagentId, note);
        return reported.ok
          ? 'Progress reported.'
          : toolFailure(reported.error.code, reported.error.message);
      },
    }),
  };
}

function spawn(
  { service, requester, idempotencyKey }: ToolScope,
  input: z.infer<typeof spawnInput>,
  callId: string,
  agent: SpawnBase,
): Said {
  const { context, ...kept } = recipe.parse(input);
  const config = configure(kept, agent);
  const receipt = service.spawn({
    config,
    // The text from the calling model is data in the task. It is not part of the system prompt.
    task: {
      toolName: config.name,
      args: context ? { context } : {},
      description: input.description,
    },
    caller: requester,
    callId,
    grant: { disallowedTools: MANAGEMENT },
    recipe: recipeOf(RECIPE, kept),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
  if (receipt.status === 'accepted')
    return `Subagent spawned with task_id: ${receipt.subagentId}. It will report progress and send a final result when complete.`;
  const { code, message } = receipt.error;
  const isFull = code === 'SESSION_LIMIT' || code === 'GLOBAL_LIMIT';
  const advice = '. Use list_subagents to see them, or cancel_subagent to end one.';
  return toolFailure(code, isFull ? message + advice : message);
}

function configure(
  { context, timeout_minutes: minutes }: z.infer<typeof recipe>,
  agent: SpawnBase,
): SubagentConfig {
  const { name = 'subagent', instructions = INSTRUCTIONS, timeout = DEFAULT_TIMEOUT_MS } = agent;
  return {
    maxSteps: 12,
    context: 'none',
    ...agent,
    name,
    // Recipes from earlier versions contain `context`.
    instructions: context ? withQuoted(instructions, { context }) : instructions,
    timeout: minutes === undefined ? timeout : minutes * MINUTE_MS,
    tools: { ...agent.tools, ...rockbotChildToolset() },
  };
}

function list({ service, requester }: ToolScope, clock: Clock): string {
  const active = service.list(requester);
  if (active.length === 0) return 'No active subagents.';
  const lines = active.map(({ id, startedAt, task, progress }) => {
    const elapsed = Math.round((clock.now() - startedAt) / 1000);
    // Each subagent takes exactly one line, whatever the text of its task.
    const line = (text: string): string => clip(text.replace(/\s+/g, ' '), MAX_LISTED_CHARS);
    const latest = progress.at(-1);
    const how = latest ? `, progress=${line(latest.update)}` : '';
    return `- task_id=${id}, elapsed=${elapsed}s, description=${line(task)}${how}`;
  });
  return [`Active subagents (${active.length}):`, ...lines].join('\n');
}

/** Creates a tool whose answer is a text. Repeating a call is safe, because a spawn is recognised by its key. */
function spoken<Input>(definition: {
  readonly description: string;
  readonly inputSchema: Schema<Input>;
  readonly execute: (input: Input, call: CallOptions) => Promise<Said>;
}) {
  return marked(tool(definition), {
    ...AT_ITS_SESSION,
    toModelOutput,
    idempotent: true,
  });
}

/** Returns the output that the model receives. */
function toModelOutput({ output }: { readonly output: Said }) {
  return isToolFailure(output)
    ? { type: 'error-text' as const, value: `Error: ${output.error.message}` }
    : { type: 'text' as const, value: output };
}
