// SESSION-SERVICES-4: a service that is missing in one deployment and present again in the next.

import { describe, expect, test } from 'vitest';
import type { ServiceSubagentConfig } from '../../../src/index.ts';
import { textLife, world, type World } from '../../support/crashes.ts';
import { orderMonitor } from '../../support/order-monitor.ts';
import { calls, never, simpleTool } from '../../support/subagent-runs.ts';

const UNIT = 'ses/service:order_monitor';

const shipped = (order: number) => ({ order, say: `Order ${order} was shipped.` });

async function begin(of: World, services: readonly ServiceSubagentConfig[]) {
  const life = textLife(of, { services });
  await life.start();
  await of.environment.settle();
  return life;
}

/** Returns the numbers of the unit's entries, including trimmed ones, and the messages that were delivered. */
async function play(of: World, { isClosed = false } = {}) {
  const seqs: number[] = [];
  let seen = 0;
  const look = (): void => {
    const fresh = of.entries.slice(-(of.written - seen));
    seen = of.written;
    for (const { unit, seq } of fresh) if (unit === UNIT) seqs.push(seq);
  };
  // The service's agent never finishes with the first event.
  const first = orderMonitor({ script: () => calls(['look', {}]) });
  const agent = { ...first.service.agent, tools: { look: simpleTool(never) } };
  let life = await begin(of, [{ ...first.service, agent }]);
  void first.happens(shipped(1));
  void first.happens(shipped(2));
  await of.environment.settle();
  look();
  if (isClosed) {
    const closed = life.session.close();
    await of.environment.advance(60_000);
    await closed;
  } else await life.session.suspend();
  look();
  // Two processes whose code does not contain the service.
  for (let process = 1; process <= 2; process += 1) {
    life = await begin(of, []);
    await life.type('hello');
    await life.session.suspend();
    look();
  }
  const without = life.errors;
  const again = orderMonitor();
  life = await begin(of, [again.service]);
  void again.happens(shipped(3));
  await of.environment.advance(60_000);
  look();
  return { seqs, without, told: life.said().filter((said) => said.includes('shipped')), life };
}

const inOrder = (seqs: readonly number[]) => seqs.map((_, index) => index + 1);

describe.each([
  ['all entries', {}],
  ['the last snapshot', { snapshots: { afterEntries: 1000, trim: true } }],
] as const)('a service without its code, resumed from %s', (_, on) => {
  test('keeps its events, numbered without gaps, until its code is available again', async () => {
    const { seqs, without, told, life } = await play(world(on));
    expect(seqs.length).toBeGreaterThan(4);
    expect(seqs).toEqual(inOrder(seqs));
    expect(without.map(({ error }) => String(error)).join('\n')).toContain(
      '2 event(s) that the service "order_monitor" has not looked at',
    );
    // At that time, no code contained the agent that handled the first event.
    expect(told.join('\n')).toContain('Order 2');
    expect(told.join('\n')).toContain('Order 3');
    await life.session.suspend();
  });

  test('drops its events, numbered without gaps, if the session was closed', async () => {
    const { seqs, without, told, life } = await play(world(on), { isClosed: true });
    expect(seqs).toEqual(inOrder(seqs));
    expect(without).toEqual([]);
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('Order 3');
    await life.session.suspend();
  });
});

test('remembers how often it has tried an event that a limit refused', async () => {
  const of = world({ snapshots: { afterEntries: 1000, trim: true } });
  const config = { maxInvocations: 100 };
  const first = orderMonitor(config);
  const before = textLife(of, { services: [first.service], limits: { maxTotalPerSession: 1 } });
  await before.start();
  void first.happens(shipped(1));
  await of.environment.settle();
  void first.happens(shipped(2));
  // As many refusals as the default allows.
  while (of.entries.filter(({ event }) => event.type === 'invocation.refused').length < 12)
    await of.environment.advance(1000);
  before.kill();
  const without = await begin(of, []);
  expect(without.errors.map(({ error }) => String(error)).join()).toContain('1 event(s)');
  await without.session.suspend();
  const again = orderMonitor(config);
  const life = await begin(of, [again.service]);
  await of.environment.advance(120_000);
  expect(life.said().join()).toContain('Order 2');
  await life.session.suspend();
});

test('SERVICE-MACHINE-1: drops waiting events and reports them when the session closes', async () => {
  const of = world();
  const first = orderMonitor();
  const before = await begin(of, [first.service]);
  void first.happens(shipped(1));
  await of.environment.advance(60_000);
  expect(before.said().join()).toContain('Order 1');
  before.kill();
  const second = orderMonitor({ script: () => new Promise(() => {}) });
  const during = await begin(of, [second.service]);
  void second.happens(shipped(2));
  void second.happens(shipped(3));
  await of.environment.settle();
  during.kill();
  const life = await begin(of, []);
  const closed = life.session.close();
  await of.environment.advance(60_000);
  await closed;
  const dropped = life.events.flatMap((event) =>
    event.type === 'service.dropped' ? [event.event] : [],
  );
  expect(dropped).toMatchObject([
    { service: 'order_monitor', reason: 'stopped' },
    { service: 'order_monitor', reason: 'stopped' },
  ]);
  expect(new Set(dropped.map(({ eventId }) => eventId)).size).toBe(2);
});
