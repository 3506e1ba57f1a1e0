// Replays a session entry by entry: the reaction of its machines to each, without its app, models, tools or
// keys, and without a network.
//
// Owns:     the assignment of entries to units, and the successive lives of one scope.
// Does not: fold (the units that run live do), print, or compare.
//
// Invariants
//   REPLAY-SESSION-1. The same entries lead to the same steps, in any process.
//   REPLAY-SESSION-2. The replay holds no more than the session would hold, and the views of subagents that
//       have ended.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { shown } from '../../values/plain-checks.ts';
import { ConfigurationError, isA, messageOf, OffstageError } from '../../values/errors.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { misshapen } from '../runtime/event-shapes.ts';
import { isSetAside } from '../runtime/set-aside.ts';
import { isOpening } from '../session/unit/session-entries.ts';
import { SUBAGENT_SHAPES } from '../subagent/event-shapes.ts';
import { SPAWNED } from '../subagent/spawned-event.ts';
import { Facts, itemFact, sessionFacts, subagentFact, type Changes } from './facts.ts';
import { ReplayedSession } from './replayed-session.ts';
import { ReplayedSubagent } from './replayed-subagent.ts';
import { emptySession, type ReplaySubagent, type ReplayView } from './replay-view.ts';
import { snapshotIn } from '../session/lifecycle/session-journal.ts';

/** The actor under which a program's service records the results that the program has received. */
const OF_PROGRAM = 'service';

export interface ReplayStep {
  /** Counts from 1 over the whole replay. */
  readonly number: number;
  readonly entry: JournalEntry;
  /** Whether this version of Offstage would accept the entry here. It was accepted when it was written. */
  readonly isAccepted: boolean;
  /**
   * The reason why the entry is not folded; null if it is. Every process skips an entry that is set aside.
   */
  readonly setAside: string | null;
  /** The changed facts, such as `question sub_1:1` or `connection`, with their new values. */
  readonly changes: Changes;
  /** The whole session after this entry. Computed when it is read; read it before taking the next step. */
  readonly view: ReplayView;
}

const entriesSchema = z.custom<Iterable<JournalEntry>>(
  (value) => typeof (value as Partial<Iterable<unknown>> | null)?.[Symbol.iterator] === 'function',
  'expected the entries of a scope',
);

/**
 * Folds the entries of one scope again, one per step: `journal.read({ scope })`, from the first entry on.
 * Entries of services are skipped: the other entries contain their effects.
 *
 * @throws {ConfigurationError} `INVALID_OPTION` for entries of several scopes.
 * @throws {OffstageError} at the step where it cannot continue: `JOURNAL_CUT`, `JOURNAL_GAP`,
 *   `JOURNAL_VERSION` for entries of another version, `REPLAY_FAILED`.
 */
export function* replaySession(entries: Iterable<JournalEntry>): Generator<ReplayStep, void> {
  check('replaySession', entriesSchema, entries);
  const all = listed(entries);
  const other = all.findIndex((entry) => !isEntry(entry));
  if (other >= 0)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `replaySession: expected the entries of a scope, got ${shown(all[other])} among them`,
    );
  const replay = new Replay(setAsideReasons(all));
  for (const entry of all) yield replay.take(entry);
}

/** A value that cannot be iterated, such as a transferred typed array, throws when iteration begins. */
function listed(entries: Iterable<JournalEntry>): readonly JournalEntry[] {
  try {
    return [...entries];
  } catch (cause) {
    throw new ConfigurationError(
      'INVALID_OPTION',
      `replaySession: the entries cannot be read: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function isEntry(entry: JournalEntry | null | undefined): boolean {
  try {
    return typeof entry?.event?.type === 'string';
  } catch {
    return false;
  }
}

/** Returns why later entries set entries aside, by their unit and number. */
function setAsideReasons(entries: readonly JournalEntry[]): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  for (const { unit, event } of entries)
    if (isSetAside(event)) reasons.set(positionOf(unit, event.seq), event.reason);
  return reasons;
}

const positionOf = (unit: string, seq: number): string => `${seq} ${unit}`;

interface Taken {
  readonly isAccepted: boolean;
  readonly setAside: string | null;
  readonly changes: Changes;
}

class Replay {
  readonly #facts = new Facts();
  /** A subagent that has ended is only a view. */
  readonly #subagents = new Map<string, ReplayedSubagent | ReplaySubagent>();
  #session: ReplayedSession | null = null;
  /** Subagents whose first entry cannot be read, so that there is no view of them. */
  readonly #unknown = new Set<string>();
  readonly #aside: ReadonlyMap<string, string>;
  #scope: string | null = null;
  #number = 0;

  /** @param aside The reasons why later entries set entries aside. */
  constructor(aside: ReadonlyMap<string, string>) {
    this.#aside = aside;
  }

  take(entry: JournalEntry): ReplayStep {
    this.#checkScope(entry);
    this.#number += 1;
    const number = this.#number;
    try {
      const { isAccepted, setAside, changes } = this.#taken(entry);
      const viewOf = (): ReplayView => this.#viewAt(entry.at);
      return {
        number,
        entry,
        isAccepted,
        setAside,
        changes,
        get view() {
          return viewOf();
        },
      };
    } catch (error) {
      if (isA(error, OffstageError)) throw error;
      const { event, actor, unit } = entry;
      throw new OffstageError(
        'REPLAY_FAILED',
        `Entry ${number} (\`${event.type}\` for ${actor} of ${unit}): ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  #taken(entry: JournalEntry): Taken {
    const { unit, scope, actor } = entry;
    const isOfService = unit.startsWith(`${scope}/`) || (unit === scope && actor === OF_PROGRAM);
    if (isOfService) return { isAccepted: true, setAside: null, changes: {} };
    if (unit === scope) return this.#ofSession(entry);
    return this.#ofSubagent(entry);
  }

  #ofSession(entry: JournalEntry): Taken {
    if (isOpening(entry)) {
      // A new life starts without the state of the previous one.
      this.#facts.clear();
      this.#subagents.clear();
      this.#session = new ReplayedSession(entry);
    } else if (!this.#session) {
      // The entries before the snapshot are not kept.
      this.#session = new ReplayedSession(entry);
      const known = snapshotIn(entry)?.delegation.subagents ?? [];
      for (const record of known)
        this.#subagents.set(record.id, ReplayedSubagent.known(entry.scope, record));
    }
    const session = this.#session;
    this.#facts.forget('session', session.forgetWhatIsOver());
    const before = session.transcript;
    const { isAccepted, setAside } = session.take(entry, this.#reasonOf(entry));
    const { view, batches, transcript } = session;
    const changes = this.#facts.become('session', sessionFacts(view, batches));
    if (transcript === before) return { isAccepted, setAside, changes };
    const said = this.#facts.become('transcript', transcript.map(itemFact));
    return { isAccepted, setAside, changes: { ...changes, ...said } };
  }

  #ofSubagent(entry: JournalEntry): Taken {
    const { unit: id } = entry;
    const unknown = this.#isUnknown(entry);
    if (unknown !== null) return { isAccepted: false, setAside: unknown, changes: {} };
    let subagent = this.#subagents.get(id);
    if (!subagent) this.#subagents.set(id, (subagent = ReplayedSubagent.born(entry)));
    if (!(subagent instanceof ReplayedSubagent))
      return { isAccepted: false, setAside: null, changes: {} };
    const { isAccepted, setAside } = subagent.take(entry, this.#reasonOf(entry));
    const { view } = subagent;
    if (view.outcome) this.#subagents.set(id, view);
    return { isAccepted, setAside, changes: this.#facts.become(id, [subagentFact(view)]) };
  }

  #isUnknown({ unit: id, seq, event }: JournalEntry): string | null {
    if (this.#unknown.has(id)) return 'the first entry of its subagent cannot be read';
    if (this.#subagents.has(id) || seq > 1) return null;
    const reason =
      event.type === SPAWNED
        ? misshapen(event, SUBAGENT_SHAPES)
        : `expected \`${SPAWNED}\` first, got \`${event.type}\``;
    if (reason !== null) this.#unknown.add(id);
    return reason;
  }

  #reasonOf({ unit, seq }: JournalEntry): string | null {
    return this.#aside.get(positionOf(unit, seq)) ?? null;
  }

  #viewAt(at: number): ReplayView {
    const subagents = [...this.#subagents.values()].map((subagent) =>
      subagent instanceof ReplayedSubagent ? subagent.view : subagent,
    );
    return { at, ...(this.#session?.view ?? emptySession), subagents };
  }

  #checkScope({ scope }: JournalEntry): void {
    this.#scope ??= scope;
    if (scope !== this.#scope)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `Expected the entries of one scope, got ${this.#scope} and ${scope}`,
      );
  }
}
