// What one run works with: the configuration (its own, or shared with other runs),
// the prepared tools, the model and the first messages.

import type { LanguageModel, ModelMessage } from 'ai';
import { ConfigurationError } from '../../errors.ts';
import { prepareTools, type PreparedTools } from '../ai/tools.ts';
import { raceAbort } from '../race-abort.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import { outputInstructions } from '../ai/output.ts';
import type { SubagentContextSnapshot } from '../context/context-snapshot.ts';
import { openingMessages, systemPrompt } from '../context/prompts.ts';
import { askUserTool, ASK_USER } from './ask-user.ts';
import { completionToolOf, completionTools } from './complete-task.ts';
import { checkSubagentConfig, type SubagentConfig, type SubagentDefinition } from './config.ts';

/** What a run is told when it starts. */
export interface Briefing {
  /** Its system prompt. */
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
}

export interface Instance extends Pick<Briefing, 'instructions'> {
  readonly definition: SubagentDefinition;
  readonly model: LanguageModel;
  readonly tools: PreparedTools;
}

export type PreparedInstance = Instance & Briefing;

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

/** The prompts of a run: what it is told of its task, and the shape of its result. */
export function briefing(
  definition: SubagentDefinition,
  snapshot: SubagentContextSnapshot,
): Briefing {
  const { outputSchema, completion, tools } = definition;
  const handsInBy =
    completion === 'tool' ? (completionToolOf(tools) ?? 'complete_task') : undefined;
  const shape =
    outputSchema === undefined ? '' : `\n\n${outputInstructions(outputSchema, handsInBy)}`;
  return { instructions: systemPrompt(snapshot) + shape, messages: openingMessages(snapshot) };
}

/**
 * Takes an instance and briefs it; when that fails, or the signal aborts, it is given back.
 * @throws {ConfigurationError} without a model, or as `takeInstance`; what `brief` rejects with;
 * `signal.reason`.
 */
export async function prepareInstance(
  host: Host,
  configured: SubagentDefinition,
  model: LanguageModel | undefined,
  signal: AbortSignal,
  brief: (own: SubagentDefinition) => Briefing | Promise<Briefing>,
): Promise<PreparedInstance> {
  const definition = takeInstance(configured);
  try {
    const tools = toolsOf(definition);
    const { instructions, messages } = await raceAbort(brief(definition), signal);
    const chosen = definition.model ?? model;
    if (chosen === undefined)
      throw new ConfigurationError(
        'NO_MODEL',
        `${definition.name}: expected a model in the subagent's configuration or beside it, got none`,
      );
    return { definition, tools, model: chosen, instructions, messages };
  } catch (error) {
    await releaseInstance(host, { definition });
    throw error;
  }
}

const toolsets = new WeakMap<SubagentConfig, PreparedTools>();

/** The tools of a configuration, prepared once for all its runs. */
export function toolsOf(definition: SubagentDefinition): PreparedTools {
  const known = toolsets.get(definition.source);
  if (known) return known;
  const prepared = prepareTools(definition.tools, `${definition.name}.tools`, {
    reserved: [ASK_USER],
    builtIn: {
      ...(definition.interactive ? { [ASK_USER]: askUserTool } : {}),
      ...completionTools(definition),
    },
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
