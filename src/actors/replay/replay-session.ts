// A session, looked at again entry by entry: what its machines made of each, without its app,
// its models, tools or keys, and without a network.
//
// Owns:     whose entry it is, and the lives of one scope after each other.
// Does not: fold (the units that run live do), print, or compare.
//
// Invariants
//   RS1. The same entries lead to the same steps, in any process.
//   RS2. What is held is what the session would hold, and the views of subagents that have ended.

import { ConfigurationError, isA, messageOf, OffstageError } from '../../errors.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { OPENED } from '../session/session-inputs.ts';
import { snapshotIn } from '../session/snapshots.ts';
import { Facts, itemFact, sessionFacts, subagentFact, type Changes } from './facts.ts';
import { ReplayedSession } from './replayed-session.ts';
import { ReplayedSubagent } from './replayed-subagent.ts';
import { emptySession, type ReplaySubagent, type ReplayView } from './replay-view.ts';

/** For whom a program's service writes down whose results the program has had. */
const OF_PROGRAM = 'service';

export interface ReplayStep {
  /** Counts from 1 over all that is replayed. */
  readonly number: number;
  readonly entry: JournalEntry;
  /** Would this version of Offstage accept the entry here? It was accepted when it was written. */
  readonly isAccepted: boolean;
  /** What it changed: facts such as `question sub_1:1` or `connection`, and what they are now. */
  readonly changes: Changes;
  /** The whole session after this entry. Made when it is read; read it before the next step is taken. */
  readonly view: ReplayView;
}

/**
 * Folds the entries of one scope again, one with each step: `journal.read({ scope })`, from the
 * first entry on. Those of services are stepped over: what they led to is in the other entries.
 *
 * @throws {ConfigurationError} `INVALID_OPTION` for entries of several scopes.
 * @throws {OffstageError} where it cannot go on, at that step: `JOURNAL_CUT`, `JOURNAL_GAP`,
 * `JOURNAL_VERSION` for entries of another version, `REPLAY_FAILED`.
 */
export function* replaySession(entries: Iterable<JournalEntry>): Generator<ReplayStep, void> {
  const replay = new Replay();
  for (const entry of entries) yield replay.take(entry);
}

class Replay {
  readonly #facts = new Facts();
  /** One that has ended is only shown. */
  readonly #subagents = new Map<string, ReplayedSubagent | ReplaySubagent>();
  #session: ReplayedSession | null = null;
  #scope: string | null = null;
  #number = 0;

  take(entry: JournalEntry): ReplayStep {
    this.#checkScope(entry);
    this.#number += 1;
    const number = this.#number;
    try {
      const { isAccepted, changes } = this.#taken(entry);
      const viewOf = (): ReplayView => this.#viewAt(entry.at);
      return {
        number,
        entry,
        isAccepted,
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

  #taken(entry: JournalEntry): { readonly isAccepted: boolean; readonly changes: Changes } {
    const { unit, scope, actor } = entry;
    const isOfService = unit.startsWith(`${scope}/`) || (unit === scope && actor === OF_PROGRAM);
    if (isOfService) return { isAccepted: true, changes: {} };
    if (unit === scope) return this.#ofSession(entry);
    return this.#ofSubagent(entry);
  }

  #ofSession(entry: JournalEntry): { readonly isAccepted: boolean; readonly changes: Changes } {
    if (entry.event.type === OPENED) {
      // Another life: nothing is left of the one before.
      this.#facts.clear();
      this.#subagents.clear();
      this.#session = new ReplayedSession(entry);
    } else if (!this.#session) {
      // What was before it is not kept.
      this.#session = new ReplayedSession(entry);
      const known = snapshotIn(entry)?.delegation.subagents ?? [];
      for (const record of known)
        this.#subagents.set(record.id, ReplayedSubagent.known(entry.scope, record));
    }
    const session = this.#session;
    this.#facts.forget('session', session.forgetWhatIsOver());
    const before = session.transcript;
    const isAccepted = session.take(entry);
    const { view, batches, transcript } = session;
    const changes = this.#facts.become('session', sessionFacts(view, batches));
    if (transcript === before) return { isAccepted, changes };
    const said = this.#facts.become('transcript', transcript.map(itemFact));
    return { isAccepted, changes: { ...changes, ...said } };
  }

  #ofSubagent(entry: JournalEntry): { readonly isAccepted: boolean; readonly changes: Changes } {
    const { unit: id } = entry;
    let subagent = this.#subagents.get(id);
    if (!subagent) this.#subagents.set(id, (subagent = ReplayedSubagent.born(entry)));
    if (!(subagent instanceof ReplayedSubagent)) return { isAccepted: false, changes: {} };
    const isAccepted = subagent.take(entry);
    const { view } = subagent;
    if (view.outcome) this.#subagents.set(id, view);
    return { isAccepted, changes: this.#facts.become(id, [subagentFact(view)]) };
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
