// An app that a seed selects: any valid combination of the options for a subagent, a tool and a session. The
// simulation's default app covers only a few of these combinations.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool, type SubagentConfig } from '../../../../src/index.ts';
import type { SimulatedApp, AppContext } from '../../../../src/testing/simulate/log/app.ts';
import { chanceOf } from '../../../../src/testing/doubles/chance.ts';

const NAMES = ['refund', 'search', 'book', 'watch', 'write'] as const;

/** Returns the app for a seed. */
export function anyApp({ seed }: Pick<AppContext, 'seed'>): SimulatedApp {
  const chanceFor = (what: string) => chanceOf(seed, 'any app', what);
  const happens = (what: string, share: number) => chanceFor(what).happens(share);
  const oneOf = <T>(what: string, values: readonly T[]): T => {
    const value = values[Math.floor(chanceFor(what).within(0, values.length * 1000 - 1) / 1000)];
    if (value === undefined) throw new Error(`No value for ${what}`);
    return value;
  };
  /** Sets the property `name` to one of these values in 40 % of the apps. */
  const maybe = <K extends string, T>(
    of: string,
    name: K,
    values: readonly T[],
  ): Readonly<Partial<Record<K, T>>> =>
    (happens(`${of} ${name}?`, 0.4) ? { [name]: oneOf(`${of} ${name}`, values) } : {}) as Readonly<
      Partial<Record<K, T>>
    >;

  const names = NAMES.slice(0, oneOf('how many', [1, 2, 3, 5]));
  const toolOf = (of: string) => ({
    ...tool({
      description: `Does what ${of} needs`,
      inputSchema: oneOf(`${of} input`, [
        z.object({ id: z.string() }),
        z.object({ id: z.string(), cents: z.number().int().min(1).max(5000) }),
        z.object({ what: z.enum(['one', 'two']), note: z.string().optional() }),
        z.object({}),
      ]) as z.ZodObject,
      needsApproval: happens(`${of} approval`, 0.4),
      execute: (input) => ({ done: input }),
    }),
    ...(happens(`${of} idempotent`, 0.3) && { idempotent: true }),
  });
  const configOf = (name: string): SubagentConfig => ({
    name: oneOf(`${name} name`, [name, `${name}er`]),
    instructions: `You ${name}.`,
    tools: Object.fromEntries(
      Array.from({ length: oneOf(`${name} tools`, [0, 1, 2, 3]) }, (_, index) => [
        `do_${name}_${index}`,
        toolOf(`${name} ${index}`),
      ]),
    ),
    interactive: happens(`${name} interactive`, 0.6),
    maxSteps: oneOf(`${name} steps`, [2, 4, 8]),
    toolTimeout: 20_000,
    ...maybe(name, 'inputTimeout', [3000, 20_000, 60_000]),
    ...maybe(name, 'timeout', [15_000, 60_000]),
    ...maybe(name, 'maxInputRetries', [1, 2]),
    ...maybe(name, 'context', ['none', 'summary', 'recent', 'fork'] as const),
    ...maybe(name, 'completion', ['tool'] as const),
    ...maybe(name, 'stream', [true]),
    ...maybe(name, 'onBargeIn', ['cancel'] as const),
    ...maybe(name, 'duplicates', ['reject', 'replace', 'confirm'] as const),
    ...maybe(name, 'lineage', [true]),
    ...maybe(name, 'lifetime', ['session'] as const),
    ...maybe(name, 'maxHistory', [4, 20]),
    ...maybe(name, 'consolidate', [false]),
    ...maybe(name, 'delivery', ['interrupt', 'silent', 'skip_if_busy'] as const),
    ...maybe(name, 'speakProgress', ['milestones', 'all'] as const),
    ...maybe(name, 'structured', ['off'] as const),
    ...maybe(name, 'outputSchema', [
      z.object({ found: z.string() }),
      z.object({ ok: z.boolean(), count: z.number().int().min(0).max(9) }),
    ]),
    ...maybe(name, 'retry', [{ maxAttempts: 1 }, { maxAttempts: 5, baseDelayMs: 100 }]),
    ...maybe(name, 'budget', [{ steps: 2 }, { tokens: 500 }, { timeMs: 20_000 }]),
    ...(happens(`${name} may hang`, 0.4) && {
      inactivityTimeoutMs: 10_000,
      ...maybe(name, 'onHung', ['cancel'] as const),
    }),
    ...maybe(name, 'runs', ['jobs'] as const),
    ...maybe(name, 'title', [() => `The work of ${name}`]),
  });
  const leadTools = names.map((name) =>
    defineTool({
      name,
      description: `Does ${name}`,
      parameters: oneOf(`${name} task`, [
        z.object({ task: z.string() }),
        z.object({ task: z.string(), urgent: z.boolean().optional() }),
        z.object({}),
      ]) as z.ZodObject,
      execution: 'background',
      ...maybe(`${name} tool`, 'pendingMessage', ['On it.']),
      ...maybe(`${name} tool`, 'delivery', ['interrupt', 'silent'] as const),
      ...maybe(`${name} tool`, 'consolidate', [false]),
    }),
  );
  const agent = (name: string) => ({ name, instructions: `You are ${name}.`, tools: leadTools });
  return {
    agents: happens('a second agent', 0.3) ? [agent('host'), agent('clerk')] : [agent('host')],
    subagentConfigs: Object.fromEntries(names.map((name) => [name, configOf(name)])),
    limits: {
      ...maybe('limits', 'maxConcurrentPerSession', [1, 2]),
      ...maybe('limits', 'maxLivePerSession', [2, 4]),
      ...maybe('limits', 'whenFull', ['reject'] as const),
      ...maybe('limits', 'maxDeliveries', [20]),
      ...maybe('limits', 'sweepIntervalMs', [5000]),
      ...maybe('limits', 'stateRetentionMs', [0, 5000]),
    },
  };
}
