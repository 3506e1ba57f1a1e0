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

/** A subagent that clients may call, as a tool with the name of its configuration. */
export interface McpSubagent {
  /** The configuration of the subagent. */
  readonly config: SubagentConfig;
  /** The tool's description, by which the client's model chooses the tool. */
  readonly description: string;
}

/** A request over HTTP. */
export interface McpAuthorizeRequest {
  /** The token of `Authorization: Bearer …`; null without one. */
  readonly token: string | null;
  /** The headers of the request. */
  readonly headers: Headers;
  /** The URL of the request. */
  readonly url: URL;
}

/** The limits for clients. */
export interface McpLimits {
  /** The limit of one message, in bytes. @defaultValue 1_048_576 */
  readonly maxMessageBytes: number;
  /** The limit of open connections of the generation 2025-11-25 over HTTP. @defaultValue 1000 */
  readonly sessions: number;
  /** The limit of these connections for one user. @defaultValue 50 */
  readonly sessionsPerUser: number;
  /** The limit of running tasks of one user. @defaultValue 20 */
  readonly tasksPerUser: number;
  /** The limit of one user's requests that wait for a result. @defaultValue 100 */
  readonly waitsPerUser: number;
  /** How long an unused connection, or a user without a running task, is kept, in milliseconds. @defaultValue 1_800_000 */
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
  /** The subagents that clients may call, each as a tool. */
  readonly subagents: readonly McpSubagent[];
  /** The runtime, whose journal keeps the tasks: with a journal on disk they survive a crash. */
  readonly runtime: Runtime;
  /** The model for configurations that have none. */
  readonly model?: LanguageModel;
  /**
   * Returns the user whose tasks an HTTP request may see; null refuses the request.
   * @defaultValue every HTTP request is refused
   */
  readonly authorize?: (request: McpAuthorizeRequest) => string | null | Promise<string | null>;
  /** The name of the server, for clients; the journal keeps the tasks under this name. @defaultValue 'offstage' */
  readonly name?: string;
  /** The description of the server as a whole, for clients. */
  readonly instructions?: string;
  /** The path of the handler. @defaultValue '/mcp' */
  readonly path?: string;
  /**
   * The origins of web pages that may connect, such as `https://app.example.com`; `*` allows any.
   * @defaultValue pages of this machine (localhost)
   */
  readonly origins?: readonly string[];
  /** The accepted names of the server in `Host`; `*` allows any. @defaultValue localhost, and the hosts of `origins` */
  readonly hosts?: readonly string[];
  /** How long the result of a task is kept after its end, in milliseconds. @defaultValue 86_400_000 */
  readonly ttlMs?: number;
  /** The interval at which clients should read a task, in milliseconds. @defaultValue 1000 */
  readonly pollMs?: number;
  /** The limits of the server; each that is absent has its default. @defaultValue the defaults of `McpLimits` */
  readonly limits?: Partial<McpLimits>;
  /** Called with errors that clients do not get. @defaultValue they are dropped */
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

/** A tool, with the schema for its calls. */
export interface ServedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Whether calls have the one argument `task`, because the subagent has no schema. */
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
 * Checks and returns the user from `authorize`.
 * @throws {ConfigurationError} `INVALID_IDENTITY`
 */
export function checkedUser(where: string, given: unknown): string | null {
  if (given === null || given === undefined) return null;
  return check(where, identity, given, 'INVALID_IDENTITY');
}
