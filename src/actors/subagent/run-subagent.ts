// One subagent without a conversation: a program hands it a task and gets its outcome. It is
// the same subagent as in a session, with the program in the place of the user.
//
// Owns:     the promise of the outcome, and the scope that the runs of a runtime share.
// Does not: anything that the service of subagents does (delegation/).
//
// Invariants
//   N1. `result` resolves once, with how it ended and after its instance was disposed.
//       It never rejects.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import {
  aFunction,
  anObject,
  check,
  checkIsObject,
  readable,
  type ChecksOf,
} from '../../checks.ts';
import { CapacityError, ConfigurationError, quietly } from '../../errors.ts';
import { asJson } from '../ai/json.ts';
import { aModel } from '../ai/model.ts';
import { Delegation } from '../delegation/delegation.ts';
import { handlerChecks, ProgramPorts, type ProgramHandlers } from '../delegation/program-ports.ts';
import { THE_LEAD } from '../delegation/service-types.ts';
import {
  outcomeChecks,
  splitOutcomeOptions,
  type OutcomeOptions,
} from '../outcomes/outcome-options.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { journalOfPassing, type Runtime } from '../runtime/runtime.ts';
import { defaultSessionLimits } from '../supervisor/limits.ts';
import type { SubagentConfig } from './config.ts';
import { keptRun } from './kept-run.ts';
import type { Outcome } from './outcome.ts';
import type { SubagentTask } from './subagent-ports.ts';

/** What is to be done. `toolName` names it in the prompt; by default the subagent's own name. */
export type RunTask = Pick<SubagentTask, 'description'> & Partial<SubagentTask>;

export interface RunSubagentOptions extends ProgramHandlers, OutcomeOptions {
  readonly runtime: Runtime;
  /**
   * Of the run in the journal, where nothing else may have it. The same id again, in another process or
   * after a crash, is the same run, whatever its task: it goes on from its last step, or has ended with
   * the outcome that was kept. `journal.forget(id)` forgets it. @defaultValue none: it ends with the process
   */
  readonly id?: string;
  /** For whom it works, as the program vouches: tools read it as `requester`. @defaultValue nobody in particular */
  readonly by?: string;
  /** For a configuration without a model of its own. */
  readonly model?: LanguageModel;
  /** Learns of what went wrong without ending the run: a model call that is tried again, a throwing hook. */
  readonly onError?: (error: unknown, where: string) => void;
}

export interface SubagentRun {
  /** That was given, or else of its subagent. */
  readonly id: string;
  /**
   * How it ended. Never rejects. With an `id`: `lost`, with the code of the error, also where the
   * journal cannot be reached (then it can be run again), or another process runs it (`SCOPE_IN_USE`).
   */
  readonly result: Promise<Outcome>;
  /** Ends it as cancelled, unless it has ended. */
  cancel(reason?: string): void;
}

/**
 * Starts a subagent that works for a program instead of a conversation. What it asks with
 * `request_input` goes to `onInput`; without that nobody answers. An instance with
 * `lifetime: 'session'` lives as long as its run. Without an `id` nothing of it is written to a journal
 * that outlives the process.
 * @throws {ConfigurationError} for a configuration that cannot work, or a task without the inputs
 * that it declares.
 * @throws {CapacityError} when 100,000 runs of the runtime have not ended.
 */
export function runSubagent(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions,
): SubagentRun {
  checkRun(config, task, options);
  const { runtime, model, onError, id: keptAs, by, ...rest } = options;
  const own: SubagentConfig =
    config.lifetime === 'session' ? { ...config, lifetime: 'ephemeral' } : config;
  const wanted: SubagentTask = {
    toolName: config.name,
    args: {},
    ...(typeof task === 'string' ? { description: task } : task),
  };
  if (keptAs !== undefined) return keptRun(keptAs, own, wanted, options);
  const [outcomes, handlers] = splitOutcomeOptions(rest);
  const { delegation, host } = scopeOf(runtime);
  const { promise: result, resolve } = Promise.withResolvers<Outcome>();
  const ports = new ProgramPorts({
    host: onError ? { ...host, report: quietly(onError) } : host,
    model,
    handlers,
    outcomes,
    answersBySend: false,
    tell: (id, event) => delegation.get(id)?.receive(event),
    answer: (...answer) => delegation.settleRequest(...answer),
    ended({ id, parentId }, outcome, disposed) {
      if (parentId !== null) return;
      delegation.delivered(id);
      void disposed.then(() => resolve(outcome));
    },
  });
  const receipt = delegation.spawnFor(ports, {
    config: own,
    task: wanted,
    caller: THE_LEAD,
    ...(by === undefined ? {} : { by }),
  });
  if (receipt.status === 'rejected') {
    const { code, message } = receipt.error;
    throw code === 'INVALID_INPUT'
      ? new ConfigurationError(code, message)
      : new CapacityError(code, message);
  }
  const id = receipt.subagentId;
  return {
    id,
    result,
    cancel(reason = 'cancelled') {
      delegation.cancel(id, THE_LEAD, reason);
    },
  };
}

const EXAMPLE = "runSubagent({ name, instructions }, 'Do it', { model: openai('gpt-5.1') })";

const optionsSchema = z.strictObject({
  ...handlerChecks,
  ...outcomeChecks,
  runtime: anObject('a runtime: createRuntime(…)'),
  id: z.string().min(1).optional(),
  model: aModel.optional(),
  onError: aFunction.optional(),
  // Where it is used.
  by: z.unknown().optional(),
} satisfies ChecksOf<RunSubagentOptions>);

const taskSchema = z.union(
  [
    z.string(),
    z.strictObject({
      description: z.string(),
      toolName: z.string().optional(),
      args: z
        .record(z.string(), z.unknown())
        .refine((args) => asJson(args).ok, {
          error: 'expected arguments that are JSON, nested no deeper than 200 levels',
        })
        .optional(),
    } satisfies ChecksOf<SubagentTask>),
  ],
  { error: 'expected words, or { description, args } of JSON' },
);

/** @throws {ConfigurationError} for an option that is unknown or wrong. */
function checkRun(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions,
): void {
  checkIsObject('runSubagent(config)', config, EXAMPLE);
  readable('runSubagent(config)', config);
  check('runSubagent(…, task)', taskSchema, task);
  checkIsObject('runSubagent(…, options)', options, EXAMPLE);
  check('runSubagent(…, options)', optionsSchema, options);
}

interface Scope {
  readonly delegation: Delegation;
  readonly host: Host;
}

const scopes = new WeakMap<Runtime, Scope>();

/** The runs of one runtime count together, and know nothing of each other. */
function scopeOf(runtime: Runtime): Scope {
  const known = scopes.get(runtime);
  if (known) return known;
  const { environment, inspect, supervisor, onUnfoldable } = runtime;
  const id = environment.ids.next('runs');
  const journal = journalOfPassing(runtime);
  const host = createHost({ environment, journal, inspect, onUnfoldable });
  const limits = {
    ...defaultSessionLimits,
    maxConcurrentPerSession: Number.MAX_SAFE_INTEGER,
    maxLivePerSession: 100_000,
    maxTotalPerSession: Number.MAX_SAFE_INTEGER,
    // Whoever started a run has its result.
    stateRetentionMs: 0,
  };
  const nobody = new ProgramPorts({
    host,
    model: undefined,
    handlers: {},
    answersBySend: false,
    tell() {},
    answer() {},
  });
  const delegation = new Delegation({ id, supervisor, limits, ports: nobody });
  supervisor.open(id, limits);
  const scope = { delegation, host };
  scopes.set(runtime, scope);
  return scope;
}
