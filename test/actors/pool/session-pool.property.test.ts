// SESSION-POOL-1 to SESSION-POOL-6 under random events: two processes share one journal, either process may use a
// session at any time, processes die, shut down or disappear for a while, and some wake times cannot be stored. Every
// message is answered once, each question ends once, no session stays in memory unnecessarily, and no due session stays
// asleep.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRuntime, type Runtime, type TextSession } from '../../../src/index.ts';
import { createSessionPool, type SessionPool } from '../../../src/entries/journal.ts';
import { readNotes, simulatedEnvironment } from '../../../src/testing/index.ts';
import { SimulatedProcess } from '../../../src/testing/doubles/simulated-process.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { SharedJournal } from './shared-journal.ts';

const IDLE_MS = 1000;
const ASK_MS = 60_000;
const INJECTED = 'the disk is full';

const LEASE_MS = 15_000;
/** The states in which a question is over. A question that is asked again after a crash is briefly not open. */
const OVER = new Set(['answered', 'expired', 'withdrawn', 'superseded']);

type Action =
  | { readonly what: 'talk' | 'ask' | 'answer'; readonly who: number; readonly by: number }
  | { readonly what: 'pass'; readonly ms: number }
  | { readonly what: 'die' | 'leave' | 'vanish' | 'return'; readonly by: number }
  | { readonly what: 'break' }
  | { readonly what: 'mend' };

const who = fc.nat(2);
const by = fc.nat(1);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: fc.constant('talk' as const), who, by }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('ask' as const), who, by }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('answer' as const), who, by }) },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constant('pass' as const),
      ms: fc.oneof(fc.nat(3), fc.nat(3 * IDLE_MS), fc.nat(2 * ASK_MS)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constantFrom('die' as const, 'leave' as const, 'vanish' as const, 'return' as const),
      by,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constantFrom('break' as const, 'mend' as const) }),
  },
);

/** A process with its pool. */
class Place {
  readonly process: SimulatedProcess;
  readonly pool: SessionPool<TextSession>;
  readonly awake = new Map<string, TextSession>();
  readonly #world: World;
  readonly #runtime: Runtime;

  constructor(world: World, number: number) {
    this.#world = world;
    this.process = new SimulatedProcess(number, world.environment);
    this.#runtime = createRuntime({
      environment: this.process.environment,
      journal: world.shared.of(this.process),
      snapshots: { trim: number % 2 === 0 },
    });
    this.pool = createSessionPool<TextSession>({
      runtime: this.#runtime,
      idleMs: IDLE_MS,
      maxAwake: 2,
      onError: (_error, where) => world.errors.push(where),
      open: (sessionId) => this.#opened(sessionId),
    });
  }

  #opened(sessionId: string): TextSession {
    const { broken, environment } = this.#world;
    if (this.awake.has(sessionId)) broken.push(`SESSION-POOL-1: ${sessionId} is awake twice`);
    const { session } = textTalk({
      sessionId,
      runtime: this.#runtime,
      environment,
      subagents: {
        paint: {
          script: turns(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
            say(`Painted: ${JSON.stringify(results.at(-1))}`),
          ),
          config: { interactive: true, inputTimeout: ASK_MS, duplicates: 'join' },
        },
      },
    });
    this.awake.set(sessionId, session);
    // The app reads the messages.
    session.parts.subscribe();
    session.events.subscribe(({ type }) => {
      if (type !== 'session.ended' && type !== 'session.suspended') return;
      if (this.awake.get(sessionId) === session) this.awake.delete(sessionId);
    });
    return session;
  }
}

/** Two processes on one journal, each of which may be replaced. */
class World {
  readonly environment = simulatedEnvironment();
  readonly shared: SharedJournal;
  readonly errors: string[] = [];
  /** The violations. */
  readonly broken: string[] = [];
  /** The accepted messages, by session. Each must be answered once. */
  readonly said: [id: string, text: string][] = [];
  /** Answers that were accepted, by subagent. */
  readonly answered = new Map<string, string>();
  #number = 0;
  readonly #places: (Place | null)[] = [null, null];
  readonly #under: Promise<unknown>[] = [];

  /** @param gives the journal assigns different sessions to each process, instead of listing all of them. */
  constructor(gives: boolean) {
    this.shared = new SharedJournal(this.environment, { leaseMs: LEASE_MS, gives });
  }

  /** Returns the running processes. */
  get places(): readonly Place[] {
    return this.#places.filter((place) => place !== null);
  }

  /** Returns the process with this number, or another running one; null if there is none. */
  #place(by: number): Place | null {
    return this.#places[by] ?? this.places[0] ?? null;
  }

  async begin(by: number): Promise<void> {
    this.#number += 1;
    const place = new Place(this, this.#number);
    this.#places[by] = place;
    await place.pool.start();
  }

  async return(by: number): Promise<void> {
    if (!this.#places[by]) await this.begin(by);
  }

  /** Starts a use, which may never settle because its process may die. */
  #use(by: number, id: string, use: (session: TextSession) => Promise<void>): void {
    this.#under.push(
      (this.#place(by)?.pool.use(id, use) ?? Promise.resolve()).catch((error: unknown) => {
        const { code, message } = error as Error & { readonly code?: unknown };
        // The other process owns the session, or owned it when it died.
        if (code === 'SCOPE_IN_USE') return;
        if (message !== INJECTED && message !== 'The pool was closed') throw error;
      }),
    );
  }

  talk(by: number, id: string): void {
    const text = `hello ${this.said.length}`;
    this.#use(by, id, async (session) => {
      await session.sendText(text);
      this.said.push([id, text]);
    });
  }

  /** Sends a message. While a question is open, messages answer it, so no other request is made. */
  ask(by: number, id: string): void {
    this.#use(by, id, async (session) => {
      if (session.store.getSnapshot().context.questions.some(({ state }) => !OVER.has(state)))
        return;
      await session.sendText('use paint');
      this.said.push([id, 'use paint']);
    });
  }

  answer(by: number, id: string, colour: string): void {
    this.#use(by, id, async (session) => {
      const { questions } = session.store.getSnapshot().context;
      const open = questions.find(({ state }) => state === 'open');
      if (!open) return;
      const { accepted } = await session.answer(open.requestId, { text: colour });
      if (accepted) this.answered.set(`${id} ${open.subagentId}`, colour);
    });
  }

  /** Kills a process without replacing it. */
  vanish(by: number): void {
    const place = this.#places[by];
    if (place) this.shared.kill(place.process);
    this.#places[by] = null;
  }

  async die(by: number): Promise<void> {
    this.vanish(by);
    await this.begin(by);
  }

  async leave(by: number): Promise<void> {
    const place = this.#places[by];
    if (!place) return;
    const closed = place.pool.close();
    await this.environment.advance(1);
    await closed;
    const left = [place.pool.awakeCount, place.awake.size, place.process.timers];
    if (left.some((count) => count > 0)) this.broken.push(`left after close: ${left.join()}`);
    await this.begin(by);
  }

  /** Returns the sessions that should be awake by now. */
  async late(): Promise<readonly string[]> {
    const now = this.environment.clock.now();
    const times = await this.shared.store.wakeTimes.earliest({ limit: 100 });
    return times.flatMap(({ scope, at }) => (at <= now ? [scope] : []));
  }

  async over(): Promise<void> {
    await Promise.race([Promise.all(this.#under), this.environment.settle()]);
  }
}

test('answers each call once, and unloads sessions that need not stay awake', async () => {
  let answers = 0;
  let expired = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { maxLength: 40, size: 'max' }),
      fc.boolean(),
      async (actions, gives) => {
        const world = new World(gives);
        for (const place of [0, 1]) await world.begin(place);
        for (const [number, one] of actions.entries()) {
          if (one.what === 'talk') world.talk(one.by, `talk-${one.who}`);
          else if (one.what === 'ask') world.ask(one.by, `ask-${one.who}`);
          else if (one.what === 'answer')
            world.answer(one.by, `ask-${one.who}`, `colour ${number}`);
          else if (one.what === 'pass') await world.environment.advance(one.ms);
          else if (one.what === 'break' || one.what === 'mend')
            world.shared.isBroken = one.what === 'break' ? new Error(INJECTED) : null;
          else await world[one.what](one.by);
          await world.environment.settle();
        }
        world.shared.isBroken = null;
        // The remaining process handles everything.
        if (world.places.length === 0) await world.begin(0);
        await world.environment.advance(5 * ASK_MS);
        await world.over();
        expect(world.broken).toEqual([]);
        expect(world.places.map(({ pool }) => pool.awakeCount)).toEqual(world.places.map(() => 0));
        expect(await world.late()).toEqual([]);
        expect(world.errors.filter((error) => !error.includes(INJECTED))).toEqual([]);
        const [{ pool }] = world.places as [Place];
        for (const id of new Set(world.said.map(([said]) => said)))
          await pool.use(id, (session) => {
            const { transcript, subagents, questions } = session.store.getSnapshot().context;
            const texts = transcript.map(({ text }) => text);
            const mine = world.said.flatMap(([to, text]) => (to === id ? [text] : []));
            for (const text of mine.filter((words) => words.startsWith('hello'))) {
              expect(texts.filter((other) => other === text)).toHaveLength(1);
              expect(texts.filter((other) => other === `You said: ${text}`)).toHaveLength(1);
            }
            expect(questions.filter(({ state }) => state === 'open')).toEqual([]);
            for (const { id: subagentId, outcome } of subagents) {
              const colour = world.answered.get(`${id} ${subagentId}`);
              if (colour === undefined) expired += 1;
              else answers += 1;
              expect(outcome?.text).toContain(colour ?? 'did not respond in time');
              const told = texts.flatMap((text) => readNotes(text.replace(/^Told: /, '')));
              // The results are quoted alone or together with others.
              const results = told.flatMap(({ quotes }) => [quotes, quotes['results']].flat());
              expect(results).toContainEqual(expect.objectContaining({ result: outcome?.text }));
            }
          });
        await pool.close();
        expect(pool.awakeCount).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
  expect(Math.min(answers, expired)).toBeGreaterThan(0);
});
