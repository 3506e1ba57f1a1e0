// The parts of the default app beside the conversation: a service, whose agent examines events from outside,
// and a program, which runs errands with its own subagents and tells their results.

import { THE_LEAD } from '../../actors/contracts/service-types.ts';
import { createSubagentService } from '../../actors/subagents/subagent-service.ts';
import type { ServiceSubagentConfig } from '../../actors/services/service-config.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import { chanceOf } from '../doubles/chance.ts';
import type { AppContext, SimulatedApp, SimulatedProgram } from './log/app.ts';

type Tools = NonNullable<SubagentConfig['tools']>;

/** The number of events in the life of each process, and the time within which they happen. */
const HAPPENINGS = 2;
const WITHIN_MS = 20_000;

/** Creates a service with events at chosen times. */
export function watchmanOf(tools: Tools, { seed }: AppContext): ServiceSubagentConfig {
  return {
    agent: {
      name: 'watchman',
      instructions: 'You look at what happens in the yard, and say what matters.',
      tools,
      interactive: true,
      maxSteps: 5,
      inputTimeout: 60_000,
      toolTimeout: 20_000,
    },
    eventSources: [
      {
        name: 'yard',
        start(emit, signal, { environment: { clock, scheduler } }) {
          const begun = clock.now();
          const chance = chanceOf(seed, 'yard', begun);
          for (let nth = 1; nth <= HAPPENINGS; nth += 1) {
            const priority = chance.happens(0.3) ? 'urgent' : 'normal';
            const data = { parcel: `${begun % 10_000_000}-${nth}` };
            const cancel = scheduler.schedule(
              () => void emit({ source: 'yard', type: 'parcel.moved', data, priority }),
              chance.within(500, WITHIN_MS),
            );
            signal.addEventListener('abort', cancel);
          }
        },
      },
    ],
  };
}

/** Creates a program: it continues its errands after a crash, and begins new ones by the clock. */
export function errandsOf(
  tools: Tools,
  { seed, environment: { clock, scheduler }, simulated }: AppContext,
): NonNullable<SimulatedApp['program']> {
  const errand = simulated({
    name: 'errand',
    instructions: 'You run an errand.',
    tools,
    maxSteps: 6,
    toolTimeout: 20_000,
  });
  return ({ runtime, session }): SimulatedProgram => {
    const service = createSubagentService({ runtime, id: 'errands', configs: { errand } });
    const waiting = new Set<string>(['what there was']);
    const problems: string[] = [];
    let isClosed = false;
    const bring = async (subagentId: string): Promise<void> => {
      waiting.add(subagentId);
      for (;;) {
        const waited = await service.await([subagentId], THE_LEAD);
        if (isClosed || !waited.ok) return;
        const [report] = waited.reports;
        // No user answers it: it continues when its time is over.
        if (waited.why === 'asked') await new Promise<void>((go) => scheduler.schedule(go, 1000));
        if (!report || report.endedAt === null) continue;
        waiting.delete(subagentId);
        session.notifyBackground(`${subagentId}: ${report.outcome?.text || report.state}`);
        return;
      }
    };
    const begin = async (): Promise<void> => {
      const { resumed, ended, lost } = await service.recover();
      for (const { subagentId, reason } of lost) problems.push(`${subagentId} is lost: ${reason}`);
      const known = service.list(THE_LEAD, { includeEnded: true });
      // Results of child subagents are told to their parents.
      const errands = new Set(known.flatMap(({ id, parentId }) => (parentId === null ? [id] : [])));
      for (const id of [...resumed, ...ended]) if (errands.has(id)) void bring(id);
      waiting.delete('what there was');
      const begun = clock.now();
      const chance = chanceOf(seed, 'errands', begun);
      for (let nth = 1; nth <= HAPPENINGS; nth += 1)
        scheduler.schedule(
          () => {
            const topic = `${begun % 10_000_000}-${nth}`;
            const description = `Run errand ${topic}`;
            const task = { toolName: 'errand', args: { topic }, description };
            const receipt = service.spawn({ config: errand, task, caller: THE_LEAD });
            if (receipt.status === 'accepted') void bring(receipt.subagentId);
          },
          chance.within(500, WITHIN_MS),
        );
    };
    begin().catch((error: unknown) => problems.push(String(error)));
    return {
      unfinished: () => [
        ...problems,
        ...[...waiting].map((subagentId) => `the program waits for ${subagentId}`),
      ],
      close() {
        isClosed = true;
        return service.close();
      },
    };
  };
}
