// What one run works with: the configuration (its own, or shared with other runs),
// the prepared tools, the model and the first messages.

import type { LanguageModel, ModelMessage } from 'ai';
import { ConfigurationError } from '../../errors.ts';
import { prepareTools, type PreparedTools } from '../ai/tools.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import { askUserTool, ASK_USER } from './ask-user.ts';
import { checkSubagentConfig, type SubagentConfig, type SubagentDefinition } from './config.ts';

export interface Instance {
  readonly definition: SubagentDefinition;
  readonly model: LanguageModel;
  readonly tools: PreparedTools;
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  /** The value of the output schema, once the model gave it. */
  result?: unknown;
}

/** Runs that share one configuration object share its `dispose`: the last one calls it. */
const users = new WeakMap<SubagentConfig, number>();

/**
 * Takes the instance of a configuration for one run; `releaseInstance` gives it back.
 * @throws {ConfigurationError} when `createInstance` gives no valid configuration.
 */
export function takeInstance(definition: SubagentDefinition): SubagentDefinition {
  const created = definition.createInstance?.();
  if (created !== undefined && (typeof created !== 'object' || created === null))
    throw new ConfigurationError(
      'INVALID_INSTANCE',
      `${definition.name}: expected createInstance() to return a configuration, got ${String(created)}`,
    );
  const own = created
    ? checkSubagentConfig(created, `${definition.name}.createInstance()`)
    : definition;
  users.set(own.source, (users.get(own.source) ?? 0) + 1);
  return own;
}

const toolsets = new WeakMap<SubagentConfig, PreparedTools>();

/** The tools of a configuration, prepared once for all its runs. */
export function toolsOf(definition: SubagentDefinition): PreparedTools {
  const known = toolsets.get(definition.source);
  if (known) return known;
  const prepared = prepareTools(definition.tools, `${definition.name}.tools`, {
    reserved: [ASK_USER],
    builtIn: definition.interactive ? { [ASK_USER]: askUserTool } : {},
  });
  toolsets.set(definition.source, prepared);
  return prepared;
}

/** Resolves when the instance is disposed, or at once if others still use it. Never rejects. */
export async function releaseInstance(
  host: Host,
  { definition }: Pick<Instance, 'definition'>,
): Promise<void> {
  const left = (users.get(definition.source) ?? 1) - 1;
  users.set(definition.source, left);
  if (left > 0 || !definition.dispose) return;
  const { dispose } = definition;
  await new Promise<void>((done) => {
    callSafely(host, `dispose of ${definition.name}`, async () => {
      try {
        await dispose();
      } finally {
        done();
      }
    });
  });
}
