// The tests on jobs that every engine passes, with SIGKILL for every process.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { JobEnd } from '../../../src/entries/jobs.ts';
import { jobsConformance, type JobsFault } from '../../suites/jobs/index.ts';
import { jobsScenes } from '../../suites/jobs/cases.ts';
import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import {
  onLiveEngine,
  openWorld,
  ridesProgram,
  type LiveAbilities,
  type LiveEngine,
  type WorkersDo,
} from './live-engine.ts';
import { moment } from './processes.ts';

const SEEDS = Number(process.env['OFFSTAGE_ENGINE_SEEDS'] ?? 5);

export function jobsOnAnEngine(
  name: string,
  open: (handler: WorkersDo, world?: string) => Promise<LiveEngine>,
  { engineDies = true, deletes = true }: LiveAbilities = {},
): void {
  const always: readonly JobsFault[] = ['worker_dies', 'job_hangs', 'worker_refuses'];
  const shows = engineDies ? [...always, 'engine_dies' as const] : always;
  describe(`${name}: conformance`, () => {
    let engine: LiveEngine | undefined;
    beforeAll(async () => {
      engine = await open('bridge');
    });
    afterAll(() => engine?.close());
    const live = (): LiveEngine => engine as LiveEngine;

    const forgets = new Set(
      jobsScenes.filter(({ needs }) => needs?.includes('forgets')).map((scene) => scene.name),
    );
    const cases = jobsConformance({ ...onLiveEngine(name, live), shows }).filter(
      (one) => one.skipped === null && (deletes || !forgets.has(one.name)),
    );
    test.each(cases)('$name', ({ run }) => run());

    test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
      'seed %i: jobs of both kinds, while callers, workers and server are killed',
      async (seed) => {
        const chance = chanceOf(seed, 'kills');
        const begun = new Map<string, number>();
        const results = new Map<string, string[]>();
        const prefix = `seed-${seed}-${process.pid}:`;
        live().bridge.handler = {
          async do({ key }): Promise<JobEnd> {
            begun.set(key, (begun.get(key) ?? 0) + 1);
            for (let moments = chance.within(0, 8); moments > 0; moments -= 1) await moment();
            return { done: `${key} time ${begun.get(key)}` };
          },
        };
        /** A caller that is killed never receives the end; the next request uses a new client. */
        let callers = new AbortController();
        const ask = async (key: string, once: boolean): Promise<JobEnd> => {
          for (;;) {
            const { signal } = callers;
            try {
              const job = { key, name: 'a step', once, body: '{}' };
              return await live().jobs().run(job, { signal });
            } catch (error) {
              const mayAgain = (error as { retryable?: boolean }).retryable === true;
              if (!mayAgain && !signal.aborted) throw error;
              await moment();
            }
          }
        };
        const keys = Array.from({ length: 40 }, (_, at) => ({
          key: `${prefix}${at}`,
          once: at % 2 === 0,
        }));
        const asking = keys.map(async ({ key, once }) => {
          // Two processes request the same job.
          const ends = await Promise.all([ask(key, once), ask(key, once)]);
          results.set(
            key,
            ends.map((end) => JSON.stringify(end)),
          );
        });
        let isDone = false;
        const all = Promise.all(asking).finally(() => {
          isDone = true;
        });
        for (let kill = 0; kill < 3 && !isDone; kill += 1) {
          const after = begun.size + chance.within(2, 10);
          while (begun.size < Math.min(after, keys.length) && !isDone) await moment();
          if (chance.happens(0.4)) {
            callers.abort(new Error('the callers were killed'));
            callers = new AbortController();
          }
          if (!engineDies) await live().killWorkers();
          else if (chance.happens(0.4))
            await Promise.all([live().killWorkers(), live().killEngine()]);
          else if (chance.happens(0.5)) await live().killWorkers();
          else await live().killEngine();
        }
        await all;
        for (const { key, once } of keys) {
          const [first = '', second] = results.get(key) ?? [];
          // One key has one end for all callers.
          expect(second).toBe(first);
          if (once) expect(begun.get(key) ?? 0).toBeLessThanOrEqual(1);
          else expect(first).toContain('done');
        }
      },
    );
  });

  describe(`${name}: a program with steps as jobs`, () => {
    const setUp = async () => {
      const world = await openWorld();
      const engine = await open('rides', world.url);
      const program = await ridesProgram(engine.name, world.url);
      onTestFinished(async () => {
        await engine.close();
        await world.close();
        await program.close();
      });
      return { world, engine, program };
    };
    const totals = ({ calls }: Awaited<ReturnType<typeof openWorld>>) =>
      ['model-1', 'look_up', 'model-2', 'model-3', 'charge', 'model-4'].map((what) =>
        calls.count(what),
      );

    test('makes a model call and a charge only once, even if killed during each of them', async () => {
      const { world, program } = await setUp();
      const release = world.calls.hold('model-1');
      let life = program.start();
      await world.begun('model-1');
      await life.kill();
      life = program.start();
      const releaseCharge = world.calls.hold('charge');
      release();
      await world.begun('charge');
      await life.kill();
      releaseCharge();
      expect(await program.start().outcome()).toMatchObject({
        status: 'completed',
        text: 'Done: {"did":"charge"}',
        ledger: ['look_up ok', 'ask_user ok', 'charge ok'],
      });
      expect(totals(world)).toEqual([1, 1, 1, 1, 1, 1]);
    });

    test('repeats a look-up, but not a charge, if its worker is killed during both', async () => {
      const { world, engine, program } = await setUp();
      const release = world.calls.hold('look_up');
      const life = program.start();
      await world.begun('look_up');
      await engine.killWorkers();
      release();
      world.calls.hold('charge');
      await world.begun('charge');
      await engine.killWorkers();
      const { status, text, ledger } = await life.outcome();
      expect([status, ledger]).toEqual([
        'completed',
        ['look_up ok', 'ask_user ok', 'charge in_flight'],
      ]);
      expect(text).toContain('not known');
      expect(totals(world)).toEqual([1, 2, 1, 1, 1, 1]);
    });

    test('charges once when the program, the worker and the server are killed during the charge', async () => {
      const { world, engine, program } = await setUp();
      world.calls.hold('charge');
      const life = program.start();
      await world.begun('charge');
      await Promise.all([
        life.kill(),
        engine.killWorkers(),
        ...(engineDies ? [engine.killEngine()] : []),
      ]);
      const { status, ledger } = await program.start().outcome();
      expect([status, ledger.at(-1)]).toEqual(['completed', 'charge in_flight']);
      expect(totals(world)).toEqual([1, 1, 1, 1, 1, 1]);
    });
  });
}
