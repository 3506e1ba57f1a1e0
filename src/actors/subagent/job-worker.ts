// The worker's side of steps that are jobs. Runs a model call or a tool call with the same functions as a session.
//
// Owns:     the configurations by name, and the tools that a job may use.
// Does not: decide anything. The session decides on approvals, budgets, retries, output checks and the next step.
//
// Invariants
//   JOB-WORKER-1. A job uses only tools that the job names and the worker has.
//   JOB-WORKER-2. The worker refuses a job with an unknown configuration, tool or format without making a call. A
//       worker with another version may be able to run that job (JOBS-8).
//   JOB-WORKER-4. A tool receives an input only if the tool's schema in this worker accepts the model's arguments and
//       converts them to the same values as in the session. A call with any other input is refused as in JOB-WORKER-2.
//   JOB-WORKER-3. Unless its signal aborts, `do` resolves even if the model or the tool fails.

import type { LanguageModel, ToolSet } from 'ai';
import { z } from 'zod';
import { aFunction, check, checkEnvironment, type ChecksOf } from '../../values/checks.ts';
import { codeOf, ConfigurationError, messageOf, OffstageError } from '../../values/errors.ts';
import { asJson } from '../../values/json.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { SubagentService } from '../contracts/service-types.ts';
import { withCaller } from '../model/caller.ts';
import { aModel, type Structured } from '../model/model.ts';
import { runModelStep, toStepError } from '../model/model-step.ts';
import { structuredOutput } from '../model/output.ts';
import { subagentOf } from '../model/tool-flags.ts';
import { runToolCall } from '../model/tool-run.ts';
import type { PreparedTools, ToolEntry } from '../model/tools.ts';
import type { Environment } from '../ports/environment.ts';
import type { JobEnd, JobHandler } from '../ports/jobs.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { yieldsTheSame } from './call-judgement.ts';
import { checkSubagentConfig } from './config.ts';
import { toolsOf } from './instance.ts';
import {
  readStepJob,
  type ModelJob,
  type StepJob,
  type StepSaid,
  type ToolJob,
} from './step-jobs.ts';
import { reporter } from '../../values/reporter.ts';

/** The options of `jobWorker`. */
export interface JobWorkerOptions {
  /** The source of time and randomness: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** The configurations of the subagents whose steps the worker runs, identified by their `name`. */
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /**
   * Tools that subagents inherit from others (`spawn_subagent` with `tools`), by name. A configuration's own tools take
   * precedence. @defaultValue none
   */
  readonly tools?: Readonly<Record<string, unknown>>;
  /** The model for configurations that do not specify one. */
  readonly model?: LanguageModel;
  /**
   * Receives errors that do not end a job: a job that the worker refuses, a provider that refuses structured output, a
   * preliminary output that is not JSON.
   */
  readonly onError?: (error: unknown, where: string) => void;
}

const optionsSchema = z.strictObject({
  environment: z.unknown(),
  configs: z.record(z.string(), z.unknown()),
  tools: z.record(z.string(), z.unknown()).optional(),
  model: aModel.optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<JobWorkerOptions>);

/** The steps that one configuration can run in this worker. */
interface Known {
  readonly definition: SubagentDefinition;
  readonly tools: PreparedTools;
}

/**
 * Creates the job handler of a worker. Pass it to the engine's worker (`restateJobs`, `temporalJobs`) or to
 * `localJobs`. Deploy it with the sessions' configurations.
 * @throws {ConfigurationError} if an option is unknown or invalid, or if two configurations have the same name.
 */
export function jobWorker(options: JobWorkerOptions): JobHandler {
  check('jobWorker(options)', optionsSchema, options);
  checkEnvironment('jobWorker(options): environment', options.environment);
  return jobHandler(options);
}

const WHERE = 'jobWorker(options)';

function jobHandler(options: JobWorkerOptions): JobHandler {
  const workers = new Map<string, Known>();
  const report = reporter(options.onError);
  for (const [name, config] of Object.entries(options.configs)) learn(name, config);
  /** The tools that subagents may inherit. */
  const shared = toolsOf(
    checkSubagentConfig({ name: WHERE, instructions: '', tools: options.tools ?? {} }, WHERE),
  );

  /** Adds a configuration, and those that its tools run as subagents. */
  function learn(path: string, config: SubagentConfig): void {
    const definition = checkSubagentConfig(config, `jobWorker(options).configs.${path}`);
    const { name, source } = definition;
    const known = workers.get(name);
    if (known) {
      if (known.definition.source === source) return;
      throw new ConfigurationError(
        'INVALID_OPTION',
        `jobWorker(options).configs.${path}: expected one configuration named "${name}", got two`,
      );
    }
    if (definition.relay) return;
    workers.set(name, { definition, tools: toolsOf(definition) });
    for (const tool of Object.values(definition.tools)) {
      const nested = subagentOf(tool);
      if (nested) learn(`${path}.tools`, nested);
    }
  }

  /** JOB-WORKER-1, JOB-WORKER-2 */
  function allowed({ config, tools: names }: StepJob): Known {
    const known = workers.get(config);
    if (!known)
      throw new OffstageError(
        'NOT_RECOVERABLE',
        `This worker has no configuration "${config}": expected one of ${quoted([...workers.keys()])}`,
      );
    const modelTools: ToolSet = {};
    const execution = new Map<string, ToolEntry>();
    for (const name of names) {
      const source = [known.tools, shared].find(
        ({ modelTools: offered }) => offered && Object.hasOwn(offered, name),
      );
      const offered = source?.modelTools?.[name];
      if (offered === undefined)
        throw new OffstageError(
          'NOT_RECOVERABLE',
          `This worker has no tool "${name}" for ${config}: expected it among \`configs\` or \`tools\` of jobWorker(…)`,
        );
      modelTools[name] = offered;
      const entry = source?.execution.get(name);
      if (entry) execution.set(name, entry);
    }
    const isEmpty = names.length === 0;
    return {
      definition: known.definition,
      tools: { modelTools: isEmpty ? undefined : modelTools, execution },
    };
  }

  async function think(
    { instructions, messages, final, maxOutputTokens, stream }: ModelJob,
    { definition, tools }: Known,
    signal: AbortSignal,
    tell: ((said: StepSaid) => void) | undefined,
  ): Promise<JobEnd> {
    const { environment } = options;
    const model = definition.model ?? options.model;
    if (model === undefined)
      return failed(
        'NO_MODEL',
        `${definition.name}: expected a model in its configuration, or in jobWorker({ model }), got none`,
      );
    try {
      const response = await runModelStep({
        caller: { name: definition.name },
        model,
        instructions,
        messages,
        tools,
        ...(maxOutputTokens === undefined ? {} : { settings: { maxOutputTokens } }),
        structured: final ? null : formatOf(definition, model, tools),
        ...(final && tools.modelTools ? { toolChoice: 'none' as const } : {}),
        signal,
        said: stream ? tell : undefined,
        ids: environment.ids,
        clock: environment.clock,
      });
      const written = asJson(response);
      return written.ok
        ? { done: written.text }
        : failed('MALFORMED_RESPONSE', `The model's answer is not JSON: ${written.message}`, true);
    } catch (error) {
      if (signal.aborted) throw error;
      const { code, message, retryable, retryAfterMs } = toStepError(error);
      return {
        failed: {
          code,
          message,
          retryable,
          ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        },
      };
    }
  }

  function formatOf(
    { outputSchema, completion, structured, name }: SubagentDefinition,
    model: LanguageModel,
    tools: PreparedTools,
  ): Structured | null {
    if (outputSchema === undefined || completion === 'tool' || structured === 'off') return null;
    // Some provider packages use a tool of this name to request JSON.
    if (tools.execution.has('json')) return null;
    return structuredOutput(model, outputSchema, (error) =>
      report(error, `structured output of ${name}`),
    );
  }

  async function act(
    { toolName, callId, input, raw, timeoutMs, caller, messages }: ToolJob,
    definition: SubagentDefinition,
    tool: ToolEntry,
    signal: AbortSignal,
    tell: ((said: StepSaid) => void) | undefined,
  ): Promise<JobEnd> {
    const outcome = await raceAbort(
      runToolCall({
        tool,
        callId,
        input,
        raw,
        messages,
        signal,
        timeoutMs,
        idempotencyKey: caller.idempotencyKey,
        context: withCaller(definition.toolsContext?.[toolName], {
          ...caller,
          service: noService(toolName),
        }),
        environment: options.environment,
        onPreliminary: (output) => tell?.({ type: 'preliminary', output }),
        report,
      }),
      signal,
    );
    signal.throwIfAborted();
    return { done: JSON.stringify(outcome) };
  }

  return {
    async do(job, signal, say) {
      signal.throwIfAborted();
      const tell = say && ((said: StepSaid): void => say(JSON.stringify(said)));
      let work: () => Promise<JobEnd>;
      try {
        const step = readStepJob(job);
        const known = allowed(step);
        if (step.kind === 'model') work = () => think(step, known, signal, tell);
        else {
          const called = calledIn(known, step.toolName);
          // JOB-WORKER-4
          if (!(await raceAbort(yieldsTheSame(called, step), signal)))
            throw new OffstageError(
              'NOT_RECOVERABLE',
              `The input of "${step.toolName}" is not as the tool of this worker takes it`,
            );
          work = () => act(step, known.definition, called, signal, tell);
        }
      } catch (error) {
        signal.throwIfAborted();
        report(error, job.name);
        return { refused: { code: codeOf(error, 'NOT_RECOVERABLE'), message: messageOf(error) } };
      }
      return work();
    },
  };
}

/** JOB-WORKER-2 */
function calledIn({ definition, tools }: Known, toolName: string): ToolEntry {
  const tool = tools.execution.get(toolName);
  if (tool && !tool.delegates && !tool.role) return tool;
  throw new OffstageError(
    'NOT_RECOVERABLE',
    `"${toolName}" of ${definition.name} is no tool for a job at this worker`,
  );
}

/** Returns the subagent service that tools in a worker receive. A worker has no subagents, so every method throws. */
function noService(toolName: string): SubagentService {
  const refuse = (): never => {
    throw new OffstageError(
      'NO_SERVICE',
      `${toolName} runs as a job, apart from its session: leave \`runs: 'here'\` on a tool that talks to subagents`,
    );
  };
  return new Proxy({} as SubagentService, { get: refuse, has: () => false });
}

function failed(code: string, message: string, retryable = false): JobEnd {
  return { failed: { code, message, retryable } };
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
