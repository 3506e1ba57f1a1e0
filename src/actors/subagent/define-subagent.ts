// Validates a whole configuration, including the parts that `checkSubagentConfig` leaves to the first run, and the
// resources that the configuration needs.

import type { LanguageModel } from 'ai';
import { ConfigurationError } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import { objectSchema, wrapSchema } from '../model/schema.ts';
import type { Runtime } from '../admission/runtime.ts';
import { checkPriced, checkSubagentConfig, nameOf } from './config.ts';
import { noModel, toolsOf } from './instance.ts';

/**
 * Validates a configuration when it is defined, and not only at its first use.
 * @throws {ConfigurationError} if an option is unknown, out of range, or incompatible with another option.
 */
export function defineSubagent<C extends SubagentConfig>(config: C): C {
  checkParts(nameOf(config, 'defineSubagent(config)'), config);
  return config;
}

/**
 * Refuses useless supervision. `toolTimeout` may exceed the other limits, because several subagents may share one
 * value.
 */
function checkTimes(
  path: string,
  { timeout, inactivityTimeoutMs, onHung }: SubagentDefinition,
): void {
  const wrong =
    inactivityTimeoutMs >= timeout
      ? `inactivityTimeoutMs: expected less than \`timeout\` (${timeout}), got ${inactivityTimeoutMs}`
      : onHung !== 'mark' && inactivityTimeoutMs === 0
        ? `onHung: expected \`inactivityTimeoutMs\` beside it, got ${shown(onHung)} without it: nothing counts as hung`
        : null;
  if (wrong !== null) throw new ConfigurationError('INVALID_OPTION', `${path}.${wrong}`);
}

/**
 * @throws {ConfigurationError} like `checkSubagentConfig`, if options are incompatible, and for tools or schemas that
 *   cannot be described to a model.
 */
export function checkParts(path: string, config: SubagentConfig): SubagentDefinition {
  const definition = checkSubagentConfig(config, path);
  checkTimes(path, definition);
  toolsOf(definition);
  const { inputSchema, outputSchema } = definition;
  if (outputSchema !== undefined) wrapSchema(outputSchema, `${path}.outputSchema`);
  if (inputSchema !== undefined) objectSchema(inputSchema, `${path}.inputSchema`);
  return definition;
}

/**
 * Validates a configuration and the resources of its run.
 * @throws {ConfigurationError} like `checkParts`; `NO_MODEL`; `INVALID_OPTION` for a cost limit without a `price`.
 */
export function checkNeeds(
  path: string,
  config: SubagentConfig,
  {
    model,
    jobs,
    price,
  }: { readonly model: LanguageModel | undefined } & Pick<Runtime, 'jobs' | 'price'>,
): void {
  const definition = checkParts(path, config);
  checkPriced(path, definition, price);
  const { relay, createInstance, runs } = definition;
  if (relay || createInstance || (runs === 'jobs' && jobs !== undefined)) return;
  if ((definition.model ?? model) === undefined) throw noModel(path);
}

/**
 * Checks the tool names in a configuration that is granted no tools.
 * @throws {ConfigurationError} `INVALID_OPTION` if the configuration does not have a tool that it names.
 */
export function checkToolNames(
  path: string,
  {
    preApproved = [],
    toolApproval = {},
    toolsContext = {},
    tools = {},
    relay,
    createInstance,
  }: SubagentConfig,
): void {
  if (relay || createInstance) return;
  const named = {
    preApproved: preApproved.map(({ tool }) => tool),
    toolApproval: typeof toolApproval === 'object' ? Object.keys(toolApproval) : [],
    toolsContext: Object.keys(toolsContext),
  };
  for (const [option, names] of Object.entries(named))
    for (const name of names)
      if (!Object.hasOwn(tools, name))
        throw new ConfigurationError(
          'INVALID_OPTION',
          `${path}.${option}: expected one of its tools (${Object.keys(tools).join(', ') || 'it has none'}), got ${shown(name)}`,
        );
}
