// A detached call whose process is killed before and after each entry of the conversation (P4, P6, P9).

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../src/index.ts';
import { instantsOf, textLife, voiceLife, world, type World } from '../../support/crashes.ts';

const RESULT = 'the flat has three rooms';
const IN_DOUBT = 'NEEDS_RECONCILE';
const WORK_MS = 9000;

interface Way {
  readonly kind: 'text' | 'voice';
  readonly idempotent: boolean;
  readonly snapshots: boolean;
}

const WAYS: readonly Way[] = [
  { kind: 'text', idempotent: false, snapshots: false },
  { kind: 'text', idempotent: true, snapshots: true },
  { kind: 'voice', idempotent: false, snapshots: true },
  { kind: 'voice', idempotent: true, snapshots: false },
];

/** Plays the conversation until a process survives to the end. */
async function played({ kind, idempotent, snapshots }: Way, kill?: (of: World) => void) {
  const of = world(snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});
  kill?.(of);
  const keys: string[] = [];
  const tool = defineTool({
    name: 'look_up',
    description: 'Looks something up',
    parameters: z.looseObject({}),
    idempotent,
    detach: { afterMs: 2000 },
    execute: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return new Promise<string>((resolve) =>
        of.environment.scheduler.schedule(() => resolve(RESULT), WORK_MS),
      );
    },
  });
  const wanted = ['use look_up', 'hello'];
  for (let lives = 1; ; lives += 1) {
    const talk = kind === 'text' ? text(of, tool) : voice(of, tool);
    void talk.start().catch(() => {});
    await of.environment.settle();
    for (let round = 0; round < 9 && talk.isAlive(); round += 1) {
      const said = talk.state().transcript.filter(({ role }) => role === 'user').length;
      const next = wanted[said];
      const isDetached = of.entries.some(({ event }) => event.type === 'deadline.detachment');
      if (next !== undefined && (said === 0 || isDetached || round > 6)) talk.says(next);
      await of.environment.settle();
      await talk.listens();
      await of.environment.advance(3000);
    }
    if (!talk.isAlive()) continue;
    const { deliveries } = talk.state();
    const { pendingToolCalls } = talk.session;
    const owes = talk.owes();
    // A process that is killed while it closes never finishes closing.
    const { written } = of;
    await talk.close();
    const { entries } = of;
    const isTold = (about: string): number =>
      entries.filter(
        ({ event }) =>
          (event.type === 'assistant.said' || event.type === 'assistant.cut') &&
          JSON.stringify(event).includes(about),
      ).length;
    return {
      lives,
      written,
      keys,
      detached: entries.filter(({ event }) => event.type === 'deadline.detachment').length,
      heard: entries.filter(({ event }) => event.type === 'delivery.heard').length,
      told: isTold(RESULT) + isTold('is not known'),
      doubts: entries.filter(
        ({ event }) => event.type === 'call.executed' && JSON.stringify(event).includes(IN_DOUBT),
      ).length,
      open: [...pendingToolCalls, ...deliveries.filter(({ state }) => state === 'pending')],
      owes,
    };
  }
}

function text(of: World, tool: ReturnType<typeof defineTool>) {
  const life = textLife(of, { tools: [tool] });
  life.session.parts.subscribe(() => {});
  return Object.assign(life, {
    says: (words: string) => void life.session.sendText(words).catch(() => {}),
    listens: () => Promise.resolve(),
    owes: () => false,
    start: () => life.session.start(),
  });
}

function voice(of: World, tool: ReturnType<typeof defineTool>) {
  const life = voiceLife(of, { tools: [tool] });
  let calls = 0;
  return Object.assign(life, {
    says: (words: string) => void life.model().utterance(words),
    owes: () => life.model().openRequests.length > 0,
    /** The lead agent does what it is asked to do, and the user hears it. */
    async listens() {
      for (let steps = 0; steps < 5 && life.isAlive(); steps += 1) {
        const [request] = life.model().openRequests;
        if (!request) return;
        const said = life.state().transcript.findLast(({ role }) => role === 'user')?.text;
        const isCalled = of.entries.some(({ event }) => event.type === 'tool.called');
        if (said === 'use look_up' && !isCalled && calls === 0) {
          calls += 1;
          life.model().call({ callId: 'call_1', name: 'look_up', arguments: '{}' });
        } else {
          const { about = request.instructions ?? '' } = request;
          const told = [RESULT, 'is not known'].find((words) => about.includes(words));
          await life.speak(told ?? 'Yes.');
        }
        await of.environment.settle();
      }
    },
  });
}

describe.each(WAYS)('by $kind, idempotent: $idempotent, snapshots: $snapshots', async (way) => {
  const { written, ...seen } = await played(way);

  test('delivers the result once if no process dies', () =>
    expect(seen).toMatchObject({ detached: 1, heard: 1, told: 1, open: [], owes: false }));

  test.each(instantsOf(written))(
    'P4, P6: delivers the result, or reports the call in doubt, after a kill %s entry %i',
    async (when, at) => {
      const { keys, open, owes, heard, told, doubts } = await played(way, (of) =>
        of.killAt(at, when),
      );
      expect(open).toEqual([]);
      expect(owes).toBe(false);
      // Nothing happens twice unless the tool allows it.
      expect(new Set(keys).size).toBeLessThanOrEqual(1);
      if (!way.idempotent) {
        expect(keys.length).toBeLessThanOrEqual(1);
        expect(doubts).toBeLessThanOrEqual(1);
      } else expect(doubts).toBe(0);
      expect(heard).toBeLessThanOrEqual(1);
      if (way.kind === 'text') {
        expect(told).toBeGreaterThanOrEqual(1);
        expect(told).toBeLessThanOrEqual(2);
      }
    },
  );
});
