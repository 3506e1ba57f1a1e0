// One session as the inspector shows it: its entries, as they come, with the facts that each has changed, and its
// machines at any of them. All of it comes from the journal, so it is the same for a session of this process, of
// another one, and of last year.
//
// Owns:     the redaction of what leaves, the replay that goes on as entries come, another one for the past.
// Does not: know requests (inspector.ts) or act in the session.
//
// Invariants
//   INSPECTED-1. Reading costs at most a twentieth of the time: the next reading waits for 20 times the length of the
//       last one. Nothing is read unless somebody asks.
//   INSPECTED-4. Following a session reads and folds what is new, where the journal can tell it (`readAfter`). A session
//       that was trimmed beyond its latest entry, or has begun anew, is folded again.
//   INSPECTED-3. Going back folds from a checkpoint: at most 32 are kept, 1,000 entries apart, twice as many where they
//       would be more.
//   INSPECTED-2. With redaction no word of a user or a model leaves: of facts, events, contexts, and ledgers.

import type { BudgetLimits } from '../actors/contracts/config.ts';
import { usageBelow, type Usage, type UsageOf } from '../actors/contracts/usage.ts';
import type { Clock } from '../actors/ports/environment.ts';
import type { Journal, JournalEntry } from '../actors/ports/journal.ts';
import {
  Replay,
  setAsideReasons,
  type ReplayCheckpoint,
  type ReplayStep,
} from '../actors/replay/replay-session.ts';
import {
  redactNothing,
  redactWords,
  shownValue,
  type Redact,
} from '../adapters/inspect/shown-value.ts';
import { whyWaiting, type Wait, type WaitingState } from '../machines/index.ts';
import type { ChartName } from './charts.ts';

/** An entry as the page gets it. */
export interface ShownEntry {
  /** Counts from 1. */
  readonly n: number;
  readonly at: number;
  readonly unit: string;
  readonly actor: string;
  readonly type: string;
  /** Whether this version would accept it here. */
  readonly ok: boolean;
  /** The facts that it has changed; null: gone. */
  readonly changes: Readonly<Record<string, string | null>>;
  /** With the first entry of a subagent. */
  readonly born?: { readonly name: string; readonly parentId: string | null };
}

/** A thing of the session at an entry. */
export interface ShownSubject {
  readonly n: number;
  readonly at: number;
  readonly id: string;
  readonly chart: ChartName | null;
  /** The value of its machine; null: it has none, or is over. */
  readonly value: unknown;
  readonly context: unknown;
  /** Why it waits; null: it does not. */
  readonly wait: Wait | null;
  /** The wait of the session. */
  readonly session: Wait | null;
  /** The number of waits of each kind. */
  readonly waiting: Readonly<Record<Wait['of'], number>>;
  /** Of a subagent that has ended. */
  readonly outcome: unknown;
  /** What the model calls of a subagent have used, or of all subagents, and of those below it; null of anything else. */
  readonly usage: { readonly own: Usage | null; readonly whole: Usage } | null;
  /** The limits of a subagent's own budget; null: it has none, or is none. */
  readonly budget: BudgetLimits | null;
  /** The event of the entry. */
  readonly event: unknown;
}

/** Readings take at most this part of the time (INSPECTED-1). */
const SHARE_OF_TIME = 20;
const MAX_SHOWN_BYTES = 32_768;
/** INSPECTED-3 */
const CHECKPOINT_EVERY = 1_000;
const MAX_CHECKPOINTS = 32;
/** The facts whose value is only words. */
const WORDS = /^(?:user|assistant|system|tool_call|tool_result|transfer) /;

export class InspectedSession {
  readonly #journal: Journal;
  readonly #scope: string;
  readonly #redact: Redact;
  readonly #clock: Clock;
  #entries: JournalEntry[] = [];
  #shown: ShownEntry[] = [];
  #replay = new Replay(new Map());
  /** The step of the newest entry; it may be read until the next one is taken. */
  #newest: ReplayStep | null = null;
  #past: { readonly replay: Replay; taken: number; step: ReplayStep | null } | null = null;
  #checkpoints: ReplayCheckpoint[] = [];
  /** The number of entries between two of them. */
  #spacing = CHECKPOINT_EVERY;
  #nextReadAt = 0;
  #reading: Promise<void> | null = null;
  #failure: unknown = null;

  constructor(journal: Journal, scope: string, redact: Redact, clock: Clock) {
    this.#journal = journal;
    this.#scope = scope;
    this.#redact = redact;
    this.#clock = clock;
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

  /** The entries after the first `after`, at most `most` of them. */
  after(after: number, most: number): readonly ShownEntry[] {
    return this.#shown.slice(after, after + most);
  }

  /** The first entries, at most `most` of them, as they are in the journal. */
  first(most: number): readonly JournalEntry[] {
    return this.#entries.slice(0, most);
  }

  get count(): number {
    return this.#shown.length;
  }

  /** Returns a thing of the session as it was after entry `n`; null if there is no such entry. */
  subjectAt(n: number, id: string): ShownSubject | null {
    const step = this.#stepAt(n);
    if (!step) return null;
    const { entry, machines } = step;
    const waits = machines ? whyWaiting(machines) : [];
    const count = (of: Wait['of']): number => waits.filter((wait) => wait.of === of).length;
    const [chart, state] = machineOf(machines, id);
    const name = subjectIn(id);
    const wait = waits.find((each) => each.of === name.of && each.id === name.id) ?? null;
    const subagent =
      name.of === 'subagent' ? step.view.subagents.find((each) => each.id === name.id) : undefined;
    return {
      n,
      at: entry.at,
      id,
      chart,
      value: state?.value ?? null,
      context: state ? this.#show(state.context, 'context') : null,
      wait: id === 'interaction' || id === 'outbox' ? null : wait,
      session: waits.find(({ of }) => of === 'session') ?? null,
      waiting: {
        session: count('session'),
        question: count('question'),
        delivery: count('delivery'),
        subagent: count('subagent'),
      },
      budget: subagent?.budget ?? null,
      usage: usageOf(step.view.subagents, name),
      outcome: subagent?.outcome ? this.#show(subagent.outcome, 'context') : null,
      event: this.#show(entry.event, 'event'),
    };
  }

  #stepAt(n: number): ReplayStep | null {
    if (n < 1 || n > this.#shown.length) return null;
    if (n === this.#shown.length) return this.#newest;
    let past = this.#past;
    const near = this.#checkpoints.findLast(({ number }) => number < n) ?? null;
    if (!past || past.taken > n || past.taken < (near?.number ?? 0)) {
      const aside = setAsideReasons(this.#entries);
      const replay = near ? Replay.from(near, aside) : new Replay(aside);
      past = { replay, taken: near?.number ?? 0, step: null };
    }
    while (past.taken < n) {
      const entry = this.#entries[past.taken];
      if (!entry) return null;
      past.step = past.replay.take(entry);
      past.taken += 1;
    }
    this.#past = past;
    return past.step;
  }

  async #read(): Promise<void> {
    const began = this.#clock.now();
    if (began < this.#nextReadAt || this.#failure !== null) return;
    if (!(await this.#follow())) {
      this.#entries = [...(await this.#journal.read({ scope: this.#scope }))];
      this.#replay = new Replay(setAsideReasons(this.#entries));
      this.#shown = [];
      this.#past = null;
      this.#checkpoints = [];
      this.#spacing = CHECKPOINT_EVERY;
    }
    try {
      for (const entry of this.#entries.slice(this.#shown.length)) {
        // Before the entry: what is over is still there.
        if (this.#shown.length > 0 && this.#shown.length % this.#spacing === 0) this.#keep();
        this.#newest = this.#replay.take(entry);
        this.#shown.push(this.#shownEntry(this.#newest));
      }
    } catch (error) {
      this.#failure = error;
    }
    const now = this.#clock.now();
    this.#nextReadAt = now + SHARE_OF_TIME * (now - began);
  }

  /** INSPECTED-4. Reads what came after the latest entry. Returns whether the replay can go on with it. */
  async #follow(): Promise<boolean> {
    const last = this.#entries.at(-1);
    if (!last) return false;
    let later = await this.#journal.readAfter?.(last);
    if (later === undefined) {
      const entries = await this.#journal.read({ scope: this.#scope });
      const at = this.#entries.length - 1;
      later =
        isSame(entries[0], this.#entries[0]) && isSame(entries[at], last)
          ? entries.slice(at + 1)
          : null;
    }
    // An entry that is set aside was folded with its words.
    if (!later || setAsideReasons(later).size > 0) return false;
    for (const entry of later) this.#entries.push(entry);
    return true;
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

  #shownEntry({ number: n, entry, isAccepted: ok, changes }: ReplayStep): ShownEntry {
    const { at, unit, actor, event } = entry;
    const shown = Object.entries(changes).map(([name, value]) => [
      name,
      value === null ? null : this.#fact(name, value),
    ]);
    const { name, parentId } = event as { readonly name?: unknown; readonly parentId?: unknown };
    const isBirth = event.type === 'subagent.spawned';
    return {
      n,
      at,
      unit,
      actor,
      type: event.type,
      ok,
      changes: Object.fromEntries(shown) as ShownEntry['changes'],
      ...(isBirth && {
        born: {
          name: String(this.#redact(String(name), ['event', 'toolName'])),
          parentId: typeof parentId === 'string' ? parentId : null,
        },
      }),
    };
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

  #show(value: unknown, section: string): unknown {
    return shownValue(value, section, this.#redact, { bytesLeft: MAX_SHOWN_BYTES });
  }
}

const isSame = (one: JournalEntry | undefined, other: JournalEntry | undefined): boolean =>
  one?.unit === other?.unit && one?.seq === other?.seq && one?.at === other?.at;

const hidden = (text: string): string => String(redactWords(text, ['context', 'text']));

/** `question sub_1.q1` is the question of this id; `session`, `interaction` and `outbox` are themselves. */
function subjectIn(id: string): Pick<Wait, 'of' | 'id'> {
  const at = id.indexOf(' ');
  const kind = at < 0 ? id : id.slice(0, at);
  const rest = at < 0 ? '' : id.slice(at + 1);
  if (kind === 'question' || kind === 'delivery' || kind === 'subagent')
    return { of: kind, id: rest };
  return { of: 'session', id: '' };
}

function usageOf(
  subagents: readonly UsageOf[],
  { of, id }: Pick<Wait, 'of' | 'id'>,
): ShownSubject['usage'] {
  if (of === 'session') return { own: null, whole: usageBelow(subagents, null) };
  const subagent = of === 'subagent' && subagents.find((each) => each.id === id);
  return subagent ? { own: subagent.usage, whole: usageBelow(subagents, id) } : null;
}

type State = { readonly value: unknown; readonly context: unknown };

function machineOf(
  machines: WaitingState | null,
  id: string,
): readonly [ChartName | null, State | null] {
  const subject = subjectIn(id);
  if (subject.of === 'question') return ['question', machines?.questions.get(subject.id) ?? null];
  if (subject.of === 'subagent') return ['subagent', machines?.subagents.get(subject.id) ?? null];
  if (subject.of === 'delivery' || id === 'outbox') return ['outbox', machines?.outbox ?? null];
  if (id === 'interaction') return ['interaction', machines?.interaction ?? null];
  return ['session', machines?.session ?? null];
}
