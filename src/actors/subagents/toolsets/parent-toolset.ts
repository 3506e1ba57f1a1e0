// An agent's tools for working with subagents: they spawn, check, message, await, list and cancel them.
//
// Owns:     the schemas of these tools, the interpretation of the names in a spawn (spawn-plan.ts), and the outputs for
//           a model (parent-views.ts).
// Does not: hold state. The service does, or parent-views.ts on the service's behalf. The tools use the service of the
//           session or subagent that calls them. If a program calls them, the service comes from the options.
//
// Invariants
//   PARENT-TOOLSET-1. If the service refuses a request, the result is `{ error: { code, message } }` with the service's
//       code. The tools never throw.
//   PARENT-TOOLSET-2. A wait that is aborted or times out never ends a subagent.
//   PARENT-TOOLSET-3. After a crash, a running call is repeated (`idempotent`). A spawn finds its subagent by the key,
//       and the recipient recognises a message by its key. The other tools only read, or cancel a subagent that has
//       already ended. A call that sends a message returns only when the message is in the journal and can no longer be
//       lost.

import type { Toolset } from '../../contracts/task.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { tool, zodSchema, type ModelMessage, type Tool } from 'ai';
import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../../values/checks.ts';
import { closeDanglingCalls, toolFailure, type ToolFailure } from '../../model/tool-results.ts';
import {
  AT_ITS_SESSION,
  DELEGATES,
  marked,
  recipeOf,
  reconfigures,
} from '../../model/tool-flags.ts';
import { awaitManyView, awaitOneView, checkView, keepReceipt, listedView } from './parent-views.ts';
import type { SubagentService } from '../../contracts/service-types.ts';
import {
  checkSpawnBase,
  planSpawn,
  SPAWN_RECIPE,
  spawnChecks,
  spawnInput,
  spawnRecipe,
  words,
  type SpawnInput,
  type SpawnOptions,
} from './spawn-plan.ts';
import { inScope, type ToolScope } from './toolset-scope.ts';
/** The toolset's name and version in a registry of toolsets. */
export const PARENT_TOOLSET = { name: 'subagent-parent', version: '0.1.0' } as const;

/** Hints for hosts that display these calls or ask for confirmation. AI SDK tools have no property for them. */
export const toolsetAnnotations = {
  spawn_subagent: { destructive: true },
  check_subagent: { readOnly: true },
  await_subagent: { readOnly: true },
  list_subagents: { readOnly: true },
  send_to_subagent: {},
  kill_subagent: { destructive: true },
  cancel_subagent: { destructive: true },
  report_progress: {},
  request_input: {},
  complete_task: {},
} as const satisfies Record<string, { readonly destructive?: true; readonly readOnly?: true }>;

/** The names of the tools. */
export type ParentTool =
  | 'spawn_subagent'
  | 'check_subagent'
  | 'send_to_subagent'
  | 'await_subagent'
  | 'kill_subagent'
  | 'list_subagents'
  | 'cancel_subagent';

/** The options of `createParentSubagentToolset`. */
export interface ParentToolsetOptions extends SpawnOptions {
  /**
   * The service that the tools use when a program calls them: `createSubagentService(…)`. In a session or a subagent,
   * its own service is used.
   */
  readonly service?: SubagentService;
}

const anId = z.string().min(1).max(200);
const milliseconds = z.number().int().positive().max(86_400_000);
const aSubagent = anId.describe('The subagentId that spawn_subagent returned');

const checkInput = z.object({ subagentId: aSubagent });

const sendInput = z.object({
  subagentId: aSubagent,
  content: words.describe('The message, or the answer'),
  inResponseTo: anId
    .optional()
    .describe('The messageId (requestId) of its pending request, if this is the answer to it'),
  mode: z
    .enum(['queue', 'steer', 'interrupt'])
    .default('steer')
    .describe(
      'queue: it reads this when it would have ended; steer: at its next step; interrupt: at once',
    ),
});

const awaitInput = z.object({
  subagentId: aSubagent.optional(),
  subagentIds: z.array(anId).min(1).max(100).optional().describe('Several, instead of one'),
  mode: z
    .enum(['any', 'all'])
    .default('all')
    .describe('Of several: until the first one, or all of them, ended or need input'),
  timeoutMs: milliseconds.optional().describe('At most so long; default 300000'),
});

const killInput = z.object({
  subagentId: aSubagent,
  reason: z.string().trim().min(1).max(1000).default('Killed by parent'),
});

const cancelInput = z.object({
  subagentId: aSubagent,
  reason: z.string().trim().min(1).max(1000).default('Cancelled by parent'),
});

const listInput = z.object({
  includeEnded: z.boolean().default(false).describe('Also those that have ended'),
});

type AwaitInput = z.infer<typeof awaitInput>;

/** The part of the AI SDK's `execute` options that the tools read. */
interface CallOptions {
  readonly toolCallId: string;
  readonly messages?: readonly ModelMessage[];
  readonly abortSignal?: AbortSignal | undefined;
}

const optionsSchema = z.strictObject({
  ...spawnChecks,
  service: anObject('a service: createSubagentService(…)', 'spawn').optional(),
} satisfies ChecksOf<ParentToolsetOptions>);

/**
 * Creates plain AI SDK tools, for a lead agent (`leadTools`), a subagent, or any AI SDK agent outside a session. A spawned
 * subagent receives the caller's tools, or those that the call names, and the tools of `createChildSubagentToolset`.
 * @throws {ConfigurationError} if an option is unknown or invalid, including those in `agent`.
 */
export function createParentSubagentToolset(
  options: ParentToolsetOptions = {},
): Toolset<ParentTool> {
  check('createParentSubagentToolset(options)', optionsSchema, options);
  checkSpawnBase('createParentSubagentToolset({ agent })', options.agent ?? {});
  for (const [name, adapter] of Object.entries(options.adapters ?? {}))
    checkSpawnBase(`createParentSubagentToolset({ adapters.${name} })`, adapter);
  const answer = <T>(call: CallOptions, work: (scope: ToolScope) => T | Promise<T>) =>
    inScope(call, options.service, work);
  return {
    spawn_subagent: marked(
      tool({
        description:
          'Start a subagent that works on a task in the background. Returns { subagentId, status } at once, and no result: until that comes, as a note or from await_subagent or check_subagent, you know nothing of it. Do not guess it.',
        inputSchema: zodSchema(spawnInput),
        execute: (input, call: CallOptions) =>
          answer(call, (scope) => spawn(scope, input, call, options)),
      }),
      {
        ...AT_ITS_SESSION,
        idempotent: true,
        ...reconfigures(SPAWN_RECIPE, spawnRecipe, (input) => {
          const plan = planSpawn({ ...input, task: '' }, options, input.systemPrompt);
          if (!plan.ok) throw new Error(plan.failure.error.message);
          return plan.config;
        }),
      },
    ),
    check_subagent: repeatable({
      description:
        'The status of a subagent, its progress, its pending request, and its result once it has ended.',
      inputSchema: zodSchema(checkInput),
      execute: ({ subagentId }, call: CallOptions) =>
        answer(call, ({ service, requester }) => {
          const checked = service.check(subagentId, requester);
          return checked.ok ? checkView(service, checked.report) : refusal(checked);
        }),
    }),
    send_to_subagent: repeatable({
      description:
        'Tell a subagent something, or answer its pending request (inResponseTo). What became of the message is shown by check_subagent.',
      inputSchema: zodSchema(sendInput),
      execute: ({ subagentId, ...message }, call: CallOptions) =>
        answer(call, async ({ service, requester, idempotencyKey }) => {
          const told = withoutUndefined({ ...message, idempotencyKey });
          const sent = service.send(subagentId, told, requester);
          if (!sent.ok) return refusal(sent);
          const { messageId, resolvedPending, receipt, written } = sent;
          if (!resolvedPending) keepReceipt(service, subagentId, messageId, receipt);
          await written;
          return { sent: true, resolvedPending, messageId };
        }),
    }),
    await_subagent: marked(
      repeatable({
        description:
          'Wait until a subagent has ended or needs input. Several: subagentIds, and mode any or all.',
        inputSchema: zodSchema(awaitInput),
        execute: (input, call: CallOptions) => answer(call, (scope) => wait(scope, input, call)),
      }),
      { [DELEGATES]: true as const },
    ),
    kill_subagent: repeatable({
      description:
        'Like cancel_subagent, but answers { killed: false } where nothing was ended. Prefer cancel_subagent.',
      inputSchema: zodSchema(killInput),
      execute: ({ subagentId, reason }, call: CallOptions) =>
        answer(call, ({ service, requester }) => ({
          killed: service.cancel(subagentId, requester, reason),
        })),
    }),
    list_subagents: repeatable({
      description: 'Your subagents, and those of your workstream: status and latest progress.',
      inputSchema: zodSchema(listInput),
      execute: (list, call: CallOptions) =>
        answer(call, ({ service, requester }) => ({
          subagents: service
            .list(requester, list)
            .filter(({ id }) => id !== requester.subagentId)
            .map(listedView),
        })),
    }),
    cancel_subagent: repeatable({
      description:
        'End a subagent and all that it spawned, or learn why not (NOT_FOUND, ALREADY_TERMINAL).',
      inputSchema: zodSchema(cancelInput),
      execute: ({ subagentId, reason }, call: CallOptions) =>
        answer(call, (scope) => cancel(scope, subagentId, reason)),
    }),
  };
}

/** Creates a tool whose calls may be repeated if their outcome is unknown. */
const repeatable: typeof tool = ((definition: Tool) =>
  marked(tool(definition), { ...AT_ITS_SESSION, idempotent: true })) as typeof tool;

function spawn(
  { service, requester, idempotencyKey }: ToolScope,
  input: SpawnInput,
  { toolCallId, messages }: CallOptions,
  options: SpawnOptions,
): { subagentId: string; status: 'spawning' } | ToolFailure {
  const plan = planSpawn(input, options);
  if (!plan.ok) return plan.failure;
  const { task, contextMode, tools, disallowedTools, maxDepth, workstreamId } = input;
  const { systemPrompt: instructions, ...recipe } = spawnRecipe.parse(input);
  const receipt = service.spawn({
    config: plan.config,
    // Text from the calling model becomes part of the task's data, never part of the system prompt.
    task: {
      toolName: plan.config.name,
      args: withoutUndefined({ instructions }),
      description: task,
    },
    caller: requester,
    callId: toolCallId,
    recipe: recipeOf(SPAWN_RECIPE, recipe),
    ...withoutUndefined({
      grant: withoutUndefined({ tools, disallowedTools }),
      workstreamId,
      maxDepth,
      idempotencyKey,
      adapterName: input.adapterName,
      modelName: input.model,
      // A conversation that ends with unanswered calls could not be continued.
      messages: contextMode === 'fork' && messages ? closeDanglingCalls(messages) : undefined,
    }),
  });
  return receipt.status === 'accepted'
    ? { subagentId: receipt.subagentId, status: 'spawning' }
    : refusal(receipt);
}

async function wait(
  { service, requester }: ToolScope,
  { subagentId, subagentIds, mode, timeoutMs }: AwaitInput,
  { abortSignal: signal }: CallOptions,
) {
  if ((subagentId === undefined) === (subagentIds === undefined))
    return toolFailure('INVALID_INPUT', 'Expected either subagentId or subagentIds');
  const ids = subagentIds ?? [subagentId as string];
  const waited = await service.await(
    ids,
    requester,
    withoutUndefined({ mode, timeoutMs, signal, heedsUser: true }),
  );
  if (!waited.ok) return refusal(waited);
  return subagentIds ? awaitManyView(service, waited) : awaitOneView(service, waited);
}

function cancel(
  { service, requester }: ToolScope,
  subagentId: string,
  reason: string,
): { cancelled: true } | ToolFailure {
  if (service.cancel(subagentId, requester, reason)) return { cancelled: true };
  // Unlike `check`, `list` does not mark the result as delivered.
  const found = service.list(requester, { includeEnded: true }).find(({ id }) => id === subagentId);
  if (!found) return toolFailure('NOT_FOUND', `There is no subagent "${subagentId}"`);
  return found.endedAt === null
    ? toolFailure('INVALID_STATE', `Subagent "${subagentId}" is not below you`)
    : toolFailure('ALREADY_TERMINAL', `Subagent "${subagentId}" has ended as ${found.state}`);
}

function refusal({ error }: { readonly error: ToolFailure['error'] }): ToolFailure {
  return toolFailure(error.code, error.message);
}
