// A service's configuration as its author writes it, and its validated form.

import { check } from '../../values/checks.ts';
import { readable } from '../../values/plain-checks.ts';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import type { BackoffInput } from '../../machines/index.ts';
import type { EventSourceConfig, ExternalEvent } from '../ports/event-source.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { type SubagentConfig, type SubagentDefinition } from '../contracts/config.ts';
import { checkSubagentConfig } from '../subagent/config.ts';

/** An agent that examines external events and reports the relevant ones to the user. */
export interface ServiceSubagentConfig {
  /** The agent that examines each event. Its name is also the service's name. */
  readonly agent: SubagentConfig;
  /** The sources whose events the agent examines. */
  readonly eventSources: readonly EventSourceConfig[];
  /**
   * Returns whether the agent should examine this event. If the function throws, the agent examines the event.
   * @defaultValue all events are examined
   */
  readonly shouldInvoke?: (event: ExternalEvent) => boolean;
  /** The heading of its messages to the user. @defaultValue the agent's name */
  readonly label?: string;
  /** The maximum number of events that wait while another is being examined. @defaultValue 100 */
  readonly maxWaiting?: number;
  /** The maximum size of one event's data, as JSON. @defaultValue 65536 bytes */
  readonly maxEventBytes?: number;
  /** The maximum number of attempts to start the agent while a limit prevents it. @defaultValue 10 */
  readonly maxInvocations?: number;
  /** The delays between the attempts to start the agent. @defaultValue 1 to 60 seconds */
  readonly invocationBackoff?: Partial<BackoffInput>;
  /** The delays between attempts of a failing source. @defaultValue 1 to 60 seconds */
  readonly sourceBackoff?: Partial<BackoffInput>;
  /** The time, in milliseconds, that a source must run before its backoff is reset. @defaultValue 60000 */
  readonly stableMs?: number;
  /** The time limit for stopping a source, in milliseconds. @defaultValue 5000 */
  readonly stopTimeoutMs?: number;
}

/** A validated configuration, including defaults. */
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

/** Other properties are allowed, because a source may be a class instance. */
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
 * Checks a configuration and adds its defaults. Repeated calls with the same configuration return the same definition.
 * @throws {ConfigurationError} with the option, its value and what was expected.
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
 * Returns a definition for a service that is in the journal but not in the code. The service keeps its state and does
 * not start. Its limits never drop an event. The real limits apply once the code contains the service again.
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
 * Checks the services of one session.
 * @throws {ConfigurationError} like `checkServiceConfig`, and if two services have the same name.
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
 * Checks a service's configuration when it is defined, not when it is first used.
 * @throws {ConfigurationError} if an option is unknown or out of range.
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
