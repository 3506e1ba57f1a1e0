// The deliveries of a session after its process was killed (P4, P9).

import { describe, expect, test } from 'vitest';
import { leadTools } from '../../../src/entries/subagents.ts';
import { createParentSubagentToolset } from '../../../src/index.ts';
import type { Script, ScriptedStep } from '../../../src/testing/index.ts';
import { textLife, world, type World } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { instructionsOf, leadScript, type TalkOptions } from '../../support/text-talk.ts';

const RESULT = 'the parcel is in Lyon';
const WORK_MS = 20_000;

describe('a pending delivery', () => {
  test('P9: keeps the number of its attempts after a kill', async () => {
    const of = world();
    const before = textLife(of);
    await before.session.start();
    before.session.notifyBackground('The order was sent');
    await of.environment.settle();
    const { deliveries } = before.state();
    expect(deliveries).toMatchObject([{ state: 'pending', card: true, attempts: 1 }]);
    before.kill();

    const after = textLife(of);
    await after.session.start();
    expect(after.state().deliveries).toEqual(deliveries);
    await after.close();
  });
});

const BEGINS = {
  'a background call': { begin: 'use parcel', ends: say(RESULT) },
  'a spawned subagent': {
    begin: `use spawn_subagent ${JSON.stringify({ task: 'parcel', contextMode: 'fresh' })}`,
    ends: calls(['complete_task', { result: RESULT }]),
  },
} as const;

describe.each(Object.keys(BEGINS) as (keyof typeof BEGINS)[])(
  '%s whose result the lead agent read and did not tell',
  async (kind) => {
    const { begin, ends } = BEGINS[kind];
    const optionsOf = (of: World): TalkOptions => {
      const script: Script = () =>
        new Promise<ScriptedStep>((resolve) =>
          of.environment.scheduler.schedule(() => resolve(ends), WORK_MS),
        );
      return {
        subagents: { parcel: { script, pending: 'On it.' } },
        tools: leadTools(
          createParentSubagentToolset({ agent: { instructions: instructionsOf('parcel') } }),
        ),
        lead: (prompt) =>
          prompt.prompt.at(-1)?.role === 'tool' &&
          JSON.stringify(prompt.prompt.at(-1)).includes(RESULT)
            ? say('')
            : leadScript(prompt),
      };
    };
    const live = async (of: World) => {
      const wanted = [begin, `use await_subagent ${JSON.stringify({ subagentId: 'sub_1' })}`];
      const said: string[] = [];
      let lives = 0;
      for (;;) {
        lives += 1;
        const life = textLife(of, optionsOf(of));
        const stop = life.session.parts.subscribe((part) => {
          if (part.type === 'text.done' && life.isAlive()) said.push(part.text);
        });
        void life.start().catch(() => {});
        await of.environment.settle();
        for (let round = 0; round < 40 && life.isAlive(); round += 1) {
          const typed = life.state().transcript.filter(({ role }) => role === 'user').length;
          const next = wanted[typed];
          if (next !== undefined && (typed === 0 || life.state().subagents.length > 0))
            void life.session.sendText(next).catch(() => {});
          await of.environment.settle();
          await of.environment.advance(2000);
        }
        stop.unsubscribe();
        if (!life.isAlive()) continue;
        const { deliveries } = life.state();
        const seen = {
          told: said.join('\n').split(RESULT).length - 1,
          waiting: deliveries.filter(({ state }) => state === 'pending').length,
        };
        const { written } = of;
        await life.close();
        return { ...seen, lives, written };
      }
    };
    const { written, told } = await live(world());
    test('comes as a delivery when no process dies', () => expect(told).toBe(1));

    const entries = Array.from({ length: written }, (_, index) => index + 1);

    test.each(entries)('P4: comes, or waits, after a kill at entry %i', async (entry) => {
      const of = world();
      of.killAt(entry, 'after');
      const seen = await live(of);
      expect(seen.told + seen.waiting).toBeGreaterThan(0);
    });
  },
);
