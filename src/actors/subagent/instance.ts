// The instance of one run: its configuration (used by this run only or shared), the prepared tools, the model and the
// first messages.

import type { LanguageModel, ModelMessage } from 'ai';
import { isPromiseLike, shown, type MaybePromise } from '../../values/plain-checks.ts';
import { ConfigurationError, OffstageError, TimeoutError } from '../../values/errors.ts';
import type { ModelNames } from '../contracts/usage.ts';
import { namesOf } from '../model/price.ts';
import { mayNeedApproval, prepareTools, type PreparedTools } from '../model/tools.ts';
import { raceAbort, raceTime } from '../../values/race-abort.ts';
import { type Host } from '../runtime/host.ts';
import { outputInstructions } from '../model/output.ts';
import {
  contextNote,
  openingMessages,
  systemPrompt,
  type SubagentContextSnapshot,
} from '../context/context-snapshot.ts';
import type { NoteMarks } from '../notes/note-marks.ts';
import { askUserTool, ASK_USER, NOT_FOR_ME, notForMeTool } from './ask-user.ts';
import { SLEEP_UNTIL, sleepUntilTool } from './sleep-until.ts';
import { type SubagentConfig, type SubagentDefinition } from '../contracts/config.ts';
import { checkSubagentConfig } from './config.ts';
import { completionToolOf, completionTools } from './child-toolset.ts';

/** The prompts at the start of a run. */
export interface Briefing {
  /**
   * Builds the system prompt for each step on demand, so that a waiting subagent does not have to store it. `words`:
   * instructions that replace the author's.
   */
  readonly instructions: (words?: string) => string;
  readonly messages: readonly ModelMessage[];
}

export interface Instance extends Pick<Briefing, 'instructions'> {
  readonly definition: SubagentDefinition;
  /** Null if a relay does the work or the model belongs to a worker. */
  readonly model: LanguageModel | null;
  readonly tools: PreparedTools;
}

export type PreparedInstance = Instance & Briefing & { readonly notes: NoteMarks | null };

/** The number of runs that use each configuration object. The last of these runs calls the object's `dispose`. */
const users = new WeakMap<SubagentConfig, number>();

/**
 * Acquires a configuration's instance for one run. `releaseInstance` releases it.
 * @throws {ConfigurationError} if `createInstance` returns no valid configuration; also throws, or rejects with, the
 *   error of `createInstance`.
 */
export function takeInstance(definition: SubagentDefinition): MaybePromise<SubagentDefinition> {
  const created: unknown = definition.createInstance?.();
  return isPromiseLike(created)
    ? Promise.resolve(created).then((value) => taken(definition, value))
    : taken(definition, created);
}

function taken(definition: SubagentDefinition, created: unknown): SubagentDefinition {
  if (created !== undefined && !isConfiguration(created))
    throw new ConfigurationError(
      'INVALID_INSTANCE',
      `${definition.name}: expected createInstance() to return a configuration, got ${shown(created)}`,
    );
  const own = created
    ? checkSubagentConfig(created, `${definition.name}.createInstance()`)
    : definition;
  users.set(own.source, (users.get(own.source) ?? 0) + 1);
  return own;
}

function isConfiguration(created: unknown): created is SubagentConfig {
  return typeof created === 'object' && created !== null;
}

/**
 * Builds the prompts of a run: its task and the form of its result. `notes` is null if an earlier version started the
 * run. In that case, the messages are in the journal.
 */
export function briefing(
  definition: SubagentDefinition,
  snapshot: SubagentContextSnapshot,
  notes: NoteMarks | null,
): Briefing {
  const { outputSchema, completion, tools } = definition;
  const handsInBy =
    completion === 'tool' ? (completionToolOf(tools) ?? 'complete_task') : undefined;
  const terms = {
    handsInBy,
    maxSteps: definition.agent ? undefined : definition.maxSteps,
    asksUser: definition.interactive,
    asksApproval: mayNeedApproval(definition),
    shape: outputSchema === undefined ? undefined : outputInstructions(outputSchema, handsInBy),
  };
  if (!notes) {
    const instructions = systemPrompt(snapshot, terms, null, contextNote(snapshot));
    return { instructions: () => instructions, messages: [] };
  }
  const { task, agentInstructions } = snapshot;
  const { toolName } = task;
  return {
    instructions: (words = agentInstructions) =>
      systemPrompt({ agentInstructions: words, task: { toolName } }, terms, notes),
    messages: openingMessages(snapshot, notes),
  };
}

/**
 * Acquires an instance and its prompts, and releases the instance after a failure or an abort.
 * @throws {ConfigurationError} if there is no model, or like `takeInstance`; the rejection of `brief`; `signal.reason`.
 */
export async function prepareInstance(
  host: Host,
  configured: MaybePromise<SubagentDefinition>,
  model: LanguageModel | undefined,
  signal: AbortSignal,
  notes: NoteMarks | null,
  brief: (own: SubagentDefinition) => Briefing | Promise<Briefing>,
): Promise<PreparedInstance> {
  const wanted = configured instanceof Promise ? await raceAbort(configured, signal) : configured;
  const taking = takeInstance(wanted);
  const definition = taking instanceof Promise ? await unlessAborted(host, taking, signal) : taking;
  try {
    const tools = definition.relay ? noTools : toolsOf(definition);
    const { instructions, messages } = await raceAbort(brief(definition), signal);
    if (definition.relay) return { definition, tools, model: null, instructions, messages, notes };
    const chosen = definition.model ?? model;
    const isElsewhere = definition.runs === 'jobs' && host.jobs !== null;
    if (chosen === undefined && !isElsewhere) throw noModel(definition.name);
    return { definition, tools, model: chosen ?? null, instructions, messages, notes };
  } catch (error) {
    await releaseInstance(host, { definition });
    throw error;
  }
}

export function noModel(path: string): ConfigurationError {
  return new ConfigurationError(
    'NO_MODEL',
    `${path}: expected a model in the subagent's configuration or beside it, got none`,
  );
}

/** Returns the instance. Rejects if the signal aborts first. An instance that is created later is then released. */
async function unlessAborted(
  host: Host,
  taking: Promise<SubagentDefinition>,
  signal: AbortSignal,
): Promise<SubagentDefinition> {
  try {
    return await raceAbort(taking, signal);
  } catch (error) {
    void taking.then(
      (definition) => releaseInstance(host, { definition }),
      () => undefined,
    );
    throw error;
  }
}

/** The tools of a relay come from its loop. */
const noTools: PreparedTools = { modelTools: undefined, execution: new Map() };

const toolsets = new WeakMap<SubagentConfig, PreparedTools>();

/** Returns a configuration's tools. They are prepared only once for all its runs. */
export function toolsOf(definition: SubagentDefinition): PreparedTools {
  const known = toolsets.get(definition.source);
  if (known) return known;
  const prepared = prepareTools(definition.tools, `${definition.name}.tools`, {
    toolApproval: definition.toolApproval,
    reserved: [ASK_USER, NOT_FOR_ME, ...(definition.maxSleepMs > 0 ? [SLEEP_UNTIL] : [])],
    builtIn: {
      ...(definition.interactive ? { [ASK_USER]: askUserTool, [NOT_FOR_ME]: notForMeTool } : {}),
      ...(definition.maxSleepMs > 0 && { [SLEEP_UNTIL]: sleepUntilTool }),
      ...completionTools(definition),
    },
  });
  toolsets.set(definition.source, prepared);
  return prepared;
}

/** The time limit for a release. If a release takes longer, the runtime stops waiting and reports it. */
const RELEASE_TIMEOUT_MS = 30_000;

/**
 * Releases the instance. Resolves when the instance has been disposed of: immediately if other runs still use it, or
 * otherwise after at most 30 seconds. Never rejects.
 */
export async function releaseInstance(
  host: Host,
  { definition }: Pick<Instance, 'definition'>,
): Promise<void> {
  const left = (users.get(definition.source) ?? 1) - 1;
  users.set(definition.source, left);
  if (left > 0 || !definition.dispose) return;
  const { dispose, name } = definition;
  await releaseInTime(host, `dispose of ${name}`, () => dispose());
}

/** Waits for a release to finish, for at most 30 seconds. Never rejects, because errors are reported to the host. */
export async function releaseInTime(
  { environment, report }: Host,
  where: string,
  release: () => void | Promise<void>,
): Promise<void> {
  try {
    await raceTime(release, {
      timeoutMs: RELEASE_TIMEOUT_MS,
      scheduler: environment.scheduler,
      late: () =>
        new TimeoutError(
          `Expected ${where} to be done within ${RELEASE_TIMEOUT_MS} ms: it is not waited for`,
          { code: 'DISPOSE_TIMEOUT' },
        ),
    });
  } catch (error) {
    report(error, where);
  }
}

/** @throws {OffstageError} `INTERNAL` if the run has no model in this process. */
export function modelOf({ model, definition }: Instance): LanguageModel {
  if (model !== null) return model;
  throw new OffstageError('INTERNAL', `${definition.name} has no model`);
}

/** Returns the names of the model, or undefined if the model belongs to a relay or a worker. */
export function modelAsked({ model }: Instance): ModelNames | undefined {
  return model === null ? undefined : namesOf(model);
}
