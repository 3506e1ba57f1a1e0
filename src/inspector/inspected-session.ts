// One session as the inspector shows it: its entries as they arrive, the facts that each entry changed, and the state
// of the session's machines after any entry. Everything is derived from the journal, so a session looks the same
// whether it runs in this process or another one, or ended a year ago.
//
// Owns:     the redaction of the data that is shown, the replay that follows new entries, and another replay for past
//           entries.
// Does not: handle requests (`inspector.ts` does), or act in the session.
//
// Invariants
//   INSPECTED-1. Following a session takes at most a twentieth of the time: the next read starts only after 20 times
//       the duration of the last read. The journal is read only while a page is requesting it.
//   INSPECTED-6. Folding blocks the event loop for at most `SLICE_MS` at a time, so that the app that serves the page
//       stays responsive.
//   INSPECTED-4. Following a session reads and folds only new entries, if the journal has `readAfter`. If the latest
//       known entry has been trimmed, or the session has restarted, the session is folded again with a new `epoch`.
//   INSPECTED-5. If the journal has dropped the oldest entries, the page shows the remaining entries. It shows states
//       only from the first entry at which a replay can start.
//   INSPECTED-3. A past state is folded from a checkpoint. There are at most 32 checkpoints, 1,000 entries apart; when
//       the limit is reached, the distance doubles.
//   INSPECTED-2. With redaction, text from the user or a model is never sent, whether in facts, events, contexts or
//       ledgers.

import { propertiesOf } from '../values/json.ts';
import type { Environment } from '../actors/ports/environment.ts';
import { standsForAll, type Journal, type JournalEntry } from '../actors/ports/journal.ts';
import {
  canBegin,
  Replay,
  quarantineReasons,
  type ReplayCheckpoint,
  type ReplayStep,
} from '../actors/replay/replay-session.ts';
import { redactNothing, redactWords, type Redact } from '../adapters/inspect/shown-value.ts';
import { codeOf } from '../values/errors.ts';
import { clip } from '../values/clip.ts';
import { subjectOf, type ShownSubject } from './shown-subject.ts';

/** An entry in the form that the page receives. */
export interface ShownEntry {
  /** Starts at 1. */
  readonly n: number;
  /** The entry's number in its unit. It identifies the entry even after earlier entries were dropped. */
  readonly seq: number;
  readonly at: number;
  readonly unit: string;
  readonly actor: string;
  readonly type: string;
  /** Whether this version of Offstage would accept the event here. */
  readonly ok: boolean;
  /** The facts that the entry changed. A fact that no longer exists is null. */
  readonly changes: Readonly<Record<string, string | null>>;
  /** The subagents that appear with this entry, by id. */
  readonly spawned?: Readonly<Record<string, Spawned>>;
}

interface Spawned {
  readonly name: string;
  readonly parentId: string | null;
}

/** The next read waits this many times the duration of the last read (INSPECTED-1). */
const SHARE_OF_TIME = 20;
/** INSPECTED-6 */
const SLICE_MS = 10;
/** After this time, the response contains only the entries that have been read so far, and the page asks again. */
const PATIENCE_MS = 200;
/** INSPECTED-3 */
const CHECKPOINT_EVERY = 1_000;
const MAX_CHECKPOINTS = 32;
/** The facts whose text comes from the user or a model. */
const WORDS = /^(?:user|assistant|system|tool_call|tool_result|transfer) /;

export class InspectedSession {
  readonly #journal: Journal;
  readonly #scope: string;
  readonly #redact: Redact;
  readonly #environment: Pick<Environment, 'clock' | 'scheduler'>;
  #entries: JournalEntry[] = [];
  #shown: ShownEntry[] = [];
  #replay = new Replay(new Map());
  /** Whether the journal has dropped entries that no remaining entry replaces. */
  #isCut = false;
  /** The number of the first entry whose state is known, or null if there is none (INSPECTED-5). */
  #stateFrom: number | null = null;
  #epoch = 0;
  /** The step of the newest entry. It is valid until the next entry is folded. */
  #newest: ReplayStep | null = null;
  #past: { readonly replay: Replay; taken: number; step: ReplayStep | null } | null = null;
  #checkpoints: ReplayCheckpoint[] = [];
  /** The number of entries between two checkpoints. */
  #spacing = CHECKPOINT_EVERY;
  #nextReadAt = 0;
  #reading: Promise<void> | null = null;
  /** Resolves as soon as there are entries to send, even if reading is still in progress. */
  #some = Promise.withResolvers<void>();
  #failure: unknown = null;

  constructor(
    journal: Journal,
    scope: string,
    redact: Redact,
    environment: Pick<Environment, 'clock' | 'scheduler'>,
  ) {
    this.#journal = journal;
    this.#scope = scope;
    this.#redact = redact;
    this.#environment = environment;
  }

  /** The error that stopped the reading, or null. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Reads new entries unless they were read a moment ago. */
  async refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    await this.#reading;
  }

  /** Like `refresh`, but waits only briefly once there are entries to send. */
  async look(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.refresh().then(resolve, reject);
      void this.#some.promise.then(resolve);
    });
  }

  /** The number of entries that the journal still has; the first `count` of them are folded. */
  get kept(): number {
    return this.#entries.length;
  }

  /** Returns at most `most` entries, starting after the first `after` entries. */
  after(after: number, most: number): readonly ShownEntry[] {
    return this.#shown.slice(after, after + most);
  }

  /** Returns the journal entries for a replay to the state after entry `n`, or none if that state is unknown. */
  upTo(n: number): readonly JournalEntry[] {
    return this.#stateFrom === null ? [] : this.#entries.slice(this.#stateFrom - 1, n);
  }

  /** The number of the first entry whose state is known, or null if there is none. */
  get stateFrom(): number | null {
    return this.#stateFrom;
  }

  /** Whether the journal has dropped entries that precede this list. */
  get isDropped(): boolean {
    const [first] = this.#entries;
    return this.#isCut || (first !== undefined && standsForAll(first));
  }

  /** Identifies the list of entries. A new value means that earlier responses came from a different list. */
  get epoch(): string {
    const [first] = this.#entries;
    return `${this.#epoch} ${first?.unit} ${first?.seq} ${first?.at}`;
  }

  get count(): number {
    return this.#shown.length;
  }

  /**
   * Returns the state of one subject after entry `n`, or null if there is no such entry. `by`: the identity of the
   * viewer, which determines whether the viewer may answer.
   */
  subjectAt(n: number, id: string, by: string): ShownSubject | null {
    const entry = this.#entries[n - 1];
    if (n < 1 || n > this.#shown.length || !entry) return null;
    const step = this.#stepAt(n);
    const replay = n === this.#shown.length ? this.#replay : this.#past?.replay;
    const entries = this.upTo(n);
    return { n, ...subjectOf({ entry, entries, step, replay, id, by, redact: this.#redact }) };
  }

  /** Returns null if the state after this entry is unknown. */
  #stepAt(n: number): ReplayStep | null {
    const from = this.#stateFrom;
    if (from === null || n < from) return null;
    if (n === this.#shown.length) return this.#newest;
    const before = from - 1;
    const number = n - before;
    let past = this.#past;
    const near = this.#checkpoints.findLast((each) => each.number < number) ?? null;
    if (!past || past.taken > number || past.taken < (near?.number ?? 0)) {
      const quarantined = quarantineReasons(this.#entries);
      const replay = near ? Replay.from(near, quarantined) : new Replay(quarantined);
      past = { replay, taken: near?.number ?? 0, step: null };
    }
    while (past.taken < number) {
      const entry = this.#entries[before + past.taken];
      if (!entry) return null;
      past.step = past.replay.take(entry);
      past.taken += 1;
    }
    this.#past = past;
    return past.step;
  }

  async #read(): Promise<void> {
    const { clock } = this.#environment;
    const began = clock.now();
    if (began < this.#nextReadAt || this.#failure !== null) return;
    const isSameLife = await this.#follow();
    if (!isSameLife) {
      this.#replay = new Replay(quarantineReasons(this.#entries));
      this.#newest = null;
      this.#shown = [];
      this.#past = null;
      this.#checkpoints = [];
      this.#spacing = CHECKPOINT_EVERY;
      this.#stateFrom = null;
      this.#epoch += 1;
    }
    const readAt = clock.now();
    try {
      await this.#fold(began);
    } catch (error) {
      this.#failure = error;
    }
    const now = clock.now();
    // Folding the whole session happens only once, so only the work that every read repeats is measured.
    const repeated = isSameLife ? now - began : this.#journal.readAfter ? 0 : readAt - began;
    this.#nextReadAt = now + SHARE_OF_TIME * repeated;
  }

  /** INSPECTED-6 */
  async #fold(began: number): Promise<void> {
    const { clock, scheduler } = this.#environment;
    let toldAt = began;
    let until = clock.now() + SLICE_MS;
    for (let entry = this.#next; entry; entry = this.#next) {
      this.#take(entry);
      const now = clock.now();
      if (now < until) continue;
      if (now - toldAt >= PATIENCE_MS) {
        this.#some.resolve();
        this.#some = Promise.withResolvers<void>();
        toldAt = now;
      }
      await new Promise<void>((resolve) => scheduler.yieldThen(resolve));
      until = clock.now() + SLICE_MS;
    }
  }

  get #next(): JournalEntry | undefined {
    return this.#entries[this.#shown.length];
  }

  #take(entry: JournalEntry): void {
    const { length } = this.#shown;
    if (this.#stateFrom === null) {
      if (this.#isCut && !canBegin(entry)) {
        this.#shown.push(stateless(entry, length + 1));
        return;
      }
      this.#stateFrom = length + 1;
    }
    const taken = length - this.#stateFrom + 1;
    // The checkpoint precedes the entry, so it still contains the parts that the entry ends.
    if (taken > 0 && taken % this.#spacing === 0) this.#keep();
    this.#newest = this.#replay.take(entry);
    this.#shown.push(this.#shownEntry(this.#newest, length + 1));
  }

  /** INSPECTED-4. Reads the entries after the latest one. Returns whether the replay can continue with them. */
  async #follow(): Promise<boolean> {
    const last = this.#entries.at(-1);
    let later = last && (await this.#journal.readAfter?.(last));
    if (!later) {
      const { entries, isCut } = await this.#whole();
      const at = this.#entries.length - 1;
      if (!last || !isSame(entries[0], this.#entries[0]) || !isSame(entries[at], last)) {
        this.#entries = [...entries];
        this.#isCut = isCut;
        return false;
      }
      later = entries.slice(at + 1);
    }
    for (const entry of later) this.#entries.push(entry);
    // The replay has already folded an entry that is now quarantined.
    return quarantineReasons(later).size === 0;
  }

  /**
   * INSPECTED-5. Reads all the entries that the journal still has. If the journal has dropped the oldest entries,
   *              reading one scope fails, so all scopes are read.
   */
  async #whole(): Promise<{
    readonly entries: readonly JournalEntry[];
    readonly isCut: boolean;
  }> {
    const scope = this.#scope;
    try {
      return { entries: await this.#journal.read({ scope }), isCut: false };
    } catch (error) {
      if (codeOf(error) !== 'JOURNAL_CUT') throw error;
      const all = await this.#journal.read();
      return { entries: all.filter((entry) => entry.scope === scope), isCut: true };
    }
  }

  /** INSPECTED-3 */
  #keep(): void {
    const checkpoint = this.#replay.toCheckpoint();
    if (!checkpoint) return;
    this.#checkpoints.push(checkpoint);
    if (this.#checkpoints.length < MAX_CHECKPOINTS) return;
    this.#spacing *= 2;
    this.#checkpoints = this.#checkpoints.filter(({ number }) => number % this.#spacing === 0);
  }

  #shownEntry(step: ReplayStep, n: number): ShownEntry {
    const { entry, isAccepted: ok, changes } = step;
    const shown = Object.entries(changes).map(([name, value]) => [
      name,
      value === null ? null : this.#fact(name, value),
    ]);
    const spawned = this.#spawnedBy(step, n);
    return {
      ...stateless(entry, n),
      ok,
      changes: Object.fromEntries(shown) as ShownEntry['changes'],
      ...(spawned && { spawned }),
    };
  }

  #spawnedBy(step: ReplayStep, n: number): ShownEntry['spawned'] {
    const { unit, event } = step.entry;
    const { name, parentId } = propertiesOf(event);
    let spawned: readonly (readonly [id: string, name: string, parentId: unknown])[] = [];
    if (event.type === 'subagent.spawned') spawned = [[unit, String(name), parentId]];
    // A snapshot contains its subagents. For other entries, listing all subagents would be slow.
    else if (n === this.#stateFrom)
      spawned = step.view.subagents.map((each) => [each.id, each.name, each.parentId]);
    if (spawned.length === 0) return undefined;
    return Object.fromEntries(
      spawned.map(([id, named, parent]): [string, Spawned] => [
        id,
        {
          name: clip(String(this.#redact(named, ['event', 'toolName'])), MAX_NAME),
          parentId: typeof parent === 'string' ? parent : null,
        },
      ]),
    );
  }

  /** INSPECTED-2. A fact's text follows a colon. */
  #fact(name: string, value: string): string {
    if (this.#redact === redactNothing) return value;
    if (WORDS.test(name)) {
      const isBroken = value.endsWith(' (broken off)');
      return `${hidden(value)}${isBroken ? ' (broken off)' : ''}`;
    }
    const at = value.indexOf(': ');
    return at < 0 ? value : `${value.slice(0, at)}: ${hidden(value.slice(at + 2))}`;
  }
}

/** The maximum length of a name in a list, in characters. Another app's journal may contain names of any length. */
const MAX_NAME = 300;

/** Returns an entry as the page receives it, without the facts that it changed. */
function stateless({ seq, at, unit, actor, event }: JournalEntry, n: number): ShownEntry {
  return {
    n,
    seq,
    at,
    unit: clip(unit, MAX_NAME),
    actor: clip(actor, MAX_NAME),
    type: clip(event.type, MAX_NAME),
    ok: true,
    changes: {},
  };
}

const isSame = (one: JournalEntry | undefined, other: JournalEntry | undefined): boolean =>
  one?.unit === other?.unit && one?.seq === other?.seq && one?.at === other?.at;

const hidden = (text: string): string => String(redactWords(text, ['context', 'text']));
