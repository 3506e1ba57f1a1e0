// Prepares the results of subagents for their readers. It stores large outputs in working memory, checks claims,
// records the details of a failed run for a developer, and briefs later subagents on earlier work.
//
// Owns:     the options of a scope for these steps, the order in which the steps process an outcome, and their time
//           limit.
// Does not: know the subagents (its callers pass the facts about each one) or decide whether a run succeeded (its
// machine does).
//
// Invariants
//   SETTLE-OUTCOME-1. The result is always an outcome with the same status. If a step fails, its error is reported and
//       its part of the outcome is missing.
//   SETTLE-OUTCOME-2. Without a judge and with nothing to store, `settle` returns synchronously.
//   SETTLE-OUTCOME-3. Every part of an outcome that a model reads has at most `maxInlineBytes`.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import type {
  ClaimVerification,
  FailureDetails,
  FailureReason,
  LastTool,
  LedgerEntry,
  Outcome,
  ProgressLine,
  UnfinishedOutcome,
} from '../actors/contracts/outcome.ts';
import type { SubagentTask } from '../actors/contracts/task.ts';
import type { NoteWriter } from '../actors/notes/note-marks.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import type { Host } from '../actors/runtime/host.ts';
import { inTime, raceAbort, raceTime, type TimeLimit } from '../values/race-abort.ts';
import type { Briefing } from '../actors/subagent/instance.ts';
import type { ReturnedValue, SubagentHandle } from '../actors/subagent/subagent-ports.ts';
import { namespaceOf } from '../memory/keys.ts';
import {
  isLargeValue,
  keepLargeOutput,
  largeOutput,
  type LargeOutputOptions,
  memoryReaderIn,
} from '../memory/large-output.ts';
import { speakable } from '../memory/speakable.ts';
import { aFunction, anObject, type ChecksOf } from '../values/checks.ts';
import { clip } from '../values/clip.ts';
import { ConfigurationError, TimeoutError } from '../values/errors.ts';
import { asJson, isLongerThan } from '../values/json.ts';
import { addUsage, type ModelCalls, type Usage } from '../actors/contracts/usage.ts';
import { modelAccount } from '../actors/model/model-account.ts';
import { judgeClaims, type ClaimJudge } from './judge-claims.ts';
import {
  handOver,
  inputKeys,
  missingInputs,
  priorResults,
  priorWorkSection,
  readable,
  withPriorWork,
  type EndedSubagent,
} from './prior-work.ts';
import { effectsOf, verifyClaims } from './verify-claims.ts';
import { DEFAULT_MAX_OUTPUT_BYTES } from '../actors/model/tool-run.ts';

/** The options of a scope for outputs and outcomes. */
export interface OutcomeOptions {
  /** Stores large outputs, results and failure details. Without a memory, they are truncated and marked as such. */
  readonly workingMemory?: WorkingMemory;
  /**
   * A larger value, in bytes of UTF-8, is stored in working memory. The model then receives an excerpt, with a note on
   * how to read the rest. At least 1024. @defaultValue 32768 with a working memory, 262144 without
   */
  readonly maxInlineBytes?: number;
  /** Checks the claims in a result in addition to the runtime's rules: `modelClaimJudge(…)`. */
  readonly claimJudge?: ClaimJudge;
}

export const outcomeChecks = {
  workingMemory: anObject('a working memory such as workingMemory()', 'save', 'get').optional(),
  // Checked by `OutcomeProcessor`.
  maxInlineBytes: z.unknown().optional(),
  claimJudge: aFunction.optional(),
} satisfies ChecksOf<OutcomeOptions>;

/** Separates these options from all others. */
export function splitOutcomeOptions<T extends OutcomeOptions>(
  options: T,
): [OutcomeOptions, Omit<T, keyof OutcomeOptions>] {
  const { workingMemory, maxInlineBytes, claimJudge, ...others } = options;
  return [{ workingMemory, maxInlineBytes, claimJudge }, others];
}

const DEFAULT_MAX_INLINE_BYTES = 32_768;

/** The tools by name, as the app's author defined them. */
type Tools = Readonly<Record<string, unknown>>;

/** The facts about an ended subagent that are not in its record. */
export interface EndedWork {
  /** The subagent's place in working memory. */
  readonly owner: MemoryOwner;
  readonly startedAt: number;
  readonly tools: Tools;
  /** The tools of the agent that reads the result. */
  readonly readerTools: Tools;
  /** Oldest first. */
  readonly progress: readonly ProgressLine[];
}

export interface NewWork {
  readonly subagentId: string;
  readonly task: SubagentTask;
  /** The agent that assigns the task. */
  readonly giver: MemoryOwner;
  /** The tools of the subagent, as the app's author defined them. */
  readonly tools: Tools;
  /** The user's utterance that led to the subagent, or null if no utterance did. */
  readonly request: string | null;
  /** The earlier subagents that `giver` can see, oldest first. */
  readonly ended: readonly EndedSubagent[];
  /** Writes the notes that the subagent receives. */
  readonly notes: NoteWriter;
}

export class OutcomeProcessor {
  readonly #host: Host;
  readonly #memory: WorkingMemory | undefined;
  readonly #maxInlineBytes: number;
  readonly #judge: ClaimJudge | undefined;
  readonly #calls: ModelCalls | undefined;

  /** @throws {ConfigurationError} if `maxInlineBytes` is not a whole number ≥ 1024. */
  /** @param calls The conversation's usage account. Without it, the outcome's usage includes the judge's. */
  constructor(
    host: Host,
    { workingMemory, maxInlineBytes, claimJudge }: OutcomeOptions,
    calls?: ModelCalls,
  ) {
    this.#calls = calls;
    const max =
      maxInlineBytes ?? (workingMemory ? DEFAULT_MAX_INLINE_BYTES : DEFAULT_MAX_OUTPUT_BYTES);
    if (!Number.isInteger(max) || max < 1024)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `Expected \`maxInlineBytes\` to be a whole number ≥ 1024, got \`${String(max)}\``,
      );
    this.#host = host;
    this.#memory = workingMemory;
    this.#maxInlineBytes = max;
    this.#judge = claimJudge;
  }

  get hasMemory(): boolean {
    return this.#memory !== undefined;
  }

  /** Returns whether `keepLarge` may replace a value. */
  isLarge(value: JSONValue): boolean {
    return isLargeValue(value, this.#maxInlineBytes);
  }

  /** Returns a tool's return value in the form in which it is stored and read. Never rejects. */
  async keepLarge(
    owner: MemoryOwner,
    tools: Tools,
    { callId, toolName, part, value }: Omit<ReturnedValue, 'signal'>,
  ): Promise<JSONValue> {
    // The tool reads working memory. If its output were stored, reading would never end.
    if (memoryReaderIn({ [toolName]: tools[toolName] }) !== null) return value;
    const { environment, report } = this.#host;
    return inTime(
      (signal) =>
        keepLargeOutput(value, {
          memory: this.#memory,
          owner,
          key: outputKey(toolName, callId, part),
          maxInlineBytes: this.#maxInlineBytes,
          readWith: memoryReaderIn(tools),
          report,
          signal,
        }),
      memoryTime(environment),
    );
  }

  /** Returns the outcome as others read it, either synchronously or as a promise. The promise never rejects. */
  settle(
    { definition, task }: SubagentHandle,
    { owner, startedAt, tools, readerTools, progress }: EndedWork,
    outcome: Outcome,
  ): Outcome | Promise<Outcome> {
    const { environment, report } = this.#host;
    const run = {
      owner,
      tools,
      readWith: memoryReaderIn(readerTools),
      description: task.description,
      startedAt,
      endedAt: environment.clock.now(),
      maxSteps: definition.maxSteps,
      timeoutMs: definition.timeout,
      progress,
    };
    const account = this.#calls ? null : modelAccount(this.#host);
    const settled = settleOutcome(outcome, run, {
      memory: this.#memory,
      maxInlineBytes: this.#maxInlineBytes,
      judge: this.#judge,
      calls: this.#calls ?? account?.calls,
      environment,
      report,
    });
    if (!account || !('then' in settled)) return settled;
    return settled.then((settledLater) => withUsage(settledLater, account.used()));
  }

  /**
   * Describes which `inputs` in these arguments `giver` cannot read. Returns null if `giver` can read all of them, or
   * if the memory failed.
   */
  async missingInputs(
    args: Readonly<Record<string, unknown>>,
    giver: MemoryOwner,
  ): Promise<string | null> {
    const memory = this.#memory;
    const keys = inputKeys(args);
    if (!memory || keys.length === 0) return null;
    const { environment, report } = this.#host;
    try {
      return await raceTime(() => missingInputs(keys, giver, memory), memoryTime(environment));
    } catch (error) {
      report(error, 'working memory');
      return null;
    }
  }

  /**
   * Adds the earlier work to the briefing. If the memory fails, only the inputs and the keys are missing.
   * @throws {ConfigurationError} `INPUT_NOT_FOUND`.
   */
  async withLineage(briefing: Briefing, work: NewWork): Promise<Briefing> {
    const { subagentId, task, giver, tools, request, ended, notes } = work;
    const memory = this.#memory;
    const reader = memoryReaderIn(tools) === null ? undefined : memory;
    const orElse = <T>(instead: T) => {
      return (error: unknown): T => {
        // If an input does not exist, `giver` must correct its call.
        if (error instanceof ConfigurationError) throw error;
        this.#host.report(error, 'working memory');
        return instead;
      };
    };
    const inputs = memory
      ? await raceTime(
          () => handOver(inputKeys(task.args), giver, subagentId, memory),
          memoryTime(this.#host.environment),
        ).catch(orElse([]))
      : [];
    const receiver = { sessionId: giver.sessionId, path: [...giver.path, subagentId] };
    const known = priorResults(ended);
    const unnamed = known.map((result) => ({ ...result, reference: null, saved: [] }));
    const results = await raceTime(
      () => readable(known, giver, receiver, reader),
      memoryTime(this.#host.environment),
    ).catch(orElse(unnamed));
    const prior = { request, inputs, results, canRead: reader !== undefined };
    return withPriorWork(briefing, priorWorkSection(prior, task.description), notes);
  }
}

const MAX_ID_CHARS = 100;

/** Every attempt at the call uses the same key. */
function outputKey(toolName: string, callId: string, part: ReturnedValue['part']): string {
  const id = callId.replace(/[^\w-]/g, '_').slice(0, MAX_ID_CHARS);
  return `outputs/${toolName}-${id}${part === 'read' ? '-read' : ''}`;
}

/** The facts about an ended run. */
export interface EndedRun extends RunFacts {
  /** The subagent's place in working memory. */
  readonly owner: MemoryOwner;
  /** The run's tools, as the app's author defined them. They may declare `effects`. */
  readonly tools: Readonly<Record<string, unknown>>;
  /** The name of the reader's tool that reads working memory, or null if there is none. */
  readonly readWith: string | null;
}

export interface OutcomeSettings {
  readonly memory?: WorkingMemory | undefined;
  /** A larger part, in bytes of UTF-8, is stored in working memory. */
  readonly maxInlineBytes: number;
  readonly judge?: ClaimJudge | undefined;
  readonly calls?: ModelCalls | undefined;
  readonly environment: Pick<Environment, 'scheduler'>;
  readonly report: (error: unknown, where: string) => void;
}

/** The key of the subagent's result in the subagent's namespace. The runtime stores the result there. */
const RESULT_KEY = 'final-result';
const PARTIAL_KEY = 'partial-result';
const FAILURE_KEY = 'failure-details';

const MAX_NOTES = 20;

/** Returns the outcome, or a promise that never rejects. */
export function settleOutcome(
  raw: Outcome,
  run: EndedRun,
  settings: OutcomeSettings,
): Outcome | Promise<Outcome> {
  const outcome: Outcome = raw.status === 'completed' ? verified(raw, run) : explained(raw, run);
  const { memory, judge } = settings;
  const hasToWait =
    memory !== undefined || isLarge(outcome, settings) || (judge && raw.status === 'completed');
  return hasToWait ? settle(outcome, run, settings) : outcome;
}

async function settle(
  outcome: Outcome,
  run: EndedRun,
  settings: OutcomeSettings,
): Promise<Outcome> {
  const { environment, memory, report } = settings;
  const judged = await withJudge(outcome, settings);
  const { owner, readWith } = run;
  const { maxInlineBytes } = settings;
  return inTime(async (signal) => {
    const keeping = { memory, owner, readWith, maxInlineBytes, report, signal };
    const bounded =
      judged.status === 'completed'
        ? await withBoundedResult(judged, keeping)
        : await withBoundedPartial(await withKeptDetails(judged, keeping), keeping);
    return withNotes(bounded, keeping);
  }, memoryTime(environment));
}

/** Adds the usage of the judge. */
function withUsage(outcome: Outcome, more: Usage): Outcome {
  const isNothing = more.totalTokens === 0 && more.cost === undefined;
  return isNothing ? outcome : { ...outcome, usage: addUsage(outcome.usage, more) };
}

function verified(outcome: Outcome, { tools }: EndedRun): Outcome {
  return withVerification(outcome, verifyClaims(outcome, effectsOf(tools)));
}

/** Adds the verification. If there are no claims, returns the outcome unchanged. */
function withVerification(outcome: Outcome, verification: ClaimVerification): Outcome {
  const { claims, incomplete } = verification;
  return claims.length === 0 && !incomplete ? outcome : { ...outcome, verification };
}

function explained(outcome: UnfinishedOutcome, run: EndedRun): Outcome {
  return { ...outcome, diagnostics: { ...failureDetails(outcome, run), reference: null } };
}

async function withJudge(
  outcome: Outcome,
  { judge, calls, environment, report }: OutcomeSettings,
): Promise<Outcome> {
  if (!judge || outcome.status !== 'completed') return outcome;
  const { text, toolLedger } = outcome;
  const known = outcome.verification ?? verifyClaims({ text, toolLedger });
  const verification = await judgeClaims(outcome, known, { judge, calls, environment, report });
  return withVerification(outcome, verification);
}

type Keeping = Omit<LargeOutputOptions, 'key'> & { readonly signal: AbortSignal };

function isLarge({ output, text, partial = '' }: Outcome, { maxInlineBytes }: OutcomeSettings) {
  const json = asJson(output);
  const all = [text, partial, json.ok ? json.text : ''];
  return all.some((part) => isLongerThan(part, maxInlineBytes));
}

async function withBoundedResult(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const isTooLong = (words: string): boolean => isLongerThan(words, keeping.maxInlineBytes);
  const { text } = outcome;
  const json = asJson(outcome.output);
  const output: JSONValue = json.ok ? json.value : text;
  const whole = typeof output === 'string' ? output : JSON.stringify(output);
  const [isOutputLarge, isTextLarge] = [isTooLong(whole), isTooLong(text)];
  const given = outcome.summary;
  const own = given !== undefined && isTooLong(given) ? speakable(given) : given;
  if (!isOutputLarge && !isTextLarge) return own === given ? outcome : { ...outcome, summary: own };
  // For structured output, the text is the output itself or a summary of it. The larger one of the two is stored.
  const large = isOutputLarge
    ? await largeOutput(output, whole, { ...keeping, key: RESULT_KEY })
    : await largeOutput(text, text, { ...keeping, key: RESULT_KEY });
  const summary = own ?? speakable(isOutputLarge ? output : text);
  const words = { text: isTextLarge ? shortened(summary, large) : text, summary };
  return outcome.status === 'completed' && isOutputLarge
    ? { ...outcome, ...words, output: large }
    : { ...outcome, ...words };
}

function shortened(
  summary: string,
  { originalBytes, reference }: { originalBytes: number; reference: string | null },
): string {
  const where = reference === null ? 'it is not kept' : `it is under ${reference}`;
  return `${summary}\n(This is a summary. The whole has ${originalBytes} bytes; ${where}.)`;
}

async function withBoundedPartial(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const { partial } = outcome;
  if (partial === undefined || !isLongerThan(partial, keeping.maxInlineBytes)) return outcome;
  const large = await largeOutput(partial, partial, { ...keeping, key: PARTIAL_KEY });
  return { ...outcome, partial: shortened(speakable(partial), large) };
}

async function withKeptDetails(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const { diagnostics } = outcome;
  const { memory, owner, report, signal } = keeping;
  if (!memory || !diagnostics) return outcome;
  try {
    const { reference: _, ...value } = diagnostics;
    const entry = { key: FAILURE_KEY, value, category: 'failure' };
    const answer = await raceAbort(memory.save(owner, entry), signal);
    if (answer.ok) return { ...outcome, diagnostics: { ...diagnostics, reference: answer.key } };
    report?.(new Error(answer.error.message), `failure details of ${namespaceOf(owner)}`);
  } catch (error) {
    report?.(error, `failure details of ${namespaceOf(owner)}`);
  }
  return outcome;
}

/** Adds the keys that the subagent has saved, so that other agents can continue its work. */
async function withNotes(outcome: Outcome, keeping: Keeping): Promise<Outcome> {
  const { memory, owner, report, signal } = keeping;
  if (!memory) return outcome;
  try {
    const filter = { prefix: namespaceOf(owner), limit: MAX_NOTES };
    const answer = await raceAbort(memory.list(owner, filter), signal);
    if (!answer.ok || answer.entries.length === 0) return outcome;
    return { ...outcome, notes: answer.entries.map(({ key }) => key) };
  } catch (error) {
    report?.(error, 'working memory');
    return outcome;
  }
}

/** The facts about a run that are not in its outcome. */
export interface RunFacts {
  readonly description: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly maxSteps: number;
  readonly timeoutMs: number;
  /** Oldest first. */
  readonly progress: readonly ProgressLine[];
}

const reasonOfCode: ReadonlyMap<string, FailureReason> = new Map([
  ['STEP_LIMIT', 'step_limit'],
  ['BUDGET_EXHAUSTED', 'budget'],
  ['INPUT_TIMEOUT', 'unanswered'],
]);

const RECENT = 10;

/** Returns the record of an unsuccessful run. */
export function failureDetails(outcome: UnfinishedOutcome, facts: RunFacts): FailureDetails {
  const { error, steps, toolLedger, partial, usage } = outcome;
  const last = toolLedger.at(-1);
  return {
    reason: reasonOf(outcome),
    code: error.code,
    message: clip(error.message, 1000),
    description: clip(facts.description, 500),
    steps,
    toolCalls: toolLedger.length,
    lastAssistantText: partial === undefined ? null : clip(partial, 2000),
    lastTool: last ? lastTool(last) : null,
    recentProgress: facts.progress
      .slice(-RECENT)
      .map(({ update, percent, at }) => ({ update: clip(update, 300), percent, at })),
    limits: { maxSteps: facts.maxSteps, timeoutMs: facts.timeoutMs },
    usage,
    startedAt: facts.startedAt,
    endedAt: facts.endedAt,
  };
}

function reasonOf({ status, error }: UnfinishedOutcome): FailureReason {
  if (status === 'timed_out') return 'timeout';
  if (status === 'cancelled' || status === 'lost') return status;
  return reasonOfCode.get(error.code) ?? 'exception';
}

function lastTool({ toolName, input, status, calledAt, settledAt }: LedgerEntry): LastTool {
  const json = asJson(input);
  return {
    name: toolName,
    args: clip(json.ok ? json.text : '', 1000),
    status,
    calledAt: calledAt ?? null,
    settledAt: settledAt ?? null,
  };
}

/** The time limit for the app's memory, which covers both facts and working memory. */
const MEMORY_TIMEOUT_MS = 5000;

/** Returns the time limit of a memory read or write. A later answer is ignored, and the error is reported. */
export function memoryTime({ scheduler }: Pick<Environment, 'scheduler'>): TimeLimit {
  return {
    timeoutMs: MEMORY_TIMEOUT_MS,
    scheduler,
    late: () =>
      new TimeoutError(`Expected the memory to answer within ${MEMORY_TIMEOUT_MS} ms`, {
        code: 'MEMORY_TIMEOUT',
      }),
  };
}
