// A tool call at a client, in a session whose process is killed after any of its entries (P6, P9).

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../src/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { type TalkOptions } from '../../support/text-talk.ts';

const RESULT = 'the gate is open';

interface Way {
  readonly of: 'the lead agent' | 'a subagent';
  /** Whether the page outlives the processes or each process gets a new page. */
  readonly page: 'stays' | 'is loaded again';
  readonly idempotent: boolean;
  readonly snapshots: boolean;
}

const WAYS: readonly Way[] = (['the lead agent', 'a subagent'] as const).flatMap((of) =>
  (['stays', 'is loaded again'] as const).flatMap((page) =>
    [false, true].map((idempotent) => ({
      of,
      page,
      idempotent,
      snapshots: idempotent === (of === 'a subagent'),
    })),
  ),
);

function optionsOf({ of, idempotent }: Way): TalkOptions {
  const atPage = { description: 'Opens the gate', runsAt: 'client', idempotent } as const;
  if (of === 'the lead agent')
    return { tools: [defineTool({ name: 'open_gate', parameters: z.object({}), ...atPage })] };
  const script = turns(calls(['open_gate', {}]), ({ results }) => say(JSON.stringify(results)));
  const tools = { open_gate: { inputSchema: z.object({}), ...atPage } };
  return { subagents: { gate: { script, config: { tools } } } };
}

/** A page that carries out the calls that it has claimed, and remembers them. */
class Page {
  readonly name: string;
  readonly done = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }

  /** Claims the open calls, carries them out, and sends their results. */
  async work(life: ReturnType<typeof textLife>, ran: () => void): Promise<void> {
    const { clientCalls } = life.session;
    for (const { id } of clientCalls.list()) {
      if (!(await clientCalls.claim(id, this.name)) || !life.isAlive()) continue;
      if (!this.done.has(id)) ran();
      this.done.add(id);
      await clientCalls.answer(id, this.name, { output: RESULT });
    }
  }
}

/** Plays the conversation until a process survives to the end. */
async function played(way: Way, kill?: (of: World) => void) {
  const of = world(way.snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});
  kill?.(of);
  const options = optionsOf(way);
  const words = way.of === 'a subagent' ? 'use gate' : 'use open_gate';
  let page = new Page('page 1');
  let runs = 0;
  for (let lives = 1; ; lives += 1) {
    if (way.page === 'is loaded again') page = new Page(`page ${lives}`);
    const life = textLife(of, options);
    void life.start().catch(() => {});
    await of.environment.settle();
    for (let round = 0; round < 30 && life.isAlive(); round += 1) {
      if (!life.state().transcript.some(({ role }) => role === 'user'))
        void life.session.sendText(words).catch(() => {});
      await of.environment.settle();
      void page.work(life, () => (runs += 1)).catch(() => {});
      await of.environment.advance(2_000);
    }
    if (!life.isAlive()) continue;
    const open = life.session.clientCalls.list();
    const { written, entries } = of;
    await life.close();
    const told = JSON.stringify(
      entries.flatMap(({ event }) => (event.type === 'assistant.said' ? [event] : [])),
    );
    return {
      runs,
      open,
      written,
      lives,
      result: told.includes(RESULT),
      doubt: told.includes('whether it was done is not known'),
    };
  }
}

test('gives a client that left before a restart the full time to return after the restart', async () => {
  const of = world();
  const options = optionsOf({
    of: 'the lead agent',
    page: 'stays',
    idempotent: false,
    snapshots: false,
  });
  const before = textLife(of, options);
  await before.start();
  await before.type('use open_gate');
  const id = before.session.clientCalls.list()[0]?.id ?? '';
  void before.session.clientCalls.claim(id, 'page');
  await of.environment.settle();
  before.session.clientCalls.left('page');
  await of.environment.settle();
  await before.session.suspend();
  await of.environment.advance(120_000);
  const after = textLife(of, options);
  await after.start();
  await of.environment.advance(20_000);
  const given = after.session.clientCalls.answer(id, 'page', { output: RESULT });
  await of.environment.settle();
  expect(await given).toBe(true);
  expect(after.said().join()).toContain(RESULT);
  await after.close();
});

describe.each(WAYS)(
  'a call from $of on a page that $page (idempotent: $idempotent, snapshots: $snapshots)',
  async (way) => {
    const { written, ...seen } = await played(way);
    test('runs once if no process is killed', () =>
      expect(seen).toMatchObject({ runs: 1, open: [], result: true, doubt: false }));

    const kills = Array.from({ length: written }, (_, index) => index + 1);
    test.each(kills)(
      'P6: returns a result or ends in doubt after a kill at entry %i, and is repeated only if idempotent',
      async (entry) => {
        const { runs, open, result, doubt } = await played(way, (of) => of.killAt(entry, 'after'));
        expect(open).toEqual([]);
        if (way.page === 'stays')
          expect({ runs, result, doubt }).toEqual({ runs: 1, result: true, doubt: false });
        else if (way.idempotent)
          expect({ runs: runs <= 2, result, doubt }).toEqual({
            runs: true,
            result: true,
            doubt: false,
          });
        else
          expect({ runs: runs <= 1, known: result !== doubt }).toEqual({ runs: true, known: true });
      },
    );
  },
);
