// One session as the inspector shows it: its entries, as they come, with the facts that each has changed, and its
// machines at any of them. All of it comes from the journal, so it is the same for a session of this process, of
// another one, and of last year.
//
// Owns:     the redaction of what leaves, the replay that goes on as entries come, another one for the past.
// Does not: know requests (inspector.ts) or act in the session.
//
// Invariants
//   INSPECTED-1. Following costs at most a twentieth of the time: the next reading waits for 20 times the length of the
//       last one. Nothing is read unless somebody asks.
//   INSPECTED-6. Folding takes no turn of the event loop for longer than `SLICE_MS`: the app that has the page goes on.
//   INSPECTED-4. Following a session reads and folds what is new, where the journal can tell it (`readAfter`). A session
//       that was trimmed beyond its latest entry, or has begun anew, is folded again: its `epoch` is another one.
//   INSPECTED-5. Where the journal has dropped the beginning, the kept entries are there, and the state from the first
//       one on with which a replay may begin.
//   INSPECTED-3. Going back folds from a checkpoint: at most 32 are kept, 1,000 entries apart, twice as many where they
//       would be more.
//   INSPECTED-2. With redaction no word of a user or a model leaves: of facts, events, contexts, and ledgers.

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

/** An entry as the page gets it. */
export interface ShownEntry {
  /** Counts from 1. */
  readonly n: number;
  /** Its number in its unit; with that it is found again, whatever was dropped before it. */
  readonly seq: number;
  readonly at: number;
  readonly unit: string;
  readonly actor: string;
  readonly type: string;
  /** Whether this version would accept it here. */
  readonly ok: boolean;
  /** The facts that it has changed; null: gone. */
  readonly changes: Readonly<Record<string, string | null>>;
  /** Subagents that are there for the first time, by their ids. */
  readonly born?: Readonly<Record<string, Born>>;
}

interface Born {
  readonly name: string;
  readonly parentId: string | null;
}

/** Readings take at most this part of the time (INSPECTED-1). */
const SHARE_OF_TIME = 20;
/** INSPECTED-6 */
const SLICE_MS = 10;
/** Who looks is told what is there after this time, and asks again. */
const PATIENCE_MS = 200;
/** INSPECTED-3 */
const CHECKPOINT_EVERY = 1_000;
const MAX_CHECKPOINTS = 32;
/** The facts whose value is only words. */
const WORDS = /^(?:user|assistant|system|tool_call|tool_result|transfer) /;

export class InspectedSession {
  readonly #journal: Journal;
  readonly #scope: string;
  readonly #redact: Redact;
  readonly #environment: Pick<Environment, 'clock' | 'scheduler'>;
  #entries: JournalEntry[] = [];
  #shown: ShownEntry[] = [];
  #replay = new Replay(new Map());
  /** Whether the journal has dropped entries for which no kept one stands. */
  #isCut = false;
  /** The number of the first entry after which the state is known; null: none (INSPECTED-5). */
  #stateFrom: number | null = null;
  #epoch = 0;
  /** The step of the newest entry; it may be read until the next one is taken. */
  #newest: ReplayStep | null = null;
  #past: { readonly replay: Replay; taken: number; step: ReplayStep | null } | null = null;
  #checkpoints: ReplayCheckpoint[] = [];
  /** The number of entries between two of them. */
  #spacing = CHECKPOINT_EVERY;
  #nextReadAt = 0;
  #reading: Promise<void> | null = null;
  /** Resolved when there is more to tell, while the reading goes on. */
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

  /** Why no more entries can be told; null: they can. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Reads what has come since, unless that was done a moment ago. */
  async refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    await this.#reading;
  }

  /** As `refresh`, but waits no longer than a moment once there is something to tell. */
  async look(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.refresh().then(resolve, reject);
      void this.#some.promise.then(resolve);
    });
  }

  /** The number of entries that are kept; `count` of them are folded. */
  get kept(): number {
    return this.#entries.length;
  }

  /** The entries after the first `after`, at most `most` of them. */
  after(after: number, most: number): readonly ShownEntry[] {
    return this.#shown.slice(after, after + most);
  }

  /**
   * The entries with which a replay leads to the state after entry `n`, as they were in the journal; none if that state
   * is not known.
   */
  upTo(n: number): readonly JournalEntry[] {
    return this.#stateFrom === null ? [] : this.#entries.slice(this.#stateFrom - 1, n);
  }

  /** The number of the first entry after which the state is known; null: none. */
  get stateFrom(): number | null {
    return this.#stateFrom;
  }

  /** Whether the journal has dropped entries before the first one here. */
  get isDropped(): boolean {
    const [first] = this.#entries;
    return this.#isCut || (first !== undefined && standsForAll(first));
  }

  /** Names the entries: with another name, those that were told before are not these. */
  get epoch(): string {
    const [first] = this.#entries;
    return `${this.#epoch} ${first?.unit} ${first?.seq} ${first?.at}`;
  }

  get count(): number {
    return this.#shown.length;
  }

  /**
   * Returns a thing of the session as it was after entry `n`; null if there is no such entry. `by`: who looks, and may
   * answer.
   */
  subjectAt(n: number, id: string, by: string): ShownSubject | null {
    const entry = this.#entries[n - 1];
    if (n < 1 || n > this.#shown.length || !entry) return null;
    const step = this.#stepAt(n);
    const replay = n === this.#shown.length ? this.#replay : this.#past?.replay;
    const entries = this.upTo(n);
    return { n, ...subjectOf({ entry, entries, step, replay, id, by, redact: this.#redact }) };
  }

  /** Null: the state after this entry is not known. */
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
    const goesOn = await this.#follow();
    if (!goesOn) {
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
    // Folded entries are not folded again.
    const repeated = goesOn ? now - began : this.#journal.readAfter ? 0 : readAt - began;
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
    // Before the entry: what is over is still there.
    if (taken > 0 && taken % this.#spacing === 0) this.#keep();
    this.#newest = this.#replay.take(entry);
    this.#shown.push(this.#shownEntry(this.#newest, length + 1));
  }

  /** INSPECTED-4. Reads what came after the latest entry. Returns whether the replay can go on with it. */
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
    // An entry that is quarantined was folded with its words.
    return quarantineReasons(later).size === 0;
  }

  /** INSPECTED-5. All kept entries. A journal that has dropped the beginning tells them only without a scope. */
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
    const born = this.#bornBy(step, n);
    return {
      ...stateless(entry, n),
      ok,
      changes: Object.fromEntries(shown) as ShownEntry['changes'],
      ...(born && { born }),
    };
  }

  #bornBy(step: ReplayStep, n: number): ShownEntry['born'] {
    const { unit, event } = step.entry;
    const { name, parentId } = propertiesOf(event);
    let born: readonly (readonly [id: string, name: string, parentId: unknown])[] = [];
    if (event.type === 'subagent.spawned') born = [[unit, String(name), parentId]];
    // Those of a snapshot. The view of all subagents takes long.
    else if (n === this.#stateFrom)
      born = step.view.subagents.map((each) => [each.id, each.name, each.parentId]);
    if (born.length === 0) return undefined;
    return Object.fromEntries(
      born.map(([id, named, parent]): [string, Born] => [
        id,
        {
          name: clip(String(this.#redact(named, ['event', 'toolName'])), MAX_NAME),
          parentId: typeof parent === 'string' ? parent : null,
        },
      ]),
    );
  }

  /** INSPECTED-2. What follows the colon of a fact are words. */
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

/** The characters of a name in a list: a foreign journal may have any. */
const MAX_NAME = 300;

/** An entry without what it has changed. */
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
