// Processes the results of a scope's subagents for their readers: large outputs go to working memory, claims
// are checked, failures are recorded, and later subagents are told of earlier work.
//
// Owns:     the options of a scope for this.
// Does not: know the subagents: its callers pass the facts about each.

import type { JSONValue } from 'ai';
import { ConfigurationError } from '../values/errors.ts';
import { DEFAULT_MAX_OUTPUT_BYTES } from '../actors/model/tool-output.ts';
import type { ClaimJudge } from './judge-claims.ts';
import {
  handOver,
  inputKeys,
  missingInputs,
  priorResults,
  readable,
  withPriorWork,
  type EndedSubagent,
} from './lineage.ts';
import { priorWorkSection } from './prior-work.ts';
import type { NoteWriter } from '../actors/notes/note-marks.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import type { Host } from '../actors/runtime/host.ts';
import type { Briefing } from '../actors/subagent/instance.ts';
import type { Outcome, ProgressLine } from '../actors/contracts/outcome.ts';
import type { ReturnedValue, SubagentHandle } from '../actors/subagent/subagent-ports.ts';
import { inTime, raceTime } from '../actors/runtime/race-abort.ts';
import { keepLargeOutput } from '../memory/large-output.ts';
import { memoryTime } from '../memory/memory-time.ts';
import { memoryReaderIn } from '../memory/toolset.ts';
import type { OutcomeOptions } from './outcome-options.ts';
import { settleOutcome } from './settle-outcome.ts';
import type { SubagentTask } from '../actors/contracts/task.ts';

const DEFAULT_MAX_INLINE_BYTES = 32_768;

/** Tools by name, as their author wrote them. */
type Tools = Readonly<Record<string, unknown>>;

/** The facts about a subagent that has ended, beside its own record. */
export interface EndedWork {
  /** Its place in working memory. */
  readonly owner: MemoryOwner;
  readonly startedAt: number;
  readonly tools: Tools;
  /** The tools of the reader of its result. */
  readonly readerTools: Tools;
  /** Oldest first. */
  readonly progress: readonly ProgressLine[];
}

/** The facts about a subagent that begins. */
export interface NewWork {
  readonly subagentId: string;
  readonly task: SubagentTask;
  /** The agent that gives it the task. */
  readonly giver: MemoryOwner;
  /** Its tools, as their author wrote them. */
  readonly tools: Tools;
  /** The words of the user that led to it; null: no user asked for it. */
  readonly request: string | null;
  /** Its predecessors that the giver can see, oldest first. */
  readonly ended: readonly EndedSubagent[];
  /** Writes what it is told. */
  readonly notes: NoteWriter;
}

export class OutcomeProcessor {
  readonly #host: Host;
  readonly #memory: WorkingMemory | undefined;
  readonly #maxInlineBytes: number;
  readonly #judge: ClaimJudge | undefined;

  /** @throws {ConfigurationError} when `maxInlineBytes` is not a whole number ≥ 1024. */
  constructor(host: Host, { workingMemory, maxInlineBytes, claimJudge }: OutcomeOptions) {
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

  /** Returns a tool's return value in the form that is kept and read. Never rejects. */
  async keepLarge(
    owner: MemoryOwner,
    tools: Tools,
    { callId, toolName, part, value }: Omit<ReturnedValue, 'signal'>,
  ): Promise<JSONValue> {
    // A page of working memory would be stored and read again without end.
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

  /** Returns the outcome as others read it: at once, or as a promise. The promise never rejects. */
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
    return settleOutcome(outcome, run, {
      memory: this.#memory,
      maxInlineBytes: this.#maxInlineBytes,
      judge: this.#judge,
      environment,
      report,
    });
  }

  /**
   * Describes which `inputs` of these arguments `giver` cannot read; null if it can read all, or memory
   * failed.
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
   * Returns the briefing with the earlier work. If the memory fails, only the inputs and keys are missing.
   * @throws {ConfigurationError} `INPUT_NOT_FOUND`.
   */
  async withLineage(briefing: Briefing, work: NewWork): Promise<Briefing> {
    const { subagentId, task, giver, tools, request, ended, notes } = work;
    const memory = this.#memory;
    const reader = memoryReaderIn(tools) === null ? undefined : memory;
    const orElse = <T>(instead: T) => {
      return (error: unknown): T => {
        // An input that does not exist is for the giver to correct.
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

/** The key is the same for every attempt at the call. */
function outputKey(toolName: string, callId: string, part: ReturnedValue['part']): string {
  const id = callId.replace(/[^\w-]/g, '_').slice(0, MAX_ID_CHARS);
  return `outputs/${toolName}-${id}${part === 'read' ? '-read' : ''}`;
}
