// The facts of a story while it is being played, recorded independently of the runtime: parents, permissions,
// questions, answers, messages, runs and ends.
//
// Owns:     these records and the list of failures (`wrong`).
// Does not: play a story or ask the runtime.

import type { SubagentTree } from '../../src/actors/subagents/subagent-tree.ts';
import type { Outcome } from '../../src/actors/contracts/outcome.ts';
import type { SimulatedEnvironment } from '../../src/testing/index.ts';
import type { Story } from './tree-story.ts';

/** A requested spawn. */
export interface Asked {
  readonly node: number;
  readonly by: string | null;
  /** The names of all tools that it may use. */
  readonly tools: ReadonlySet<string>;
  readonly denied: ReadonlySet<string>;
  readonly workstream: string | null;
}

/** A subagent that was accepted. */
export interface Person extends Asked {
  readonly id: string;
  readonly depth: number;
  /** The reasons for which it may be cancelled. */
  readonly blamed: Set<string>;
  readonly wantsBargeIn: boolean;
  outcome: Outcome | null;
  /** Milliseconds since 1970. */
  endedAt: number;
  /** The outcome that was reported first, to check that it does not change. */
  told: string;
}

/** One run of a tool. */
export interface Run {
  readonly personId: string;
  readonly callId: string;
  readonly tool: string;
  /** `cut off`: the call was cancelled before it returned. */
  state: 'begun' | 'returned' | 'cut off' | 'threw';
  /** The output that the ledger must contain. */
  output: unknown;
}

export interface Sent {
  readonly to: string;
  readonly messageId: string;
  receipts: number;
}

/** Counts over many stories. They show that the stories contain each kind of event. */
export type Counts = Map<string, number>;

export class Stage {
  readonly story: Story;
  readonly counts: Counts;
  readonly environment: SimulatedEnvironment;
  readonly people = new Map<string, Person>();
  readonly runs: Run[] = [];
  readonly sent = new Map<string, Sent>();
  /** How often the user approved the call with this number. */
  readonly consents = new Map<number, number>();
  /** The number of spawn requests by outcome. */
  readonly spawns = { asked: 0, accepted: 0, rejected: 0 };
  readonly waits = { begun: 0, settled: 0 };
  readonly wrong: string[] = [];
  service!: SubagentTree;
  asking: Asked | null = null;
  isClosing = false;
  /** The number of last calls, which hand in the work that was done before a budget was used up. */
  lastCalls = 0;
  /** The journal stores nothing before this time, in milliseconds since 1970. */
  brokenUntil = 0;
  /** Timers of the tools and the user, which do not belong to the runtime. */
  ownTimers = 0;
  #numbers = 0;

  constructor(story: Story, environment: SimulatedEnvironment, counts: Counts) {
    this.story = story;
    this.environment = environment;
    this.counts = counts;
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Records a failure, unless `isRight`. */
  expect(isRight: boolean, promise: string, what: () => string): void {
    if (!isRight) this.wrong.push(`${promise}: ${what()}`);
  }

  next(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** Returns the newest subagent for this node. */
  playing(node: number): Person | undefined {
    let found: Person | undefined;
    for (const person of this.people.values()) if (person.node === node) found = person;
    return found;
  }

  /** Returns the id of the subagent that a number stands for. The id may be unknown. */
  idOf(number: number): string {
    return this.playing(number % (this.story.nodes.length + 1))?.id ?? 'sub_404';
  }

  /** Returns the id of a working subagent if there is one, and sometimes any other id. */
  someone(number: number): string {
    const { live } = this;
    return number % 5 === 0
      ? this.idOf(number)
      : (live[number % live.length]?.id ?? this.idOf(number));
  }

  ancestorsOf(id: string): readonly string[] {
    const above: string[] = [];
    for (
      let by = this.people.get(id)?.by ?? null;
      by !== null;
      by = this.people.get(by)?.by ?? null
    )
      above.push(by);
    return above;
  }

  isBelow(id: string, by: string | null): boolean {
    return by === null || this.ancestorsOf(id).includes(by);
  }

  maySee(by: string | null, id: string): boolean {
    const person = this.people.get(id);
    if (!person) return false;
    if (by === null || id === by || this.isBelow(id, by)) return true;
    return person.workstream !== null && this.people.get(by)?.workstream === person.workstream;
  }

  isLive(id: string): boolean {
    return this.people.get(id)?.outcome === null;
  }

  get live(): readonly Person[] {
    return [...this.people.values()].filter(({ outcome }) => outcome === null);
  }

  /** Requests a spawn and attributes its immediate effects to the requester. */
  asks<T>(asked: Asked, request: () => T): T {
    this.spawns.asked += 1;
    this.asking = asked;
    try {
      return request();
    } finally {
      this.asking = null;
    }
  }

  blameAll(why: string): void {
    for (const person of this.live) person.blamed.add(why);
  }

  /** Records the outcome of a spawn request. Null means that it was accepted. */
  settleSpawn(error: { readonly code: string; readonly message: string } | null): void {
    if (error === null) {
      this.spawns.accepted += 1;
      return;
    }
    const { code, message } = error;
    const { limits } = this.story;
    this.spawns.rejected += 1;
    this.count(`refused: ${code}`);
    const isFull = this.live.length >= limits.live || this.people.size >= limits.total;
    const isAboutPlaces = /maxLivePerSession|maxTotalPerSession/.test(message);
    this.expect(isFull || !isAboutPlaces, 'P7', () => `there is room, but: ${message}`);
  }

  /** Makes the journal store nothing for this long. */
  journalBreaks(ms: number): void {
    this.brokenUntil = this.environment.clock.now() + ms;
    this.count('journal broke');
  }

  get journalBroke(): boolean {
    return this.brokenUntil > 0;
  }

  /** Returns whether the journal stores each entry at once. */
  get isPrompt(): boolean {
    return this.story.journalMs === 0 && !this.isBroken;
  }

  /** Returns whether the journal may still be retrying entries that it could not store. */
  get isBroken(): boolean {
    return this.journalBroke && this.environment.clock.now() < this.brokenUntil + 2000;
  }

  /** Waits for as long as a tool or program takes. This time does not count as the runtime's. */
  takes(ms: number): Promise<void> {
    this.ownTimers += 1;
    return new Promise((resolve) => {
      this.environment.scheduler.schedule(() => {
        this.ownTimers -= 1;
        resolve();
      }, ms);
    });
  }
}
