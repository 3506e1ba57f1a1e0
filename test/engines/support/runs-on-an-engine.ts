// The tests on runs that every engine passes, with SIGKILL for every process.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { forgetRun } from '../../../src/entries/jobs.ts';
import { createRuntime } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import {
  runsConformance,
  runsConformanceAgents,
  type RunsFault,
  type RunsStage,
  type Tell,
} from '../../suites/runs/index.ts';
import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import type { LiveAbilities, LiveEngine, WorkersDo } from './live-engine.ts';
import { moment } from './processes.ts';

const SEEDS = Number(process.env['OFFSTAGE_ENGINE_SEEDS'] ?? 5);

/** A program's connection to an engine; a killed program sends no more requests. */
function programOf(live: LiveEngine) {
  const end = new AbortController();
  const engine = live.runs();
  const never = new Promise<never>(() => {});
  return {
    options: {
      runtime: createRuntime({ environment: nodeEnvironment() }),
      engine: {
        ...engine,
        async view(id: string, after: number, signal: AbortSignal) {
          try {
            return await engine.view(id, after, AbortSignal.any([signal, end.signal]));
          } catch (error) {
            if (end.signal.aborted) return never;
            throw error;
          }
        },
      },
    },
    kill: () => end.abort(new Error('the program was killed')),
  };
}

function listen(live: LiveEngine, tell: Tell): void {
  live.bridge.handler = {
    async do({ key }) {
      await tell(key);
      return { done: '' };
    },
  };
}

export function runsOnAnEngine(
  name: string,
  open: (handler: WorkersDo) => Promise<LiveEngine>,
  { engineDies = true, deletes = true, sharesWork = true }: LiveAbilities = {},
): void {
  const shows: readonly RunsFault[] = engineDies
    ? ['program_dies', 'worker_dies', 'engine_dies']
    : ['program_dies', 'worker_dies'];
  describe(`${name}: whole runs`, () => {
    let engine: LiveEngine | undefined;
    beforeAll(async () => {
      engine = await open('runs');
    });
    afterAll(() => engine?.close());
    const live = (): LiveEngine => engine as LiveEngine;

    const cases = runsConformance({
      name,
      shows,
      isEngine: true,
      deletes,
      deploys: true,
      sharesWork,
      patience: 6_000,
      moment,
      open(tell): RunsStage {
        listen(live(), tell);
        let isDeployed = false;
        return {
          program: () => programOf(live()),
          deploy(versions) {
            isDeployed = true;
            return live().deploy(versions);
          },
          killWorkers: () => live().killWorkers(),
          killEngine: () => live().killEngine(),
          forget: (id) => forgetRun(id, { engine: live().runs(), jobs: live().jobs() }),
          close: async () => {
            live().bridge.handler = null;
            if (isDeployed) await live().deploy(['later']);
          },
        };
      },
    });
    const played = cases.filter(({ skipped }) => skipped === null);
    // On Temporal's test server, about one run in ten stops for good when two steps are cancelled and one of them has just
    // ended: the server never starts the next step.
    const retry = sharesWork ? 0 : 2;
    test.each(played)('$name', { retry }, ({ run }) => run());

    test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
      'seed %i: ten runs that ask, with a subagent each, while program, workers and server are killed',
      async (seed) => {
        const chance = chanceOf(seed, 'kills of runs');
        const begun = new Map<string, number>();
        listen(live(), async (what) => {
          begun.set(what, (begun.get(what) ?? 0) + 1);
          for (let moments = chance.within(0, 5); moments > 0; moments -= 1) await moment();
        });
        const { configs } = runsConformanceAgents(() => Promise.resolve());
        const traveller = configs['traveller'] as NonNullable<(typeof configs)[string]>;
        const trips = Array.from({ length: 10 }, (_, at) => `seed-${seed}-${process.pid}-${at}`);
        const asked = new Map<string, Set<string>>();
        let program = programOf(live());
        const outcomes = new Map<string, unknown>();
        const start = (): void => {
          const mine = program;
          for (const trip of trips) {
            if (outcomes.has(trip)) continue;
            const { result, send } = runSubagent(
              traveller,
              `Go [trip ${trip}: charge, ask, guide charge then look_up, look_up]`,
              {
                ...mine.options,
                id: trip,
                onError: () => {},
                onQuestion: async ({ requestId }) => {
                  asked.set(trip, (asked.get(trip) ?? new Set()).add(requestId));
                  await moment();
                  return { text: 'The cheap one' };
                },
              },
            );
            // Each program sends the message, and the run reads it once.
            void send('hear left', { idempotencyKey: 'words' });
            void result.then(({ status, text, toolLedger }) => {
              if (outcomes.has(trip)) return;
              const ledger = toolLedger.map((entry) => `${entry.toolName} ${entry.status}`);
              outcomes.set(trip, { status, text, charge: ledger[0] });
            });
          }
        };
        start();
        for (let kill = 0; kill < 3 && outcomes.size < trips.length; kill += 1) {
          const after = begun.size + chance.within(3, 12);
          while (begun.size < after && outcomes.size < trips.length) await moment();
          if (chance.happens(0.3)) {
            program.kill();
            program = programOf(live());
            start();
          } else if (!engineDies || chance.happens(0.5)) await live().killWorkers();
          else await Promise.all([live().killWorkers(), live().killEngine()]);
        }
        while (outcomes.size < trips.length) await moment();
        for (const trip of trips) {
          expect(outcomes.get(trip)).toEqual({
            status: 'completed',
            text: expect.stringMatching(/^Done: [^,]+, heard left after \d\.$/u),
            charge: expect.stringMatching(/^charge (ok|in_flight)$/u),
          });
          // The permission to start the charge may have died with its process.
          const { charge } = outcomes.get(trip) as { readonly charge: string };
          const times = begun.get(`${trip}/charge`) ?? 0;
          expect([trip, charge === 'charge ok' ? times === 1 : times <= 1]).toEqual([trip, true]);
          expect(begun.get(`${trip}-guide/charge`) ?? 0).toBeLessThanOrEqual(1);
          expect(asked.get(trip)?.size).toBe(1);
        }
      },
    );
  });
}
