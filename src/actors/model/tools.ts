// Prepares a configuration's tools once for all its runs. The form for the model contains nothing executable; the form
// for the runtime executes the calls.
//
// Invariants
//   TOOLS-1. No tool without a schema reaches the model: the SDK would send an empty schema and would not check the
//       arguments.
//   TOOLS-2. A schema is converted to JSON Schema only once per tool object, for any number of runs.
//   TOOLS-3. The SDK cannot execute the tools that it offers to the model, ask for their approval, or call their
//       callbacks.

import type { ModelMessage, Schema, ToolSet } from 'ai';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import {
  RUNS_WHERE,
  type RunsWhere,
  type SubagentConfig,
  type ToolApproval,
} from '../contracts/config.ts';
import { identities } from '../contracts/identity.ts';
import type { ClientTool } from '../contracts/records.ts';
import { delegates, roleOf, type ToolRole } from './tool-flags.ts';
import {
  invalidInputMessage,
  knownJsonSchema,
  objectSchema,
  validateWith,
  wrapSchema,
} from './schema.ts';

/** The options that the runtime passes to `execute`: those of the AI SDK, and an idempotency key. */
export interface ToolExecuteOptions {
  readonly toolCallId: string;
  /** The messages that the model had read when it made the call, without the system prompt. */
  readonly messages: readonly ModelMessage[];
  readonly abortSignal: AbortSignal;
  readonly context: unknown;
  /**
   * The call's key, which is the same for every attempt, even after a crash: pass it to operations that must not happen
   * twice.
   */
  readonly idempotencyKey: string;
}

export interface ApprovalOptions {
  readonly toolCallId: string;
  readonly messages: readonly ModelMessage[];
  readonly context: unknown;
}

interface ModelOutputOptions {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

/** A tool as the runtime runs it. */
export interface ToolEntry {
  readonly name: string;
  /**
   * Validates the arguments and applies the schema's coercions, defaults and transformations. Never rejects; `message`
   * explains to the model why the arguments are invalid.
   */
  validate(
    input: unknown,
  ): Promise<
    | { readonly ok: true; readonly value: unknown }
    | { readonly ok: false; readonly message: string }
  >;
  /** The input schema for a model; null until it is known. */
  jsonSchema(): Readonly<Record<string, unknown>> | null;
  /**
   * The author's function, which may throw or return anything. Null if the runtime handles the call itself
   * (`ask_user`).
   */
  readonly execute: ((input: unknown, options: ToolExecuteOptions) => unknown) | null;
  readonly needsApproval: boolean | ((input: unknown, options: ApprovalOptions) => unknown);
  /**
   * Returns the question with which the user is asked for approval; may throw or return anything. Null to use the
   * runtime's question.
   */
  readonly approvalQuestion: ((input: unknown, options: ApprovalOptions) => unknown) | null;
  /** A short description of the tool: its title, or the first sentence of its description; null if unknown or too long. */
  readonly about: string | null;
  /** The identities that may approve a call; undefined to use those in the subagent's configuration. */
  readonly answerableBy: readonly string[] | undefined;
  /** As in `AskedQuestion`. */
  readonly mayDiffer: false | readonly string[];
  readonly toModelOutput: ((options: ModelOutputOptions) => unknown) | null;
  /** The time limit of one call, in milliseconds; overrides the run's limit. */
  readonly timeoutMs: number | undefined;
  /**
   * Which of the runtime's own tools this is; the runtime handles its calls instead of calling `execute`. Null for an
   * ordinary tool.
   */
  readonly role: ToolRole | null;
  /** Whether a call only waits for other subagents. */
  readonly delegates: boolean;
  /** Whether a call with an unknown outcome may be repeated with the same key. */
  readonly idempotent: boolean;
  /** How a client executes the calls; null if they run in the app's process. */
  readonly client: ClientTool | null;
  /** Where a call runs; undefined to use the setting of the configuration. */
  readonly runs: RunsWhere | undefined;
}

export interface PreparedTools {
  /** The tools for `generateText`; undefined if there are none. */
  readonly modelTools: ToolSet | undefined;
  /** The tools by name. Does not contain tools that the provider itself executes. */
  readonly execution: ReadonlyMap<string, ToolEntry>;
}

export interface PrepareToolsOptions {
  readonly reserved?: readonly string[];
  /** The runtime's own tools, whose names an author may not use. */
  readonly builtIn?: Readonly<Record<string, unknown>>;
  /** Takes precedence over the tools' own `needsApproval`. @defaultValue none */
  readonly toolApproval?: ToolApproval | undefined;
}

/** A pattern for tool names that every provider accepts. */
const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

const anyFunction = z.custom<(...args: unknown[]) => unknown>(
  (value) => typeof value === 'function',
  { error: 'expected a function' },
);

/** The properties of a tool whose calls are executed by a client. */
export const clientChecks = {
  runsAt: z.literal('client').optional(),
  resultSchema: z.unknown().optional(),
  absent: z.enum(['wait', 'fail']).optional(),
  timeoutMs: z.number().positive().optional(),
};

/** How long a call waits for a client's result if its tool does not set `timeoutMs`. */
const CLIENT_TIMEOUT_MS = 300_000;

/**
 * Returns how a client executes a tool's calls; null if the calls do not run at a client.
 * @throws {ConfigurationError} `INVALID_TOOL`, `INVALID_SCHEMA`
 */
export function clientToolOf(tool: object, where: string): ClientTool | null {
  const given = propertiesOf(tool);
  const { runsAt, absent, resultSchema, timeoutMs } = given;
  const isAtClient = runsAt === 'client';
  for (const option of isAtClient ? ['execute', 'timeout'] : ['absent', 'resultSchema'])
    if (given[option] !== undefined)
      throw new ConfigurationError(
        'INVALID_TOOL',
        `${where}: expected no \`${option}\` ${isAtClient ? 'with' : 'without'} runsAt: 'client'`,
      );
  if (!isAtClient) return null;
  return {
    timeoutMs: typeof timeoutMs === 'number' ? timeoutMs : CLIENT_TIMEOUT_MS,
    absent: absent === 'fail' ? 'fail' : 'wait',
    idempotent: given['idempotent'] === true,
    schema: resultSchema === undefined ? null : wrapSchema(resultSchema, `${where}.resultSchema`),
  };
}

/** Checks only the properties that this file reads; a tool may have others. */
const shape = z.object({
  type: z.enum(['function', 'dynamic', 'provider']).optional(),
  description: z.union([z.string(), anyFunction]).optional(),
  execute: anyFunction.optional(),
  needsApproval: z.union([z.boolean(), anyFunction]).optional(),
  /** The question that asks the user for approval, such as "May I refund $640?". */
  approvalQuestion: z
    .union([z.string().trim().min(1), anyFunction], {
      error: 'expected the words of a question, or a function of the input that returns them',
    })
    .optional(),
  /** The identities that may approve a call. */
  answerableBy: identities.optional(),
  /**
   * The arguments that later calls may change if an approval lasts. False if an approval of this tool must not last.
   */
  lasting: z
    .union([z.literal(false), z.strictObject({ free: z.array(z.string().min(1)) })])
    .optional(),
  toModelOutput: anyFunction.optional(),
  strict: z.boolean().optional(),
  /** The tool's effects, such as `email.sent`; empty if it has none. Claims in an answer are compared with them. */
  effects: z.array(z.string().min(1)).optional(),
  /** Whether a call may be repeated after a crash, with the same `idempotencyKey`. */
  idempotent: z.boolean().optional(),
  /** Where a call runs; overrides the setting of the configuration. */
  runs: z.enum(RUNS_WHERE).optional(),
  ...clientChecks,
});

type SourceTool = z.infer<typeof shape> & Readonly<Record<string, unknown>>;

/**
 * Prepares AI SDK tools: `tool()`, `dynamicTool()`, provider tools, and the older form with `parameters` instead of
 * `inputSchema`. Keeps the properties that a model reads (description, schema, strict, inputExamples, providerOptions),
 * `metadata`, and those that the runtime needs (`execute`, `needsApproval`, `toModelOutput`, and the additions
 * `timeoutMs`, `idempotent`, `approvalQuestion`, `answerableBy`, `lasting`, `runs`). If the description is a function,
 * it is called once, at this point and without a context. `onInput…` callbacks and `deferLoading` are ignored.
 *
 * A `jsonSchema()` without `validate` accepts every value, as in the AI SDK.
 * @throws {ConfigurationError} TOOL_WITHOUT_SCHEMA, INVALID_SCHEMA, INVALID_TOOL, INVALID_TOOL_NAME or RESERVED_TOOL_NAME; the
 *   message names the tool.
 */
export function prepareTools(
  tools: Readonly<Record<string, unknown>>,
  path: string,
  { reserved = [], builtIn = {}, toolApproval }: PrepareToolsOptions = {},
): PreparedTools {
  for (const name of Object.keys(tools))
    if (reserved.includes(name) || Object.hasOwn(builtIn, name))
      throw new ConfigurationError(
        'RESERVED_TOOL_NAME',
        `${path}.${name}: the name belongs to the runtime, choose another`,
      );
  const offered: [string, unknown][] = [];
  const execution = new Map<string, ToolEntry>();
  for (const [name, tool] of [...Object.entries(tools), ...Object.entries(builtIn)]) {
    const where = `${path}.${name}`;
    const source = checkTool(name, tool, where);
    const description = resolveDescription(source, where);
    if (source.type === 'provider') offered.push([name, providerTool(source)]);
    else {
      const marked = description && `${description}${approvalMark(name, tool, toolApproval)}`;
      offered.push([name, modelTool(source, schemaOf(source, where), marked)]);
    }
    if (source.type !== 'provider' || source['isProviderExecuted'] !== true)
      execution.set(name, toolEntry(name, source, schemaOf(source, where), description, where));
  }
  // `Object.fromEntries` also accepts a tool named `__proto__`.
  const modelTools = offered.length > 0 ? (Object.fromEntries(offered) as ToolSet) : undefined;
  return { modelTools, execution };
}

function checkTool(name: string, tool: unknown, where: string): SourceTool {
  if (!namePattern.test(name))
    throw new ConfigurationError(
      'INVALID_TOOL_NAME',
      `${where}: expected a name of 1 to 64 of a-z A-Z 0-9 _ -, got ${JSON.stringify(name)}`,
    );
  const checked = shape.safeParse(tool);
  if (!checked.success)
    throw new ConfigurationError('INVALID_TOOL', `${where}: ${z.prettifyError(checked.error)}`);
  return tool as SourceTool;
}

const schemas = new WeakMap<object, Schema>();

function schemaOf(tool: SourceTool, where: string): Schema {
  const known = schemas.get(tool);
  if (known) return known;
  const schema = tool['inputSchema'] ?? tool['parameters'];
  if (schema === undefined || schema === null)
    throw new ConfigurationError(
      'TOOL_WITHOUT_SCHEMA',
      `${where}: expected an inputSchema (or the older parameters), got neither`,
    );
  const wrapped = objectSchema(schema, `${where}.inputSchema`);
  schemas.set(tool, wrapped);
  return wrapped;
}

const offeredProperties = ['strict', 'inputExamples', 'providerOptions', 'metadata', 'title'];

function modelTool(
  tool: SourceTool,
  inputSchema: Schema,
  description: string | undefined,
): unknown {
  return {
    ...(tool.type === 'dynamic' ? { type: 'dynamic' } : {}),
    ...(description === undefined ? {} : { description }),
    ...pick(tool, offeredProperties),
    inputSchema,
  };
}

/** Returns whether a call of any of these tools may need the user's approval. */
export function mayNeedApproval({
  tools = {},
  toolApproval,
}: Pick<SubagentConfig, 'tools' | 'toolApproval'>): boolean {
  return Object.entries(tools).some(
    ([name, tool]) => approvalMark(name, tool, toolApproval) !== '',
  );
}

/**
 * Returns the text about approval that is added to a tool's description; the subagent's system prompt explains it.
 * Without this text, the model would ask the user on its own, so that the user would be asked twice.
 */
function approvalMark(name: string, tool: unknown, toolApproval: ToolApproval | undefined): string {
  const { needsApproval } = propertiesOf(tool);
  const named =
    typeof toolApproval === 'object' && Object.hasOwn(toolApproval, name)
      ? toolApproval[name]
      : undefined;
  const decides: unknown =
    typeof toolApproval === 'function' ? toolApproval : (named ?? needsApproval);
  if (roleOf(tool) !== null) return '';
  if (typeof decides === 'function') return ' (may need approval)';
  const isAsked =
    decides === true || (typeof named === 'object' ? named.type : decides) === 'user-approval';
  return isAsked ? ' (needs approval)' : '';
}

const providerProperties = [
  'type',
  'id',
  'args',
  'isProviderExecuted',
  'supportsDeferredResults',
  'inputSchema',
  'outputSchema',
  'providerOptions',
  'metadata',
];

function providerTool(tool: SourceTool): unknown {
  return pick(tool, providerProperties);
}

function resolveDescription(tool: SourceTool, where: string): string | undefined {
  if (typeof tool.description !== 'function') return tool.description;
  let resolved: unknown;
  try {
    resolved = tool.description({ context: undefined });
  } catch (error) {
    throw new ConfigurationError(
      'INVALID_TOOL',
      `${where}.description: expected a string, but it threw: ${messageOf(error)}`,
      { cause: error },
    );
  }
  if (typeof resolved === 'string') return resolved;
  throw new ConfigurationError(
    'INVALID_TOOL',
    `${where}.description: expected a string, got ${String(resolved)}`,
  );
}

function toolEntry(
  name: string,
  tool: SourceTool,
  schema: Schema,
  description: string | undefined,
  where: string,
): ToolEntry {
  const { execute, needsApproval = false, answerableBy, toModelOutput, timeoutMs } = tool;
  const client = clientToolOf(tool, where);
  const { approvalQuestion, lasting } = tool;
  return {
    name,
    async validate(input) {
      const validated = await validateWith(schema, input);
      return validated.ok
        ? validated
        : { ok: false, message: invalidInputMessage(name, validated.error) };
    },
    jsonSchema: () => knownJsonSchema(schema),
    // The tool may be an instance of a class, so its functions are called as methods.
    execute: execute ? (...args) => execute.apply(tool, args) : null,
    needsApproval:
      typeof needsApproval === 'function'
        ? (...args) => needsApproval.apply(tool, args)
        : needsApproval,
    approvalQuestion:
      typeof approvalQuestion === 'string'
        ? () => approvalQuestion
        : approvalQuestion
          ? (...args) => approvalQuestion.apply(tool, args)
          : null,
    about: aboutOf(tool, description),
    answerableBy,
    mayDiffer: lasting === false ? false : (lasting?.free ?? []),
    toModelOutput: toModelOutput ? (...args) => toModelOutput.apply(tool, args) : null,
    timeoutMs: client ? undefined : timeoutMs,
    role: roleOf(tool),
    // The run waits while a client executes the call, so the call holds no run slot.
    delegates: client !== null || delegates(tool),
    idempotent: isIdempotent(tool),
    client,
    runs: client ? 'here' : tool.runs,
  };
}

const MAX_ABOUT_CHARS = 200;

/** Returns a short text that describes a tool to the user; null if there is none or it is too long. */
function aboutOf({ title }: SourceTool, description = ''): string | null {
  const words = typeof title === 'string' && title.trim() !== '' ? title : description;
  const [first = ''] = words.trim().split(/(?<=[.!?])\s+(?=\p{Lu})|\n/u);
  if (first.length > MAX_ABOUT_CHARS) return null;
  return first.replaceAll(/\s+/g, ' ').replace(/[.:!?]+$/, '') || null;
}

/**
 * Returns whether a call may be run again after its outcome has become unknown. By default, only calls that wait for
 * other subagents may be repeated. A call that a client executes keeps its id when it is repeated, so the client
 * recognises it.
 */
export function isIdempotent(tool: object): boolean {
  if ('runsAt' in tool && tool.runsAt === 'client') return true;
  return 'idempotent' in tool ? tool.idempotent === true : delegates(tool);
}

/** Returns whether a tool's author has specified that its calls run as jobs. */
export function runsAsJob(tool: unknown): boolean {
  return typeof tool === 'object' && tool !== null && 'runs' in tool && tool.runs === 'jobs';
}

function pick(source: SourceTool, keys: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const key of keys) if (source[key] !== undefined) picked[key] = source[key];
  return picked;
}
