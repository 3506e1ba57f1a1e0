import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { DELIVERY_MODES } from '../../machines/index.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { checkIsObject, notAnObject, shown } from '../../values/plain-checks.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { budgetLimits } from '../admission/budget.ts';
import {
  RUNS_WHERE,
  SPEAK_PROGRESS,
  type RetryOptions,
  type SubagentConfig,
  type SubagentDefinition,
} from '../contracts/config.ts';
import { identities } from '../contracts/identity.ts';
import { aToolApproval } from '../model/approval.ts';
import { aModel } from '../model/model.ts';
import type { Price } from '../contracts/usage.ts';
import type { Relay, RelayCapabilities } from '../ports/relay.ts';
import type { AgentLoop } from '../contracts/agent-loop.ts';

export const defaultSubagentOptions = {
  maxSteps: 5,
  timeout: 600_000,
  runs: 'here',
  interactive: false,
  maxSleepMs: 0,
  inputTimeout: 120_000,
  maxInputRetries: 3,
  context: 'snapshot',
  onBargeIn: 'continue',
  completion: 'turn',
  structured: 'auto',
  stream: false,
  lifetime: 'ephemeral',
  maxHistory: 200,
  preApproved: [],
  duplicates: 'join',
  inactivityTimeoutMs: 0,
  onHung: 'mark',
} as const satisfies Partial<SubagentConfig>;
const defaultRetry: RetryOptions = { maxAttempts: 3, baseDelayMs: 1000 };
/**
 * The defaults for a relayed agent. It works longer than a model, because each of its tools and questions is a step. It
 * is a third party. By default, it therefore receives the task without the conversation, facts or sibling tasks.
 */
const relayDefaults = { maxSteps: 1000, interactive: true, context: 'none' } as const;
/** Options that apply only if a model does the work. */
const NOT_WITH_RELAY = [
  'tools',
  'model',
  'completion',
  'structured',
  'createInstance',
  'lifetime',
  'maxHistory',
  'toolApproval',
  'toolTimeout',
  'toolsContext',
  'runs',
  'maxSleepMs',
] as const satisfies readonly (keyof SubagentConfig)[];
const capabilities = z.strictObject({
  openQuestionSurvives: z.boolean(),
  resumes: z.boolean(),
  steers: z.boolean(),
  reportsTools: z.boolean(),
} satisfies ChecksOf<RelayCapabilities>);
/** Validates a relay without copying it, because it may be a class instance. */
const aRelay = z.custom<Relay>(
  (value) => {
    if (notAnObject(value) !== null) return false;
    const { name, start, loop, capabilities: declared } = value as Partial<Relay>;
    const isNamed = typeof name === 'string' && name !== '' && typeof start === 'function';
    return isNamed && loop?.stepsBy === 'relay' && capabilities.safeParse(declared).success;
  },
  {
    error:
      'expected a relay with name, start(), the four capabilities and `loop: relayLoop` of offstage/subagents, such as acpRelay({ command })',
  },
);
const anAgentLoop = z.looseObject({ steps: z.looseObject({ stepsBy: z.literal('agent') }) });
const milliseconds = z.number().positive();
const count = z.number().int().min(1);
/** A year. */
const MAX_SLEEP_MS = 366 * 24 * 3_600_000;
const checks = {
  name: z.string().min(1),
  instructions: z.string(),
  title: aFunction.optional(),
  tools: z.record(z.string(), z.unknown(), {
    error: 'expected AI SDK tools by name, such as { weather: tool({ … }) }',
  }),
  toolApproval: aToolApproval.optional(),
  maxSteps: count,
  timeout: milliseconds,
  model: aModel.optional(),
  relay: aRelay.optional(),
  agent: z
    .custom<AgentLoop>((value) => anAgentLoop.safeParse(value).success, {
      error:
        'expected the loop that `agentSubagent({ agent: settings })` of offstage/subagents makes of the settings',
    })
    .optional(),
  runs: z.enum(RUNS_WHERE),
  interactive: z.boolean(),
  maxSleepMs: z.number().min(0).max(MAX_SLEEP_MS),
  inputTimeout: milliseconds,
  maxInputRetries: count,
  toolTimeout: milliseconds.optional(),
  createInstance: aFunction.optional(),
  dispose: aFunction.optional(),
  inputSchema: z.unknown().optional(),
  outputSchema: z.unknown().optional(),
  context: z.enum(['snapshot', 'none', 'summary', 'recent', 'fork']),
  onBargeIn: z.enum(['continue', 'cancel']),
  retry: z.strictObject({ maxAttempts: count, baseDelayMs: z.number().min(0) }),
  completion: z.enum(['turn', 'tool']),
  structured: z.enum(['auto', 'off']),
  stream: z.boolean(),
  lifetime: z.enum(['ephemeral', 'session']),
  maxHistory: count,
  budget: budgetLimits.optional(),
  preApproved: z.array(z.strictObject({ tool: z.string().min(1), when: aFunction.optional() })),
  answerableBy: identities.optional(),
  duplicates: z.enum(['join', 'reject', 'replace', 'confirm']),
  inactivityTimeoutMs: z.number().min(0),
  onHung: z.union([z.enum(['mark', 'cancel']), aFunction]),
  lineage: z.boolean().optional(),
  consolidate: z.boolean().optional(),
  delivery: z.enum(DELIVERY_MODES).optional(),
  speakProgress: z.enum(SPEAK_PROGRESS).optional(),
  toolsContext: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
} satisfies ChecksOf<SubagentConfig>;
const schema = z.strictObject(checks);
const definitions = new WeakMap<SubagentConfig, SubagentDefinition>();

/**
 * Checks that a cost limit has a source of costs: a `price`, or a relay, which reports its costs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function checkPriced(
  where: string,
  { budget, relay }: Pick<SubagentConfig, 'budget' | 'relay'>,
  price: Price | null | undefined,
): void {
  if (budget?.cost === undefined || relay || price) return;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `${where}: expected \`price\` (createRuntime) beside \`budget.cost\`, got a limit of ${shown(budget.cost)} without it: no call would count`,
  );
}

/**
 * Validates a configuration and fills in its defaults. The same configuration always produces the same definition.
 * @throws {ConfigurationError} with the option, its value and what was expected.
 */
export function checkSubagentConfig(config: SubagentConfig, given?: unknown): SubagentDefinition {
  // Most callers pass a configuration's path, and its value has not been validated yet.
  const path = typeof given === 'string' ? given : 'subagent';
  checkIsObject(path, config, "{ name: 'reporter', instructions: 'You write reports.' }");
  const known = definitions.get(config);
  if (known) return known;
  const options = {
    tools: {},
    ...defaultSubagentOptions,
    ...(config.relay === undefined ? {} : relayDefaults),
    ...withoutUndefined(config),
    retry: { ...defaultRetry, ...withoutUndefined(config.retry ?? {}) },
  };
  check(path, schema, options);
  checkBesideRelay(path, config);
  checkBesideJobs(path, config);
  const definition: SubagentDefinition = { ...options, source: config };
  definitions.set(config, definition);
  return definition;
}

function checkBesideRelay(path: string, config: SubagentConfig): void {
  if (config.relay === undefined) return;
  for (const option of NOT_WITH_RELAY)
    if (config[option] !== undefined)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `${path}.${option}: expected none beside relay, whose agent has its own, got ${shown(config[option])}`,
      );
}

/**
 * Checks that a configuration for jobs has no options that apply to a single run. A worker uses one instance of the
 * configuration for all runs.
 */
function checkBesideJobs(path: string, config: SubagentConfig): void {
  if (config.runs !== 'jobs') return;
  for (const option of ['agent', 'createInstance', 'dispose'] as const)
    if (config[option] !== undefined)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `${path}.${option}: expected none beside runs: 'jobs', whose steps are done in other processes, got ${shown(config[option])}`,
      );
}

/** Returns a configuration's name for error messages, whatever value was passed. */
export function nameOf(config: unknown, otherwise: string): string {
  if (notAnObject(config) !== null) return otherwise;
  const { name } = propertiesOf(config);
  return typeof name === 'string' && name !== '' ? name : otherwise;
}
