// Converts AI SDK tools to a lead agent's tools. An ordinary tool is called inline. A tool that is a subagent becomes a
// background tool, which keeps working while the agent talks.

import { z } from 'zod';
import { check, type ChecksOf } from '../../../values/checks.ts';
import { type FlexibleSchema } from 'ai';
import { ConfigurationError } from '../../../values/errors.ts';
import { isIdempotent } from '../../model/tools.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { ownValue } from '../../../values/own-value.ts';
import type { SubagentConfig } from '../../contracts/config.ts';
import { withCaller } from '../../model/caller.ts';
import { delegates, SOURCE_TOOL, subagentOf } from '../../model/tool-flags.ts';
import type { ToolContext, ToolDefinition } from '../../contracts/lead-tool.ts';

/** The options of `leadTools`. */
export interface LeadToolsOptions {
  /** The pending message for calls to subagents: one for all tools, or one for each tool name. */
  readonly pendingMessage?: string | Readonly<Record<string, string>>;
  /** The `detach` option for the tools that are called inline, by tool name. */
  readonly detach?: Readonly<Record<string, NonNullable<ToolDefinition['detach']>>>;
}

/** The part of an AI SDK tool that this module reads. */
interface SourceTool extends Pick<
  ToolDefinition,
  'runsAt' | 'resultSchema' | 'absent' | 'timeoutMs' | 'idempotent'
> {
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly execute?: (input: unknown, options: object) => unknown;
  readonly toModelOutput?: (options: object) => unknown;
}

/** The maximum duration of a call that waits. The call's own `timeoutMs` usually ends the wait much earlier. */
const WAIT_TIMEOUT_MS = 86_400_000;

const optionsSchema = z.strictObject({
  pendingMessage: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
  // The session validates the options of each tool.
  detach: z.record(z.string(), z.custom<NonNullable<ToolDefinition['detach']>>()).optional(),
} satisfies ChecksOf<LeadToolsOptions>);

const toolsSchema = z.record(
  z.string(),
  z.custom<object>((value) => typeof value === 'object' && value !== null, 'expected a tool'),
);

/**
 * Returns the tools for `agents: [{ tools }]`. If any of the tools are subagents, also pass `leadSubagents(tools)` to
 * the session as `subagentConfigs`.
 * @throws {ConfigurationError} if a tool has no description, schema or `execute`.
 */
export function leadTools(
  tools: Readonly<Record<string, object>>,
  options: LeadToolsOptions = {},
): ToolDefinition[] {
  const { pendingMessage, detach = {} } = check('leadTools', optionsSchema, options);
  check('leadTools', toolsSchema, tools);
  for (const name of Object.keys(detach))
    if (!Object.hasOwn(tools, name) || subagentOf(tools[name]))
      throw invalid(name, 'a tool that is called inline, for `detach`');
  return Object.entries(tools).map(([name, given]) => {
    const source = given as SourceTool;
    const { runsAt, resultSchema, absent, timeoutMs, idempotent } = source;
    const base = {
      name,
      description: textOf(source, name),
      parameters: source.inputSchema as FlexibleSchema<never>,
      [SOURCE_TOOL]: given,
    };
    const pending =
      typeof pendingMessage === 'object' ? ownValue(pendingMessage, name) : pendingMessage;
    if (subagentOf(source))
      return {
        ...base,
        execution: 'background' as const,
        ...(pending === undefined ? {} : { pendingMessage: pending }),
      };
    if (runsAt === 'client')
      return { ...base, runsAt, resultSchema, absent, timeoutMs, idempotent };
    if (typeof source.execute !== 'function')
      throw invalid(name, `an \`execute\`, got ${typeof source.execute}`);
    return {
      ...base,
      execute: (args: unknown, context: ToolContext) => call(source, args, context),
      idempotent: isIdempotent(source),
      ...(delegates(source) ? { timeout: WAIT_TIMEOUT_MS } : {}),
      ...withoutUndefined({ detach: ownValue(detach, name) }),
    };
  });
}

/** Returns the configurations of the tools that are subagents, by tool name. */
export function leadSubagents(
  tools: Readonly<Record<string, object>>,
): Record<string, SubagentConfig> {
  check('leadSubagents', toolsSchema, tools);
  return Object.fromEntries(
    Object.entries(tools).flatMap(([name, source]) => {
      const config = subagentOf(source);
      return config ? [[name, config]] : [];
    }),
  );
}

async function call(source: SourceTool, input: unknown, context: ToolContext): Promise<unknown> {
  const { callId: toolCallId, sessionId, abortSignal, subagents: service } = context;
  const { requester, approver } = context;
  const output = await source.execute?.(input, {
    toolCallId,
    abortSignal,
    context: withCaller(undefined, {
      sessionId,
      subagentId: null,
      parentId: null,
      depth: 0,
      requester,
      approver,
      idempotencyKey: `${sessionId}:${toolCallId}`,
      service,
    }),
  });
  if (!source.toModelOutput) return output;
  const read = await source.toModelOutput({ toolCallId, input, output });
  return typeof read === 'object' && read !== null && 'value' in read ? read.value : output;
}

function textOf({ description, inputSchema }: SourceTool, name: string): string {
  if (typeof description !== 'string' || description === '')
    throw invalid(name, `a description in words, got ${typeof description}`);
  if (inputSchema === undefined) throw invalid(name, 'an inputSchema, got none');
  return description;
}

function invalid(name: string, expected: string): ConfigurationError {
  return new ConfigurationError('INVALID_TOOL', `leadTools: "${name}": expected ${expected}`);
}
