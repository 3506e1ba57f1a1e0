// The functions that an app calls without naming an environment. They call the core, in real time unless the app passes
// an environment. Only this file and the entries choose an environment for the app.
//
// Owns:     the process's runtime, which all sessions without special options share.

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

/** The options for a session's runtime: either a runtime, or the options from which the session creates one. */
export type RuntimeChoice = {
  /** The runtime shared with other sessions: `createRuntime(…)`. */
  readonly runtime?: Runtime;
} & Partial<RuntimeOptions>;

/**
 * Creates a real-time runtime with a journal in memory, unless the options say otherwise. Sessions that should share
 * limits and a journal must receive the same runtime.
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

/** Returns the options for the core: with a runtime, and without the options from which the runtime was created. */
export function withRuntime<Options extends RuntimeChoice>(
  where: string,
  options: Options,
): Omit<Options, keyof RuntimeChoice> & { readonly runtime: Runtime } {
  // The core refuses a value that is not an object.
  if (notAnObject(options) !== null) return options as never;
  const { runtime: given, ...all } = readable(where, options);
  const runtime = given && check(`${where}: runtime`, runtimeSchema, given);
  const isOfRuntime = ([name]: readonly [string, unknown]) => ofRuntimes.some((it) => it === name);
  const entries = Object.entries(all);
  const own: Partial<RuntimeOptions> = withoutUndefined(
    Object.fromEntries(entries.filter(isOfRuntime)),
  );
  const rest = Object.fromEntries(entries.filter((entry) => !isOfRuntime(entry)));
  // A pool's sessions use the pool's environment.
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
  // Sessions without special options share one runtime, and therefore share the process's limit.
  const isCommon = Object.keys(own).length === 0;
  const made = () => (isCommon ? (processRuntime ??= createRuntime()) : createRuntime(own));
  return { ...(rest as Omit<Options, keyof RuntimeChoice>), runtime: runtime ?? made() };
}
