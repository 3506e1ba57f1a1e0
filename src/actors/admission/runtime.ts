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
  /** The source of time and randomness: `nodeEnvironment()` of `offstage/node`, or a simulated one in tests. */
  readonly environment: Environment;
  /** @defaultValue `memoryJournal()` */
  readonly journal?: Journal;
  /**
   * The engine that runs the subagents' steps and tools that have `runs: 'jobs'`: `restateJobs(…)`, `temporalJobs(…)`,
   * or `localJobs(…)`. @defaultValue none: this process runs them
   */
  readonly jobs?: Jobs;
  /**
   * Returns the cost of a model call: `Outcome.usage.cost` is the sum of the costs, and `budget.cost` limits it. If it
   * throws, or returns a value that is not a number of at least 0, this is reported and the subagent's `budget.cost` is
   * then treated as used up.
   * @defaultValue none: only costs that relays report are known, and `budget.cost` is refused for all other subagents
   */
  readonly price?: Price;
  /**
   * The maximum number of subagents in the state `running` at the same time, across all sessions; may be `Infinity`.
   * @defaultValue 50
   */
  readonly maxTotalActive?: number;
  /** Called with every inspection event of every session. */
  readonly inspect?: (event: InspectionEvent) => void;
  /**
   * When sessions and programs' services write snapshots. With a snapshot, a later process does not have to fold all
   * entries.
   */
  readonly snapshots?: Partial<SnapshotPolicy>;
  /**
   * How the runtime handles a session, a program's service or a subagent whose journal contains an entry that cannot be
   * folded. `set_aside`: the unit continues without the entry, the journal records this (`entry.set_aside`), and the
   * error is reported. `lose`: the unit ends as lost, and the outcome names the entry; the next unit with its id starts
   * empty.
   * @defaultValue 'set_aside'
   */
  readonly onUnfoldable?: OnUnfoldable;
}

/** The resources that sessions share: time, journal, engine, prices, limits and inspection. */
export interface Runtime {
  /** Time, ids and randomness. */
  readonly environment: Environment;
  /** Stores the sessions and runs. */
  readonly journal: Journal;
  /** Runs the subagents' steps; undefined if this process runs them. */
  readonly jobs: Jobs | undefined;
  /** Returns the cost of a model call. */
  readonly price: Price | undefined;
  /** The limits that all sessions share. */
  readonly supervisor: Supervisor;
  /** Receives every actor's inspection events. */
  readonly inspect: ((event: InspectionEvent) => void) | undefined;
  /** When scopes write snapshots. */
  readonly snapshots: SnapshotPolicy;
  /** How an entry that this version cannot fold is handled. */
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
  onUnfoldable: z.unknown().optional(),
  snapshots: z
    .strictObject({
      afterEntries: z.unknown().optional(),
      trim: z.unknown().optional(),
    } satisfies ChecksOf<SnapshotPolicy>)
    .optional(),
} satisfies ChecksOf<RuntimeOptions>);

/**
 * Returns the journal for unnamed work, which cannot be resumed. If the given journal stores entries until a caller
 * claims or deletes their scope by name, this is an in-memory journal: unnamed work has no such caller.
 */
export function journalOfPassing({ journal }: Runtime): Journal {
  const stays = journal.claim !== undefined || journal.forget !== undefined;
  return stays && !isMemoryJournal(journal) ? memoryJournal() : journal;
}

/** Returns the environment with the clock that all processes of the journal share; this clock never goes backwards. */
function withSharedClock(environment: Environment, journal: Journal): Environment {
  if (!journal.clockOffsetMs) return environment;
  const { clock, scheduler, ids, random } = environment;
  const offsetMs = (): number => journal.clockOffsetMs?.() ?? 0;
  let last = clock.now();
  let latest = last + offsetMs();
  const now = (): number => {
    const own = clock.now();
    // If the offset decreases, the clock continues from its latest value.
    latest = Math.max(own + offsetMs(), latest + (own - last));
    last = own;
    return latest;
  };
  const shared: Clock = { now, wall: () => wallTime(clock) + offsetMs() };
  return { clock: shared, scheduler, ids, random };
}

/** Returns whether a number is a positive integer or Infinity. */
const isLimit = (value: number): boolean =>
  value >= 1 && (Number.isInteger(value) || value === Infinity);

/**
 * Creates the resources that sessions share. A session that is given none creates its own.
 * @throws {ConfigurationError} if a limit is not a whole number above 0, or a policy is invalid.
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
    // A journal that is lost when the process ends needs no snapshots.
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
