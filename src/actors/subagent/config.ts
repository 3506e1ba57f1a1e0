import { z } from 'zod';
import { DELIVERY_MODES } from '../../machines/index.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { checkIsObject, notAnObject } from '../../values/plain-checks.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { budgetLimits } from '../admission/budget.ts';
import {
  SPEAK_PROGRESS,
  type RetryOptions,
  type SubagentConfig,
  type SubagentDefinition,
} from '../contracts/config.ts';
import { identities } from '../contracts/identity.ts';
import { aModel } from '../model/model.ts';

export const defaultSubagentOptions = {
  maxSteps: 5,
  timeout: 600_000,
  interactive: false,
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
const milliseconds = z.number().positive();
const count = z.number().int().min(1);
const checks = {
  name: z.string().min(1),
  instructions: z.string(),
  tools: z.record(z.string(), z.unknown(), {
    error: 'expected AI SDK tools by name, such as { weather: tool({ … }) }',
  }),
  maxSteps: count,
  timeout: milliseconds,
  model: aModel.optional(),
  interactive: z.boolean(),
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
 * Checks a configuration and fills in its defaults. The same configuration gives the same definition.
 * @throws {ConfigurationError} that names the option, its value and what was expected.
 */
export function checkSubagentConfig(config: SubagentConfig, path = 'subagent'): SubagentDefinition {
  checkIsObject(path, config, "{ name: 'reporter', instructions: 'You write reports.' }");
  const known = definitions.get(config);
  if (known) return known;
  const options = {
    tools: {},
    ...defaultSubagentOptions,
    ...withoutUndefined(config),
    retry: { ...defaultRetry, ...withoutUndefined(config.retry ?? {}) },
  };
  check(path, schema, options);
  const definition: SubagentDefinition = { ...options, source: config };
  definitions.set(config, definition);
  return definition;
}

/** Names a configuration in errors, whatever value was passed for it. */
export function nameOf(config: unknown, otherwise: string): string {
  if (notAnObject(config) !== null) return otherwise;
  const { name } = config as { readonly name?: unknown };
  return typeof name === 'string' && name !== '' ? name : otherwise;
}

/**
 * Checks a configuration where it is defined, instead of at its first use.
 * @throws {ConfigurationError} for an option that is unknown or out of range.
 */
export function defineSubagent<C extends SubagentConfig>(config: C): C {
  checkSubagentConfig(config, nameOf(config, 'defineSubagent(config)'));
  return config;
}
