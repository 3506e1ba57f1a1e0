// The options of `mcpServer`, with their checks and defaults.

import type { LanguageModel, Schema } from 'ai';
import { jsonSchema } from 'ai';
import { z } from 'zod';
import type { Runtime } from '../../actors/admission/runtime.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import { identity } from '../../actors/contracts/identity.ts';
import { aModel } from '../../actors/model/model.ts';
import { knownJsonSchema, wrapSchema } from '../../actors/model/schema.ts';
import { checkSubagentConfig } from '../../actors/subagent/config.ts';
import { aFunction, anObject, check, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { reporter } from '../../values/reporter.ts';

/** A subagent that clients may call. Its configuration contains the tool's name. */
export interface McpSubagent {
  /** The subagent's configuration. */
  readonly config: SubagentConfig;
  /** The tool's description, which the client's model uses to choose a tool. */
  readonly description: string;
}

/** An HTTP request. */
export interface McpAuthorizeRequest {
  /** The token of the header `Authorization: Bearer …`; null if absent. */
  readonly token: string | null;
  /** The headers of the request. */
  readonly headers: Headers;
  /** The URL of the request. */
  readonly url: URL;
}

/** Limits on clients. */
export interface McpLimits {
  /** The maximum size of a message, in bytes. @defaultValue 1_048_576 */
  readonly maxMessageBytes: number;
  /** The maximum number of open connections with protocol 2025-11-25 over HTTP. @defaultValue 1000 */
  readonly sessions: number;
  /** The maximum number of these connections per user. @defaultValue 50 */
  readonly sessionsPerUser: number;
  /** The maximum number of running tasks per user. @defaultValue 20 */
  readonly tasksPerUser: number;
  /** The maximum number of requests that wait for a result, per user. @defaultValue 100 */
  readonly waitsPerUser: number;
  /**
   * The time for which an unused connection, or a user without a running task, remains in memory, in milliseconds.
   * @defaultValue 1_800_000
   */
  readonly idleMs: number;
}

/** The defaults of `mcpServer({ limits })`. */
export const defaultMcpLimits: McpLimits = {
  maxMessageBytes: 1_048_576,
  sessions: 1_000,
  sessionsPerUser: 50,
  tasksPerUser: 20,
  waitsPerUser: 100,
  idleMs: 1_800_000,
};

/** The options of `mcpServer`. */
export interface McpServerOptions {
  /** The subagents that clients may call, one tool for each. */
  readonly subagents: readonly McpSubagent[];
  /** The runtime, whose journal stores the tasks. With a durable journal, the tasks survive a crash. */
  readonly runtime: Runtime;
  /** The model for subagents whose configuration has no model. */
  readonly model?: LanguageModel;
  /**
   * Returns the user whose tasks an HTTP request may access. If it returns null, the request is refused.
   * @defaultValue every HTTP request is refused
   */
  readonly authorize?: (request: McpAuthorizeRequest) => string | null | Promise<string | null>;
  /** The server name that clients see. The journal stores the tasks under this name. @defaultValue 'offstage' */
  readonly name?: string;
  /** The server description that clients see. */
  readonly instructions?: string;
  /** The path of the handler. @defaultValue '/mcp' */
  readonly path?: string;
  /**
   * The web origins that may connect, such as `https://app.example.com`; `*` allows any.
   * @defaultValue pages on localhost
   */
  readonly origins?: readonly string[];
  /** The accepted host names in `Host`; `*` allows any. @defaultValue localhost, and the hosts in `origins` */
  readonly hosts?: readonly string[];
  /** The time for which a task's result is stored after the task ends, in milliseconds. @defaultValue 86_400_000 */
  readonly ttlMs?: number;
  /** The interval at which clients should poll a task, in milliseconds. @defaultValue 1000 */
  readonly pollMs?: number;
  /** The server's limits. @defaultValue the defaults of `McpLimits` */
  readonly limits?: Partial<McpLimits>;
  /** Called with errors whose details are hidden from clients. @defaultValue such errors are ignored */
  readonly onError?: (error: unknown, where: string) => void;
}

const count = z.int().positive();

const limitsSchema = z.strictObject({
  maxMessageBytes: z.int().min(1_024).optional(),
  sessions: count.optional(),
  sessionsPerUser: count.optional(),
  tasksPerUser: count.optional(),
  waitsPerUser: count.optional(),
  idleMs: count.optional(),
} satisfies ChecksOf<McpLimits>);

const optionsSchema = z.strictObject({
  subagents: z
    .array(
      z.strictObject({
        config: anObject('the configuration of a subagent: defineSubagent({ … })'),
        description: z.string().min(1),
      } satisfies ChecksOf<McpSubagent>),
    )
    .min(1),
  runtime: anObject('a runtime: createRuntime(…)'),
  model: aModel.optional(),
  authorize: aFunction.optional(),
  name: z
    .string()
    .regex(/^[\w.-]{1,100}$/, 'expected letters, digits, `.`, `_` and `-`')
    .optional(),
  instructions: z.string().optional(),
  path: z
    .string()
    .regex(/^\/[\w./~-]*$/, 'expected a path such as /mcp')
    .optional(),
  origins: z.array(z.string().min(1)).max(1_000).optional(),
  hosts: z.array(z.string().min(1).max(300)).max(1_000).optional(),
  ttlMs: count.optional(),
  pollMs: count.optional(),
  limits: limitsSchema.optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<McpServerOptions>);

/** A tool and the schema of its arguments. */
export interface ServedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Whether the tool has only the argument `task`, because the subagent has no input schema. */
  readonly takesWords: boolean;
}

export interface CheckedMcp extends McpServerOptions {
  readonly name: string;
  readonly path: string;
  readonly ttlMs: number;
  readonly pollMs: number;
  readonly limits: McpLimits;
  readonly tools: ReadonlyMap<string, ServedTool>;
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  readonly onError: (error: unknown, where: string) => void;
}

const words = z.object({ task: z.string().min(1) });
const wordsSchema = jsonSchema<{ task: string }>(
  {
    type: 'object',
    properties: { task: { type: 'string', description: 'The task, in words' } },
    required: ['task'],
    additionalProperties: false,
  },
  {
    validate(value) {
      const { success, data, error } = words.safeParse(value);
      return success ? { success, value: data } : { success, error };
    },
  },
);

/** @throws {ConfigurationError} `INVALID_OPTION`, and the errors of the configurations. */
export function checkedMcp(options: McpServerOptions): CheckedMcp {
  check('mcpServer(options)', optionsSchema, options);
  const { subagents, limits, onError } = options;
  const { name = 'offstage', path = '/mcp', ttlMs = 86_400_000, pollMs = 1_000 } = options;
  const tools = new Map<string, ServedTool>();
  const configs: Record<string, SubagentConfig> = Object.create(null) as typeof configs;
  for (const { config, description } of subagents) {
    checkSubagentConfig(config, config.name);
    const tool = toolOf(config, description);
    if (tools.has(tool.name))
      throw new ConfigurationError(
        'INVALID_OPTION',
        `mcpServer({ subagents }): expected names that are unique, got "${tool.name}" twice`,
      );
    tools.set(tool.name, tool);
    configs[tool.name] =
      config.lifetime === 'session' ? { ...config, lifetime: 'ephemeral' } : config;
  }
  return {
    ...options,
    name,
    path,
    ttlMs,
    pollMs,
    limits: { ...defaultMcpLimits, ...limits },
    tools,
    configs,
    onError: reporter(onError),
  };
}

function toolOf(config: SubagentConfig, description: string): ServedTool {
  const { name, inputSchema: own } = config;
  const takesWords = own === undefined;
  const schema = takesWords ? wordsSchema : wrapSchema(own, `${name}: inputSchema`);
  const inputSchema = knownJsonSchema(schema);
  if (inputSchema?.['type'] !== 'object')
    throw new ConfigurationError(
      'INVALID_SCHEMA',
      `mcpServer({ subagents }): expected the inputSchema of "${name}" to be an object with properties`,
    );
  return { name, description, schema, inputSchema, takesWords };
}

/**
 * Checks and returns the user that `authorize` returned.
 * @throws {ConfigurationError} `INVALID_IDENTITY`
 */
export function checkedUser(where: string, given: unknown): string | null {
  if (given === null || given === undefined) return null;
  return check(where, identity, given, 'INVALID_IDENTITY');
}
