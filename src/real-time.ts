// What an app can call without naming an environment: as in the core, and in real time unless it
// is given another. The one place that chooses for the app.
//
// Owns:     the runtime of the process, which is shared by all that ask for nothing special.

import { check } from './values/checks.ts';
import { notAnObject, readable } from './values/plain-checks.ts';
import { ConfigurationError } from './values/errors.ts';
import { withoutUndefined } from './values/without-undefined.ts';
import { nodeEnvironment } from './adapters/node/environment.ts';
import { z } from 'zod';
import {
  rockbotToolset as rockbotToolsetWith,
  type RockbotToolsetOptions,
} from './compat/rockbot-toolset.ts';
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
import type { SubagentConfig } from './actors/contracts/config.ts';
import {
  runSubagent as runSubagentWith,
  type RunSubagentOptions as CoreRunSubagentOptions,
  type RunTask,
  type SubagentRun,
} from './actors/subagents/run-subagent.ts';
import {
  VoiceSession as CoreVoiceSession,
  type VoiceSessionOptions as CoreVoiceSessionOptions,
} from './voice/voice-session.ts';

/** What a session may be given instead of a runtime of its own making. */
type RuntimeChoice = {
  /** Shared with other sessions: `createRuntime(…)`. */
  readonly runtime?: Runtime;
} & Partial<RuntimeOptions>;

export type TextSessionOptions = Omit<CoreTextSessionOptions, 'runtime'> & RuntimeChoice;
export type VoiceSessionOptions = Omit<CoreVoiceSessionOptions, 'runtime'> & RuntimeChoice;

/**
 * A runtime in real time, with a journal in memory, unless told otherwise.
 * Sessions that shall share limits and a journal are given the same one.
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
  'maxTotalActive',
  'inspect',
  'snapshots',
  'onUnfoldable',
] as const;

/** The options for the core: with a runtime, and without those of which one was made. */
function withRuntime<Options extends RuntimeChoice>(
  where: string,
  options: Options,
): Omit<Options, keyof RuntimeChoice> & { readonly runtime: Runtime } {
  // What is no object is refused by the core.
  if (notAnObject(options) !== null) return options as never;
  const {
    runtime: given,
    environment,
    journal,
    maxTotalActive,
    inspect,
    ...more
  } = readable(where, options);
  const runtime = given && check(`${where}: runtime`, runtimeSchema, given);
  const { snapshots, onUnfoldable, ...rest } = more;
  const own = withoutUndefined({
    environment,
    journal,
    maxTotalActive,
    inspect,
    snapshots,
    onUnfoldable,
  });
  const first = ofRuntimes.find((option) => own[option] !== undefined);
  // The environment of a pool's sessions is that of the pool.
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
  // Sessions that ask for nothing special share one, and so the limit of the process.
  if (!runtime && first === undefined) processRuntime ??= createRuntime();
  const chosen = runtime ?? (first === undefined ? processRuntime : createRuntime(own));
  return { ...rest, runtime: chosen as Runtime } as never;
}

/** A conversation in text. */
export class TextSession extends CoreTextSession {
  /** @throws {ConfigurationError} for options that cannot work. */
  constructor(options: TextSessionOptions) {
    super(withRuntime('new TextSession(options)', options));
  }
}

/** A conversation by voice. */
export class VoiceSession extends CoreVoiceSession {
  /** @throws {ConfigurationError} for options that cannot work. */
  constructor(options: VoiceSessionOptions) {
    super(withRuntime('new VoiceSession(options)', options));
  }
}

/** A model, who answers, and what it shares; the runtime of the process unless one is given. */
export type RunSubagentOptions = Omit<CoreRunSubagentOptions, 'runtime'> & RuntimeChoice;

/**
 * One subagent that works for a program instead of a conversation.
 * @throws {ConfigurationError} for a configuration that cannot work.
 * @throws {CapacityError} when 100,000 runs of the runtime have not ended.
 */
export function runSubagent(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions = {},
): SubagentRun {
  return runSubagentWith(config, task, withRuntime('runSubagent(…, options)', options));
}

/**
 * The tools of RockBot's primary agent: `spawn_subagent`, `cancel_subagent` and
 * `list_subagents`, with its arguments and texts; in real time, unless told otherwise.
 */
export function rockbotToolset(
  options: Partial<RockbotToolsetOptions> = {},
): ReturnType<typeof rockbotToolsetWith> {
  const { clock = nodeEnvironment().clock, ...rest } = readable('rockbotToolset', options);
  return rockbotToolsetWith({ clock, ...rest });
}

/**
 * Working memory that lasts as long as the process; in real time, unless told otherwise.
 * @throws {ConfigurationError} when a limit is unknown, not a whole number ≥ 1, or above `maxTtlMs`.
 */
export function workingMemory(options: Partial<WorkingMemoryOptions> = {}): WorkingMemory {
  return workingMemoryWith({
    environment: nodeEnvironment(),
    ...readable('workingMemory', options),
  });
}
