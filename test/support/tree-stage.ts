// The facts of a story while it is played, kept apart from the runtime's own: who
// is whose child, who may do what, what was asked, answered, told, run and ended.
//
// Owns:     these books, and the list of what went wrong (`wrong`).
// Does not: play anything, or ask the runtime what it thinks.

import type { SubagentTree } from '../../src/actors/subagents/subagent-tree.ts';
import type { Outcome } from '../../src/actors/contracts/outcome.ts';
import type { SimulatedEnvironment } from '../../src/testing/index.ts';
import type { Story } from './tree-story.ts';

/** A spawn that is being asked for. */
export interface Asked {
  readonly node: number;
  readonly by: string | null;
  /** What it may use at most, by name. */
  readonly tools: ReadonlySet<string>;
  readonly denied: ReadonlySet<string>;
  readonly workstream: string | null;
}

/** A subagent that was accepted. */
export interface Person extends Asked {
  readonly id: string;
  readonly depth: number;
  /** Why it may be cancelled. */
  readonly blamed: Set<string>;
  readonly wantsBargeIn: boolean;
  outcome: Outcome | null;
  /** Milliseconds since 1970. */
  endedAt: number;
  /** As it was told, to see that it stays so. */
  told: string;
}

/** One time that a tool ran. */
export interface Run {
  readonly personId: string;
  readonly callId: string;
  readonly tool: string;
  /** `cut off`: its call was called off before it returned. */
  state: 'begun' | 'returned' | 'cut off' | 'threw';
  /** What the ledger must say it returned. */
  output: unknown;
}

export interface Sent {
  readonly to: string;
  readonly messageId: string;
  receipts: number;
}

/** What was counted over many stories: so that none of this is proven on nothing. */
export type Counts = Map<string, number>;

export class Stage {
  readonly story: Story;
  readonly counts: Counts;
  readonly environment: SimulatedEnvironment;
  readonly people = new Map<string, Person>();
  readonly runs: Run[] = [];
  readonly sent = new Map<string, Sent>();
  /** How often the user consented to the call with this number. */
  readonly consents = new Map<number, number>();
  /** Requests for one more: by outcome. */
  readonly spawns = { asked: 0, accepted: 0, rejected: 0 };
  readonly waits = { begun: 0, settled: 0 };
  readonly wrong: string[] = [];
  service!: SubagentTree;
  asking: Asked | null = null;
  isClosing = false;
  /** Last calls, which hand in what there is when a budget is used up. */
  lastCalls = 0;
  /** The journal keeps nothing before this time; milliseconds since 1970. */
  brokenUntil = 0;
  /** Timers of the tools and of the user, which are nobody's concern. */
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

  /** Tells what went wrong, unless `isRight`. */
  expect(isRight: boolean, promise: string, what: () => string): void {
    if (!isRight) this.wrong.push(`${promise}: ${what()}`);
  }

  next(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** The newest that plays this node. */
  playing(node: number): Person | undefined {
    let found: Person | undefined;
    for (const person of this.people.values()) if (person.node === node) found = person;
    return found;
  }

  /** The id of the one that a number means; perhaps of nobody. */
  idOf(number: number): string {
    return this.playing(number % (this.story.nodes.length + 1))?.id ?? 'sub_404';
  }

  /** The id of somebody who works, if there is anybody; now and then of anybody. */
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

  /** Somebody asks for one more; what the request does at once is laid to its account. */
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

  /** How a request for one more was settled: null is accepted. */
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

  /** For a while the journal keeps nothing. */
  journalBreaks(ms: number): void {
    this.brokenUntil = this.environment.clock.now() + ms;
    this.count('journal broke');
  }

  get journalBroke(): boolean {
    return this.brokenUntil > 0;
  }

  /** Whatever happens is in the journal at once. */
  get isPrompt(): boolean {
    return this.story.journalMs === 0 && !this.isBroken;
  }

  /** It may still be trying again what it could not keep. */
  get isBroken(): boolean {
    return this.journalBroke && this.environment.clock.now() < this.brokenUntil + 2000;
  }

  /** Time that a tool or a program takes, and whoever runs it does not count. */
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
