// A lead agent's tools. The app defines them, and the runtime validates them once and offers them to the model.

import { jsonSchema, tool as modelTool, type ToolSet } from 'ai';
import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../../values/checks.ts';
import { checkIsObject, notAnObject, shown } from '../../../values/plain-checks.ts';
import { ConfigurationError, messageOf } from '../../../values/errors.ts';
import { DELIVERY_MODES } from '../../../machines/index.ts';
import { propertiesOf, isTooDeep, TOO_DEEP } from '../../../values/json.ts';
import { objectSchema, validateWith, withInputNames } from '../../model/schema.ts';
import { clip } from '../../../values/clip.ts';
import type { ClientTool } from '../../contracts/records.ts';
import { clientChecks, clientToolOf } from '../../model/tools.ts';
import type { ToolContext, ToolDefinition } from '../../contracts/lead-tool.ts';
import { DEFAULT_TOOL_TIMEOUT_MS } from '../unit/session-unit.ts';

/**
 * Infers the argument types of `execute` from `parameters`, and validates the tool when it is defined.
 * @throws {ConfigurationError} `INVALID_TOOL` if an option is unknown or invalid.
 */
export function defineTool<Args>(definition: ToolDefinition<Args>): ToolDefinition {
  const tool = definition as unknown as ToolDefinition;
  checkTool(`defineTool(${toolName(tool)})`, tool);
  return tool;
}

const EXAMPLE =
  "defineTool({ name: 'weather', description: '…', parameters: z.object({ city: z.string() }), execute: async ({ city }) => … })";

function toolName(tool: unknown): string {
  const { name } = propertiesOf(tool);
  return typeof name === 'string' ? `"${name}"` : '…';
}

/** Validates a single tool. Does not check that its name is free or that its subagent exists. */
function checkTool(where: string, tool: ToolDefinition): void {
  if (notAnObject(tool) !== null) checkIsObject(where, tool, EXAMPLE);
  if ('inputSchema' in tool && !('parameters' in tool))
    throw invalid(
      `${where}: expected a tool with \`parameters\`, got one of the AI SDK with \`inputSchema\`. Write tools: leadTools({ name: tool }) for tools of the AI SDK`,
    );
  check(where, shape, tool, 'INVALID_TOOL');
  objectSchema(tool.parameters, `${where}.parameters`);
  const { execution = 'inline' } = tool;
  const client = execution === 'inline' ? clientToolOf(tool, where) : null;
  if (!client && tool.timeoutMs !== undefined)
    throw invalid(
      `${where}: expected no \`timeoutMs\` without runsAt: 'client': write \`timeout\``,
    );
  if (execution === 'inline' && !client && typeof tool.execute !== 'function')
    throw invalid(`${where}: expected \`execute\` to be a function, got ${typeof tool.execute}`);
  const { detach, timeout = DEFAULT_TOOL_TIMEOUT_MS } = tool;
  if (detach?.afterMs !== undefined && detach.afterMs >= timeout)
    throw invalid(
      `${where}: expected detach.afterMs to be below the timeout of ${timeout} ms, got ${detach.afterMs}`,
    );
  const excluded = execution === 'inline' && detach ? NOT_WITH.detached : NOT_WITH[execution];
  for (const option of excluded)
    if (tool[option] !== undefined)
      throw invalid(
        `${where}: expected no \`${option}\` with execution: '${execution}', whose ${execution === 'inline' ? 'result the model waits for' : `work a subagent does (subagentConfigs.${tool.name})`}, got ${shown(tool[option])}`,
      );
}

/** Options that have no effect on this kind of tool. */
const NOT_WITH = {
  inline: ['pendingMessage', 'consolidate', 'delivery'],
  detached: ['consolidate'],
  background: ['execute', 'timeout', 'idempotent', 'detach', 'runsAt', 'resultSchema', 'absent'],
} as const satisfies Record<string, readonly (keyof ToolDefinition)[]>;

/** Validates an agent's tools as a whole. */
export function checkToolList(where: string, tools: unknown): void {
  if (tools === undefined || Array.isArray(tools)) return;
  const names = notAnObject(tools) === null ? Object.keys(tools as object).slice(0, 3) : [];
  const fix =
    names.length > 0
      ? `For tools of the AI SDK write tools: leadTools({ ${names.join(', ')} })`
      : `Write tools: [${EXAMPLE}]`;
  throw invalid(
    `${where}: expected \`tools\` to be an array of defineTool(…), got ${notAnObject(tools) ?? 'a record of tools'}. ${fix}`,
  );
}

export interface LeadTool {
  readonly definition: ToolDefinition;
  readonly jsonSchema: Readonly<Record<string, unknown>>;
  /** Null means that a call runs in the process of the session. */
  readonly client: ClientTool | null;
  /** Runs the tool with the value that `validate` returned; undefined for a background tool without `execute`. */
  readonly execute: ((value: unknown, context: ToolContext) => unknown) | undefined;
  /** Parses and validates the arguments. Returns the value for `execute`, or a message for the model. Never rejects. */
  validate(json: string): Promise<{ ok: true; value: unknown } | { ok: false; message: string }>;
}

const checks = {
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'expected 1 to 64 letters, digits, _ or -'),
  description: z.string().min(1),
  parameters: z.unknown().refine((parameters) => parameters !== undefined && parameters !== null, {
    error: 'expected a schema such as z.object({ city: z.string() })',
  }),
  execution: z.enum(['inline', 'background']).optional(),
  execute: aFunction.optional(),
  pendingMessage: z.string().optional(),
  timeout: z.number().positive().optional(),
  ...clientChecks,
  idempotent: z.boolean().optional(),
  detach: z
    .strictObject({ afterMs: z.number().positive().optional(), onWords: z.boolean().optional() })
    .optional(),
  consolidate: z.boolean().optional(),
  delivery: z.enum(DELIVERY_MODES).optional(),
} satisfies ChecksOf<ToolDefinition>;

const shape = z.strictObject(checks);

/** The maximum length of an error message. Without a limit, quoted arguments could fill the model's context. */
const MAX_MESSAGE_CHARS = 4000;

/**
 * Prepares the schemas of an agent's tools, which have already been validated.
 * @throws {ConfigurationError} `INVALID_SCHEMA` if a schema cannot be described to a model.
 */
export async function prepareLeadTools(
  definitions: readonly ToolDefinition[],
): Promise<ReadonlyMap<string, LeadTool>> {
  const tools = new Map<string, LeadTool>();
  for (const definition of definitions) {
    const { name, execution, parameters, execute } = definition;
    const given = objectSchema(parameters, `tool "${name}".parameters`);
    // A background call is refused if it names inputs that its schema does not have.
    const schema = execution === 'background' ? withInputNames(given) : given;
    tools.set(definition.name, {
      definition,
      client: clientToolOf(definition, `tool "${name}"`),
      jsonSchema: (await schema.jsonSchema) as Readonly<Record<string, unknown>>,
      // Only the schema determines the type of its arguments.
      execute: execute && ((value, context) => execute(value as never, context)),
      async validate(json) {
        let value: unknown;
        try {
          value = json.trim() === '' ? {} : JSON.parse(json);
        } catch (error) {
          return {
            ok: false,
            message: `Validation failed: the arguments are no JSON (${messageOf(error)})`,
          };
        }
        if (isTooDeep(value))
          return {
            ok: false,
            message: `Validation failed: the arguments are no JSON (${TOO_DEEP})`,
          };
        const checked = await validateWith(schema, value);
        if (checked.ok) return checked;
        const why = messageOf(checked.error.cause ?? checked.error);
        return { ok: false, message: `Validation failed: ${clip(why, MAX_MESSAGE_CHARS)}` };
      },
    });
  }
  return tools;
}

/** Returns an agent's tools for a text model, without `execute`, because the model's caller runs the calls. */
export function modelToolsOf(tools: readonly LeadTool[]): ToolSet {
  const known = offered.get(tools);
  if (known) return known;
  const entries = tools.map(({ definition, jsonSchema: schema }) => [
    definition.name,
    modelTool({
      description: definition.description,
      inputSchema: jsonSchema(schema),
      outputSchema: jsonSchema({}),
    }),
  ]);
  // `Object.fromEntries` also accepts a tool named `__proto__`.
  const made = Object.fromEntries(entries) as ToolSet;
  offered.set(tools, made);
  return made;
}

/** Cached, because an agent has the same tools for all its responses. */
const offered = new WeakMap<readonly LeadTool[], ToolSet>();

/** The runtime's tool that a lead model uses to settle a subagent's question (lead/settle-tool.ts). */
export const SETTLE_QUESTION = 'settle_question';

/**
 * Validates one agent's tools.
 * @throws {ConfigurationError} if a name is taken, reserved or malformed, or if a tool has no schema, an inline tool no
 *   `execute`, or a background tool no subagent.
 */
export function checkLeadTools(
  agentName: string,
  tools: readonly ToolDefinition[],
  subagents: Readonly<Record<string, unknown>>,
  reserved: readonly string[] = [SETTLE_QUESTION],
): void {
  const seen = new Set<string>();
  for (const tool of tools) {
    const path = `agent "${agentName}", tool ${toolName(tool)}`;
    checkTool(path, tool);
    if (reserved.includes(tool.name)) throw invalid(`${path}: the runtime reserves this name`);
    if (seen.has(tool.name)) throw invalid(`${path}: the name is taken`);
    seen.add(tool.name);
    if (tool.execution === 'background' && !Object.hasOwn(subagents, tool.name))
      throw invalid(
        `${path}: a background tool needs a subagent; expected subagentConfigs to have "${tool.name}", got ${list(Object.keys(subagents))}`,
      );
  }
}

/**
 * Checks that each subagent belongs to a background tool of an agent. Otherwise, no call could start it.
 * @throws {ConfigurationError} if a subagent does not belong to a background tool.
 */
export function checkSubagentNames(
  agents: readonly { readonly name: string; readonly tools?: readonly ToolDefinition[] }[],
  subagents: Readonly<Record<string, unknown>>,
): void {
  const tools = agents.flatMap((agent) => agent.tools ?? []);
  const background = new Set(
    tools.filter((tool) => tool.execution === 'background').map(({ name }) => name),
  );
  const of = agents.map(({ name }) => `"${name}"`).join(' or ');
  for (const name of Object.keys(subagents))
    if (!background.has(name))
      throw invalid(
        `subagentConfigs: "${name}" is no background tool of agent ${of}; ${agents.length === 1 ? 'it has' : 'they have'} ${list([...background])}`,
      );
}

function invalid(message: string): ConfigurationError {
  return new ConfigurationError('INVALID_TOOL', message);
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.map((name) => `"${name}"`).join(', ');
}
