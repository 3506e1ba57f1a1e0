// One life of a program with a service. The program receives the waiting results and requests one order.
import {
  THE_LEAD,
  type SubagentServiceOptions,
  createSubagentService,
} from '../../src/entries/subagents.ts';
import type { SubagentConfig } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { turns, type World } from './crashes.ts';
import { calls, never, say } from './subagent-runs.ts';
import { castOf, configOf } from './text-talk.ts';

export interface Work {
  readonly script: Script;
  readonly config?: Partial<SubagentConfig>;
}

/** Plays one life of the program, which receives the waiting results and requests one order. */
export function programLife(
  of: World,
  { script, config }: Work,
  options: Partial<SubagentServiceOptions> = {},
) {
  const { process, runtime } = of.begin();
  const order = configOf('order', config);
  const asked: string[] = [];
  const errors: unknown[] = [];
  const service = createSubagentService({
    runtime,
    id: 'orders',
    model: castOf({ subagents: { order: { script } } }),
    configs: { order },
    onQuestion: ({ requestId }) => {
      asked.push(requestId);
      return never();
    },
    onError: (error) => errors.push(error),
    ...options,
  });
  /** The key identifies it as the same order in every life. */
  const wanted = () => {
    const receipt = service.spawn({
      config: order,
      task: { toolName: 'order', args: {}, description: 'Order it' },
      caller: THE_LEAD,
      idempotencyKey: 'order-17',
    });
    if (receipt.status === 'rejected') throw new Error(receipt.error.message);
    return receipt.subagentId;
  };
  const resultOf = async (id: string) => {
    const waited = service.await([id], THE_LEAD);
    await of.environment.settle();
    const found = await Promise.race([waited, Promise.resolve(null)]);
    return found?.ok ? found.reports[0]?.result : found;
  };
  return {
    service,
    asked,
    errors,
    wanted,
    resultOf,
    isAlive: () => process.isAlive,
    kill: () => process.kill(),
    close: async () => {
      const closed = service.close();
      await of.environment.advance(60_000);
      await closed;
    },
  };
}

export const askingOrder: Work = {
  script: turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
    say(`Booked ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true },
};
