// The functions that an app can call without naming an environment: those of the core, in real time unless an
// environment is given. No other module chooses an environment for the app.
//
// Owns:     the runtime of the process, shared by all sessions without special options.

import { check } from './values/checks.ts';
import { notAnObject, readable } from './values/plain-checks.ts';
import { ConfigurationError } from './values/errors.ts';
import { withoutUndefined } from './values/without-undefined.ts';
import { nodeEnvironment } from './adapters/node/environment.ts';
import { z } from 'zod';
import {
  createRuntime as createRuntimeWith,
  type Runtime,
  type RuntimeOptions,
} from './actors/admission/runtime.ts';
import type { WorkingMemory } from './actors/ports/working-memory.ts';
import {
  workingMemory as workingMemoryWith,
  type WorkingMemoryOptions,
} from './memory/working-memory.ts';
import {
  TextSession as CoreTextSession,
  type TextSessionOptions as CoreTextSessionOptions,
} from './actors/session/view/text-session.ts';
import type { OutputOf, SubagentConfig } from './actors/contracts/config.ts';
import {
  runSubagent as runSubagentWith,
  type RunSubagentOptions as CoreRunSubagentOptions,
  type RunTask,
  type SubagentRun,
} from './actors/subagents/run-subagent.ts';
import {
  subagentLogic as subagentLogicWith,
  type SubagentLogic,
  type SubagentLogicOptions,
} from './actors/subagents/subagent-logic.ts';

/** The options for a session's runtime: a given one, or those from which the session creates its own. */
export type RuntimeChoice = {
  /** The runtime shared with other sessions: `createRuntime(…)`. */
  readonly runtime?: Runtime;
} & Partial<RuntimeOptions>;

/** The options of a `TextSession`, which creates its own runtime in real time unless it is given one. */
export type TextSessionOptions = Omit<CoreTextSessionOptions, 'runtime'> & RuntimeChoice;

/**
 * Creates a runtime in real time with a journal in memory, unless the options say otherwise. Sessions that
 * are to share limits and a journal get the same one.
 */
export function createRuntime(options: Partial<RuntimeOptions> = {}): Runtime {
  return createRuntimeWith({
    environment: nodeEnvironment(),
    ...readable('createRuntime', options),
  });
}

const runtimeSchema = z.custom<Runtime>(
  (value) => typeof (value as Partial<Runtime> | null)?.environment?.ids?.next === 'function',
  'expected one of createRuntime(…)',
);

let processRuntime: Runtime | undefined;

const ofRuntimes = [
  'environment',
  'journal',
  'jobs',
  'price',
  'maxTotalActive',
  'inspect',
  'snapshots',
  'onUnfoldable',
] as const;

/** Returns the options for the core: with a runtime, and without the options that it was created from. */
export function withRuntime<Options extends RuntimeChoice>(
  where: string,
  options: Options,
): Omit<Options, keyof RuntimeChoice> & { readonly runtime: Runtime } {
  // The core refuses a value that is not an object.
  if (notAnObject(options) !== null) return options as never;
  const {
    runtime: given,
    environment,
    journal,
    jobs,
    price,
    maxTotalActive,
    inspect,
    snapshots,
    onUnfoldable,
    ...rest
  } = readable(where, options);
  const runtime = given && check(`${where}: runtime`, runtimeSchema, given);
  const own = withoutUndefined({
    environment,
    journal,
    jobs,
    price,
    maxTotalActive,
    inspect,
    snapshots,
    onUnfoldable,
  });
  const first = ofRuntimes.find((option) => own[option] !== undefined);
  // The sessions of a pool use the pool's environment.
  const other = ofRuntimes.find(
    (option) =>
      option !== 'environment' &&
      own[option] !== undefined &&
      own[option] !== (runtime as RuntimeChoice)?.[option],
  );
  if (runtime && other !== undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `${where}: expected \`${other}\` to be given to createRuntime(…), got it beside a \`runtime\`, which has its own`,
    );
  // Sessions without special options share one runtime, and so the limit of the process.
  const shared = (): Runtime => (processRuntime ??= createRuntime());
  const chosen = runtime ?? (first === undefined ? shared() : createRuntime(own));
  return { ...rest, runtime: chosen };
}

/** A conversation in text. */
export class TextSession extends CoreTextSession {
  /** @throws {ConfigurationError} for options that cannot work together. */
  constructor(options: TextSessionOptions) {
    super(withRuntime('new TextSession(options)', options));
  }
}

/**
 * The model, the handlers of questions, and the shared resources; the runtime of the process unless one is
 * given.
 */
export type RunSubagentOptions = Omit<CoreRunSubagentOptions, 'runtime'> & RuntimeChoice;

/**
 * Runs one subagent that works for a program instead of a conversation.
 * @throws {ConfigurationError} for an invalid configuration.
 * @throws {CapacityError} if 100,000 runs of the runtime have not ended.
 */
export function runSubagent<Config extends SubagentConfig>(
  config: Config,
  task: RunTask | string,
  options?: RunSubagentOptions,
): SubagentRun<OutputOf<Config>>;
export function runSubagent(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions = {},
): SubagentRun {
  return runSubagentWith(config, task, withRuntime('runSubagent(…, options)', options));
}

/**
 * Returns a subagent as actor logic of XState, for `createActor`, `invoke` and `spawn`. Its actor has the states of the
 * subagent (`running`, `waiting_for_input`, `completed`, `failed`, `cancelled`, …), takes the events `answer`, `message` and
 * `cancel`, and is done with the outcome as its output.
 * @throws {ConfigurationError} for a configuration or an option that is wrong.
 */
export function subagentLogic<Config extends SubagentConfig>(
  config: Config,
  options?: Omit<SubagentLogicOptions, 'runtime'> & RuntimeChoice,
): SubagentLogic<OutputOf<Config>>;
export function subagentLogic(
  config: SubagentConfig,
  options: Omit<SubagentLogicOptions, 'runtime'> & RuntimeChoice = {},
): SubagentLogic {
  return subagentLogicWith(config, withRuntime('subagentLogic(…, options)', options));
}

/**
 * Creates working memory that ends with the process; in real time, unless the options say otherwise.
 * @throws {ConfigurationError} if a limit is unknown, not a whole number ≥ 1, or above `maxTtlMs`.
 */
export function workingMemory(options: Partial<WorkingMemoryOptions> = {}): WorkingMemory {
  return workingMemoryWith({
    environment: nodeEnvironment(),
    ...readable('workingMemory', options),
  });
}
