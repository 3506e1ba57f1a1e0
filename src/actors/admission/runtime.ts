// The resources that the sessions of a process share: the environment, the journal, the limits.

import type { InspectionEvent } from 'xstate';
import { z } from 'zod';
import {
  aFunction,
  anObject,
  check,
  checkEnvironment,
  type ChecksOf,
} from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { wallTime, type Clock, type Environment } from '../ports/environment.ts';
import type { Price } from '../contracts/usage.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { Journal } from '../ports/journal.ts';
import { isMemoryJournal, memoryJournal } from '../runtime/memory-journal.ts';
import type { SnapshotPolicy } from '../runtime/scope-journal.ts';
import type { OnUnfoldable } from '../runtime/quarantine.ts';
import { DEFAULT_MAX_TOTAL_ACTIVE } from './limits.ts';
import { Supervisor } from './supervisor.ts';

/** The options of `createRuntime`. */
export interface RuntimeOptions {
  /** The source of time and chance: `nodeEnvironment()` of `offstage/node`, or a simulated one in tests. */
  readonly environment: Environment;
  /** @defaultValue `memoryJournal()` */
  readonly journal?: Journal;
  /**
   * The engine that runs the steps of subagents, and the tools, with `runs: 'jobs'`: `restateJobs(…)`, `temporalJobs(…)`, or
   * `localJobs(…)`. @defaultValue none: this process runs them
   */
  readonly jobs?: Jobs;
  /**
   * Returns the cost of a model call: `Outcome.usage.cost` sums costs up, and `budget.cost` limits them. An error, or a
   * value that is not a number of at least 0, is reported; a subagent with a `budget.cost` then counts it as used up.
   * @defaultValue none: only relays that report costs have any, and `budget.cost` is refused for any other subagent
   */
  readonly price?: Price;
  /**
   * The number of subagents in `running` at the same time, over all sessions; may be `Infinity`.
   * @defaultValue 50
   */
  readonly maxTotalActive?: number;
  /** Called with every inspection event of every session. */
  readonly inspect?: (event: InspectionEvent) => void;
  /** When sessions, and services of programs, write snapshots, which replace the folding from the first entry. */
  readonly snapshots?: Partial<SnapshotPolicy>;
  /**
   * How to treat a session, a program's service or a subagent whose journal has an entry that cannot be folded. `set_aside`:
   * the unit continues without the entry, which the journal records (`entry.set_aside`), and the error is reported. `lose`:
   * the unit ends as lost, with the entry as the reason; the next one with its id starts empty. @defaultValue 'set_aside'
   */
  readonly onUnfoldable?: OnUnfoldable;
}

/** The shared resources of sessions: time, journal, engine, prices, limits and inspection. */
export interface Runtime {
  /** Time, ids and chance. */
  readonly environment: Environment;
  /** Keeps the sessions and runs. */
  readonly journal: Journal;
  /** Does the steps of the subagents; undefined: they are done in this process. */
  readonly jobs: Jobs | undefined;
  /** Returns what a model call costs. */
  readonly price: Price | undefined;
  /** Holds the limits that all sessions share. */
  readonly supervisor: Supervisor;
  /** Receives the inspection events of every actor. */
  readonly inspect: ((event: InspectionEvent) => void) | undefined;
  /** The rule by which the journal keeps snapshots of scopes. */
  readonly snapshots: SnapshotPolicy;
  /** Decides about an entry that this version cannot apply. */
  readonly onUnfoldable: OnUnfoldable;
}

const DEFAULT_AFTER_ENTRIES = 1000;

const bringsSteps = z.looseObject({ steps: z.looseObject({ stepsBy: z.literal('jobs') }) });
const optionsSchema = z.strictObject({
  environment: z.unknown(),
  journal: anObject('a journal such as memoryJournal()', 'append', 'read').optional(),
  jobs: anObject('jobs such as those of localJobs({ … })', 'run', 'cancel')
    .refine(
      (jobs) => bringsSteps.safeParse(jobs).success,
      'expected `steps: stepJobs` of offstage/jobs in the engine',
    )
    .optional(),
  price: aFunction.optional(),
  maxTotalActive: z.unknown().optional(),
  inspect: aFunction.optional(),
  // `createRuntime` checks it, with its default.
  onUnfoldable: z.unknown().optional(),
  snapshots: z
    .strictObject({
      afterEntries: z.unknown().optional(),
      trim: z.unknown().optional(),
    } satisfies ChecksOf<SnapshotPolicy>)
    .optional(),
} satisfies ChecksOf<RuntimeOptions>);

/**
 * Returns the journal for work without a name, which cannot be resumed. If the given journal keeps entries until a caller
 * claims or forgets their scope by name, which would never happen here, this is a journal in memory.
 */
export function journalOfPassing({ journal }: Runtime): Journal {
  const stays = journal.claim !== undefined || journal.forget !== undefined;
  return stays && !isMemoryJournal(journal) ? memoryJournal() : journal;
}

/** Returns the environment with the clock that the journal's processes share; this clock never goes back either. */
function withSharedClock(environment: Environment, journal: Journal): Environment {
  if (!journal.clockOffsetMs) return environment;
  const { clock, scheduler, ids, random } = environment;
  const offsetMs = (): number => journal.clockOffsetMs?.() ?? 0;
  let last = clock.now();
  let latest = last + offsetMs();
  const now = (): number => {
    const own = clock.now();
    // When the offset falls, the time continues from the latest value.
    latest = Math.max(own + offsetMs(), latest + (own - last));
    last = own;
    return latest;
  };
  const shared: Clock = { now, wall: () => wallTime(clock) + offsetMs() };
  return { clock: shared, scheduler, ids, random };
}

/** Returns whether a number is whole and above 0, or Infinity. */
const isLimit = (value: number): boolean =>
  value >= 1 && (Number.isInteger(value) || value === Infinity);

/**
 * Creates the resources that sessions share. A session that gets none creates its own.
 * @throws {ConfigurationError} for a limit that is not a whole number above 0, or an invalid policy.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  check('createRuntime(options)', optionsSchema, options);
  checkEnvironment('createRuntime(options): environment', options.environment);
  const { maxTotalActive = DEFAULT_MAX_TOTAL_ACTIVE } = options;
  if (!isLimit(maxTotalActive))
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`maxTotalActive\` to be a whole number above 0, got ${String(maxTotalActive)}`,
    );
  const snapshots = {
    // A journal that ends with the process needs no snapshots.
    afterEntries: options.journal ? DEFAULT_AFTER_ENTRIES : Infinity,
    trim: false,
    ...withoutUndefined(options.snapshots ?? {}),
  };
  const { afterEntries, trim } = snapshots;
  if (!isLimit(afterEntries))
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`snapshots.afterEntries\` to be a whole number above 0, got ${String(afterEntries)}`,
    );
  if (typeof trim !== 'boolean')
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`snapshots.trim\` to be true or false, got ${String(trim)}`,
    );
  const { onUnfoldable = 'set_aside', journal = memoryJournal() } = options;
  if (trim && journal.trim === undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'Expected a `journal` with trim() beside `snapshots.trim`, got one that keeps every entry',
    );
  check(
    'createRuntime',
    z.object({ onUnfoldable: z.enum(['set_aside', 'lose'], 'expected `set_aside` or `lose`') }),
    { onUnfoldable },
  );
  return {
    environment: withSharedClock(options.environment, journal),
    journal,
    jobs: options.jobs,
    price: options.price,
    supervisor: new Supervisor(maxTotalActive),
    inspect: options.inspect,
    snapshots,
    onUnfoldable,
  };
}
