// A subagent as a tool with typed input and output. A call of the tool waits for the result. The same tool can be used
// in a program's `generateText`, by another subagent, and by a lead agent.
//
// Owns:     the contract of the call, and how the calling model learns of a failure.
// Does not: run the subagent (the service does), or share state. The subagent receives only the input, and the parent
//           only the result.
//
// Invariants
//   SUB-AGENT-TOOL-1. Each call runs one subagent. When the call ends, the subagent has ended or has been cancelled,
//       unless the call returned its question (`questions: 'return'`).
//   SUB-AGENT-TOOL-2. A failure is returned as `{ error, code }`, so that the calling model decides how to proceed.

import { tool, type FlexibleSchema, type Tool } from 'ai';
import { z } from 'zod';
import { isRecord } from '../../../values/json.ts';
import { check, type ChecksOf } from '../../../values/checks.ts';
import { checkIsObject, readable, shown } from '../../../values/plain-checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { wrapSchema, withInputNames } from '../../model/schema.ts';
import { type SubagentConfig } from '../../contracts/config.ts';
import { awaitEnd, inScope, type ToolScope } from './toolset-scope.ts';
import {
  DELEGATES,
  marked,
  RUN_OF_ITS_OWN,
  SUBAGENT,
  type OnParentClose,
  type SubagentFlag,
} from '../../model/tool-flags.ts';
import { programChecks, programService, type ProgramOptions } from '../subagent-service.ts';
import type { SubagentReport } from '../../contracts/service-types.ts';
import { checkSubagentConfig } from '../../subagent/config.ts';
import type { ToolFailure } from '../../model/tool-results.ts';

/** A tool named `subagent__<type>` runs the subagent of that type. */
export const SUBAGENT_TOOL_PREFIX = 'subagent__';

/** A subagent whose result has a schema. */
export interface SubAgentConfig extends SubagentConfig {
  readonly outputSchema: FlexibleSchema<unknown>;
}

/** The options of `createSubAgentTool`. */
export interface SubAgentToolOptions extends ProgramOptions {
  /** The description for the calling model. @defaultValue `Hands the task to the subagent "<name>"…` */
  readonly description?: string;
  /**
   * How to handle a question that the subagent asks with `request_input` while its parent is waiting for it. `decline`:
   * the subagent is told that it will get no answer. `return`: the call returns the question, `{ status:
   * 'waiting_input', subagentId, pendingRequest }`, for a parent that also has `send_to_subagent` and `await_subagent`.
   * @defaultValue 'decline'
   */
  readonly questions?: 'return' | 'decline';
  /**
   * How to handle the subagent if its parent run ends first. Applies to an engine that stores runs (`runSubagent(…, {
   * engine })`), where the subagent is a separate run. `cancel`: the subagent is cancelled. `abandon`: the subagent
   * continues, and the engine stores its outcome. Without such an engine, the subagent is always cancelled.
   * @defaultValue 'cancel'
   */
  readonly onParentClose?: OnParentClose;
}

/** A failure in the form that the calling model reads. */
export interface SubagentFailure {
  readonly error: string;
  readonly code: string;
  /** The last text that the subagent wrote. */
  readonly partial?: string;
}

/** An AI SDK tool that the runtime recognises as a subagent. */
export type SubAgentTool<Input> = Tool<Input, unknown> &
  SubagentFlag & { readonly [DELEGATES]: true };

const optionsSchema = z.strictObject({
  ...programChecks,
  description: z.string().optional(),
  questions: z.enum(['return', 'decline']).optional(),
  onParentClose: z.enum(['cancel', 'abandon']).optional(),
} satisfies ChecksOf<SubAgentToolOptions>);

interface CallOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
}

/**
 * Creates a tool that runs a subagent. The subagent sees only its input, unless its `context` includes more.
 * @throws {ConfigurationError} OUTPUT_SCHEMA_REQUIRED; INVALID_OPTION or INVALID_SCHEMA if the configuration or a
 *   schema is invalid.
 */
export function createSubAgentTool<Input>(
  agent: SubAgentConfig,
  inputSchema: FlexibleSchema<Input>,
  options: SubAgentToolOptions = {},
): SubAgentTool<Input> {
  readable('createSubAgentTool(…, options)', options);
  check('createSubAgentTool(…, options)', optionsSchema, options);
  checkIsObject(
    'createSubAgentTool(agent)',
    agent,
    "createSubAgentTool({ name: 'reporter', instructions: '…', outputSchema }, inputSchema)",
  );
  readable('createSubAgentTool(agent)', agent);
  if ((agent as SubagentConfig).outputSchema === undefined)
    throw new ConfigurationError(
      'OUTPUT_SCHEMA_REQUIRED',
      `createSubAgentTool: expected the subagent ${shown(agent.name)} to have an outputSchema, got none`,
    );
  const { model, questions = 'decline', onParentClose = 'cancel' } = options;
  const description = options.description ?? `Hands a task to the subagent "${agent.name}".`;
  const inputs = withInputNames(wrapSchema(inputSchema, `${agent.name}: inputSchema`));
  const config: SubagentConfig = {
    context: 'none',
    ...(model ? { model } : {}),
    ...agent,
    inputSchema: inputs,
  };
  checkSubagentConfig(config, agent.name);
  const made: Tool<Input, unknown> = tool({
    description,
    inputSchema: inputs as FlexibleSchema<Input>,
    execute: async (input: Input, call: CallOptions) => {
      const done = await inScope(call, programService(options), async (scope) => ({
        output: await run(scope, config, description, input, call, questions),
      }));
      return 'output' in done ? done.output : flat(done.error);
    },
  });
  return marked(made, {
    [DELEGATES]: true as const,
    [SUBAGENT]: config,
    // A call can return a question only if it is made within the caller's run.
    ...(questions === 'decline' ? { [RUN_OF_ITS_OWN]: onParentClose } : {}),
  });
}

/**
 * Returns the tools, named so that the runtime recognises them: `subagent__<type>`.
 * @throws {ConfigurationError} INVALID_TOOL if two tools have the same type.
 */
export function subAgentTools<const Tools extends readonly SubagentFlag[]>(
  ...tools: Tools
): Record<string, Tools[number]> {
  const record: Record<string, Tools[number]> = {};
  for (const made of tools) {
    const name = `${SUBAGENT_TOOL_PREFIX}${made[SUBAGENT].name}`;
    if (Object.hasOwn(record, name))
      throw new ConfigurationError(
        'INVALID_TOOL',
        `subAgentTools: expected names that are unique, got "${name}" twice`,
      );
    record[name] = made;
  }
  return record;
}

async function run(
  { service, requester, idempotencyKey }: ToolScope,
  config: SubagentConfig,
  description: string,
  input: unknown,
  { toolCallId, abortSignal }: CallOptions,
  questions: 'return' | 'decline',
): Promise<unknown> {
  abortSignal?.throwIfAborted();
  const toolName = `${SUBAGENT_TOOL_PREFIX}${config.name}`;
  const task = { toolName, args: argsOf(input), description };
  const wanted = { config, task, caller: requester, idempotencyKey };
  // Only a configuration with `lineage` has inputs to look up. Without it, the call is accepted or refused immediately.
  const missing = config.lineage === true ? await service.checkInputs(wanted) : null;
  abortSignal?.throwIfAborted();
  if (missing) return flat(missing.error);
  const receipt = service.spawn({ ...wanted, callId: toolCallId });
  if (receipt.status === 'rejected') return flat(receipt.error);
  const { subagentId } = receipt;
  const ended = await awaitEnd(service, subagentId, requester, { questions, signal: abortSignal });
  if (ended.ok) return resultOf(ended.report);
  // Nothing is waiting for the result any more, because the parent has ended or continued without it.
  service.cancel(subagentId, requester, ended.error.message);
  return flat(ended.error);
}

function resultOf(report: SubagentReport): unknown {
  const { id, state, result, error, partial, pendingRequest } = report;
  if (pendingRequest) {
    const { requestId: messageId, question, context } = pendingRequest;
    const asked = { messageId, question, ...(context === undefined ? {} : { context }) };
    return { status: 'waiting_input', subagentId: id, pendingRequest: asked };
  }
  if (state === 'completed') return result;
  return {
    error: error?.message ?? state,
    code: error?.code ?? 'INTERNAL',
    ...(partial === undefined ? {} : { partial }),
  };
}

/** Returns the failure in the form that the calling model receives: `{ error: 'Max steps exceeded', code }`. */
function flat({ message, code }: ToolFailure['error']): SubagentFailure {
  return { error: message, code };
}

/** Converts the input to the arguments of a task. A value that is not a record becomes the argument `input`. */
function argsOf(input: unknown): Readonly<Record<string, unknown>> {
  return isRecord(input) ? input : { input };
}
