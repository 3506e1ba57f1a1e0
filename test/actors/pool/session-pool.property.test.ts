// PL1 to PL4, whatever happens: uses at any time, processes that die or leave, times that cannot be
// kept. What was said is answered once, each question has one end, and nobody stays without need.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  createRuntime,
  createSessionPool,
  memoryJournal,
  memoryWakeTimes,
  type Journal,
  type SessionPool,
  type TextSession,
} from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { SimulatedProcess } from '../../../src/testing/simulate/simulated-process.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

const IDLE_MS = 1000;
const ASK_MS = 60_000;
const INJECTED = 'the disk is full';

type Action =
  | { readonly what: 'talk' | 'ask' | 'answer'; readonly who: number }
  | { readonly what: 'pass'; readonly ms: number }
  | { readonly what: 'die' | 'leave' | 'break' | 'mend' };

const who = fc.nat(2);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: fc.constant('talk' as const), who }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('ask' as const), who }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('answer' as const), who }) },
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
      what: fc.constantFrom('die' as const, 'leave' as const, 'break' as const, 'mend' as const),
    }),
  },
);

/** One process after the other, on one journal. */
class World {
  readonly environment = simulatedEnvironment();
  readonly errors: string[] = [];
  /** What must not be. */
  readonly broken: string[] = [];
  /** What was taken in, by session: each is to be answered once. */
  readonly said: [id: string, text: string][] = [];
  /** Answers that were accepted, by subagent. */
  readonly answered = new Map<string, string>();
  isBroken = false;
  readonly #journal = memoryJournal({ keep: Infinity });
  readonly #times = memoryWakeTimes();
  #number = 0;
  #process = new SimulatedProcess(0, this.environment);
  #pool: SessionPool<TextSession> | null = null;
  readonly #awake = new Map<string, TextSession>();
  readonly #under: Promise<unknown>[] = [];

  get pool(): SessionPool<TextSession> {
    if (!this.#pool) throw new Error('Expected a pool');
    return this.#pool;
  }

  async begin(): Promise<void> {
    this.#number += 1;
    const process = new SimulatedProcess(this.#number, this.environment);
    this.#process = process;
    this.#awake.clear();
    const never = new Promise<never>(() => {});
    const journal: Journal = {
      ...this.#journal,
      append: (entry) => (process.isAlive ? this.#journal.append(entry) : never),
      read: (query) => (process.isAlive ? this.#journal.read(query) : never),
      wakeTimes: {
        set: (scope, at) => {
          if (!process.isAlive) return never;
          if (this.isBroken) throw new Error(INJECTED);
          return this.#times.set(scope, at);
        },
        earliest: (query) => (process.isAlive ? this.#times.earliest(query) : never),
      },
    };
    const runtime = createRuntime({
      environment: process.environment,
      journal,
      snapshots: { trim: this.#number % 2 === 0 },
    });
    this.#pool = createSessionPool<TextSession>({
      runtime,
      idleMs: IDLE_MS,
      maxAwake: 2,
      onError: (_error, where) => this.errors.push(where),
      open: (sessionId) => this.#opened(sessionId, runtime),
    });
    await this.#pool.start();
  }

  #opened(sessionId: string, runtime: ReturnType<typeof createRuntime>): TextSession {
    if (this.#awake.has(sessionId)) this.broken.push(`PL1: ${sessionId} is awake twice`);
    const { session } = textTalk({
      sessionId,
      runtime,
      environment: this.environment,
      subagents: {
        paint: {
          script: turns(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
            say(`Painted: ${JSON.stringify(results.at(-1))}`),
          ),
          config: { interactive: true, inputTimeout: ASK_MS, duplicates: 'join' },
        },
      },
    });
    this.#awake.set(sessionId, session);
    // Somebody reads what is said.
    session.parts.subscribe();
    session.events.subscribe(({ type }) => {
      if (type !== 'session.ended' && type !== 'session.suspended') return;
      if (this.#awake.get(sessionId) === session) this.#awake.delete(sessionId);
    });
    return session;
  }

  /** It may never come back: its process may die. */
  #use(id: string, use: (session: TextSession) => Promise<void>): void {
    this.#under.push(
      this.pool.use(id, use).catch((error: unknown) => {
        const { message } = error as Error;
        if (message !== INJECTED && message !== 'The pool was closed') throw error;
      }),
    );
  }

  talk(id: string): void {
    const text = `hello ${this.said.length}`;
    this.#use(id, async (session) => {
      await session.sendText(text);
      this.said.push([id, text]);
    });
  }

  /** Words go to the question while there is one; so nothing else is asked then. */
  ask(id: string): void {
    this.#use(id, async (session) => {
      if (session.store.getSnapshot().context.questions.some(({ state }) => state === 'open'))
        return;
      await session.sendText('use paint');
      this.said.push([id, 'use paint']);
    });
  }

  answer(id: string, colour: string): void {
    this.#use(id, async (session) => {
      const { questions } = session.store.getSnapshot().context;
      const open = questions.find(({ state }) => state === 'open');
      if (!open) return;
      const { accepted } = await session.answer(open.requestId, { text: colour });
      if (accepted) this.answered.set(`${id} ${open.subagentId}`, colour);
    });
  }

  stop(): Promise<void> {
    this.#process.kill();
    return this.begin();
  }

  async leave(): Promise<void> {
    const process = this.#process;
    const closed = this.pool.close();
    await this.environment.advance(1);
    await closed;
    const left = [this.pool.awakeCount, this.#awake.size, process.timers];
    if (left.some((count) => count > 0)) this.broken.push(`left after close: ${left.join()}`);
    await this.begin();
  }

  async over(): Promise<void> {
    await Promise.race([Promise.all(this.#under), this.environment.settle()]);
  }
}

test('whatever happens, each is answered once, and nobody stays without need', async () => {
  let answers = 0;
  let expired = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40, size: 'max' }), async (actions) => {
      const world = new World();
      await world.begin();
      for (const [number, one] of actions.entries()) {
        if (one.what === 'talk') world.talk(`talk-${one.who}`);
        else if (one.what === 'ask') world.ask(`ask-${one.who}`);
        else if (one.what === 'answer') world.answer(`ask-${one.who}`, `colour ${number}`);
        else if (one.what === 'pass') await world.environment.advance(one.ms);
        else if (one.what === 'die') await world.stop();
        else if (one.what === 'leave') await world.leave();
        else world.isBroken = one.what === 'break';
        await world.environment.settle();
      }
      world.isBroken = false;
      await world.environment.advance(5 * ASK_MS);
      await world.over();
      expect(world.broken).toEqual([]);
      expect(world.pool.awakeCount).toBe(0);
      expect(world.errors.filter((error) => !error.includes(INJECTED))).toEqual([]);
      for (const id of new Set(world.said.map(([said]) => said)))
        await world.pool.use(id, (session) => {
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
            expect(
              texts.filter((text) => text.includes(`${outcome?.text}`.slice(0, 20))),
            ).not.toEqual([]);
          }
        });
      await world.pool.close();
      expect(world.pool.awakeCount).toBe(0);
    }),
    { numRuns: 60 },
  );
  expect(Math.min(answers, expired)).toBeGreaterThan(0);
});
