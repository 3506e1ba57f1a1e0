// What a service is made of, as its author writes it, and the same checked.

import { check, readable } from '../../values/checks.ts';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import type { BackoffInput } from '../../machines/index.ts';
import type { EventSourceConfig, ExternalEvent } from '../ports/event-source.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { type SubagentConfig, type SubagentDefinition } from '../contracts/config.ts';
import { checkSubagentConfig } from '../subagent/config.ts';

/** An agent that looks at what happens outside, and tells the user what matters. */
export interface ServiceSubagentConfig {
  /** Looks at each event. Its name is the service's. */
  readonly agent: SubagentConfig;
  readonly eventSources: readonly EventSourceConfig[];
  /** Is this event worth a look? If it throws, the event is looked at. @defaultValue all are */
  readonly shouldInvoke?: (event: ExternalEvent) => boolean;
  /** Heads what the user is told. @defaultValue the agent's name */
  readonly label?: string;
  /** Events that may wait while one is looked at. @defaultValue 100 */
  readonly maxWaiting?: number;
  /** Of one event's data, as JSON. @defaultValue 65536 bytes */
  readonly maxEventBytes?: number;
  /** How often an invocation is tried that a limit refuses. @defaultValue 10 */
  readonly maxInvocations?: number;
  /** Between invocations that were refused. @defaultValue 1 to 60 seconds */
  readonly invocationBackoff?: Partial<BackoffInput>;
  /** Between attempts of a source that fails. @defaultValue 1 to 60 seconds */
  readonly sourceBackoff?: Partial<BackoffInput>;
  /** A source that ran for so long before it failed begins again without a history, in milliseconds. @defaultValue 60000 */
  readonly stableMs?: number;
  /** Time a source may take to stop, in milliseconds. @defaultValue 5000 */
  readonly stopTimeoutMs?: number;
}

/** A checked configuration with its defaults filled in. */
export interface ServiceDefinition extends Required<
  Omit<ServiceSubagentConfig, 'agent' | 'shouldInvoke' | 'invocationBackoff' | 'sourceBackoff'>
> {
  readonly name: string;
  readonly agent: SubagentDefinition;
  readonly shouldInvoke: (event: ExternalEvent) => boolean;
  readonly invocationBackoff: BackoffInput;
  readonly sourceBackoff: BackoffInput;
}

export const defaultServiceOptions = {
  maxWaiting: 100,
  maxEventBytes: 65_536,
  maxInvocations: 10,
  stableMs: 60_000,
  stopTimeoutMs: 5000,
} as const satisfies Partial<ServiceSubagentConfig>;

const defaultBackoff: BackoffInput = { baseDelayMs: 1000, maxDelayMs: 60_000 };

const anyFunction = z.custom<() => never>((value) => typeof value === 'function', {
  error: 'expected a function',
});
const count = z.number().int().min(1);
const milliseconds = z.number().positive();
const backoff = z
  .strictObject({ baseDelayMs: milliseconds, maxDelayMs: milliseconds })
  .refine(({ baseDelayMs, maxDelayMs }) => baseDelayMs <= maxDelayMs, {
    error: 'expected baseDelayMs to be at most maxDelayMs',
  });

/** Loose: a source is an object with more to it, or an instance of a class. */
const source = z.looseObject({
  name: z.string().min(1).max(100),
  start: anyFunction,
  stop: anyFunction.optional(),
});
const schema = z.strictObject({
  agent: z.custom<SubagentConfig>((value) => typeof value === 'object' && value !== null, {
    error: 'expected a configuration of a subagent',
  }),
  eventSources: z.array(source).min(1),
  shouldInvoke: anyFunction.optional(),
  label: z.string().min(1).optional(),
  maxWaiting: count,
  maxEventBytes: count,
  maxInvocations: count,
  invocationBackoff: backoff,
  sourceBackoff: backoff,
  stableMs: milliseconds,
  stopTimeoutMs: milliseconds,
});

const definitions = new WeakMap<ServiceSubagentConfig, ServiceDefinition>();

/**
 * Checks a configuration and fills in its defaults. The same configuration gives the same definition.
 * @throws {ConfigurationError} that names the option, its value and what was expected.
 */
export function checkServiceConfig(
  config: ServiceSubagentConfig,
  path = 'service',
): ServiceDefinition {
  const known = definitions.get(config);
  if (known) return known;
  const options = {
    ...defaultServiceOptions,
    ...withoutUndefined(readable(path, config)),
    invocationBackoff: { ...defaultBackoff, ...withoutUndefined(config.invocationBackoff ?? {}) },
    sourceBackoff: { ...defaultBackoff, ...withoutUndefined(config.sourceBackoff ?? {}) },
  };
  check(path, schema, options);
  const agent = checkSubagentConfig(config.agent, `${path}.agent`);
  refuseTwice(
    config.eventSources.map(({ name }) => name),
    `${path}.eventSources`,
  );
  const definition: ServiceDefinition = {
    ...options,
    agent,
    name: agent.name,
    label: config.label ?? agent.name,
    shouldInvoke: config.shouldInvoke ?? (() => true),
  };
  definitions.set(config, definition);
  return definition;
}

/**
 * Stands for a service that the journal has and the code has not: it keeps what there is, and is never
 * started. Nothing is dropped for want of room or of tries: what it may keep its code will say again.
 */
export function absentService(name: string): ServiceDefinition {
  return {
    ...defaultServiceOptions,
    name,
    label: name,
    maxWaiting: Number.MAX_SAFE_INTEGER,
    maxInvocations: Number.MAX_SAFE_INTEGER,
    agent: checkSubagentConfig({ name, instructions: '' }, name),
    eventSources: [],
    shouldInvoke: () => true,
    invocationBackoff: defaultBackoff,
    sourceBackoff: defaultBackoff,
  };
}

/**
 * The services of one session, checked.
 * @throws {ConfigurationError} as `checkServiceConfig`, or when two have the same name.
 */
export function checkServiceConfigs(
  configs: readonly ServiceSubagentConfig[],
): readonly ServiceDefinition[] {
  check('services', z.array(z.unknown()), configs);
  const checked = configs.map((config, n) => checkServiceConfig(config, `services[${n}]`));
  refuseTwice(
    checked.map(({ name }) => name),
    'services',
  );
  return checked;
}

/**
 * Checks a service where it is written, instead of where it is first used.
 * @throws {ConfigurationError} for an option that is unknown or out of range.
 */
export function defineService<C extends ServiceSubagentConfig>(config: C): C {
  checkServiceConfig(config);
  return config;
}

function refuseTwice(names: readonly string[], path: string): void {
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined)
    throw new ConfigurationError(
      'DUPLICATE_NAME',
      `${path}: expected names that are unique, got ${JSON.stringify(twice)} twice`,
    );
}
