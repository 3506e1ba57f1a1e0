// A service's findings reach the user once, whichever entry the process is killed at. The next process does not repeat
// findings that the user has heard.

import { expect, test } from 'vitest';
import { textLife, world, type World } from '../../support/crashes.ts';
import { orderMonitor } from '../../support/order-monitor.ts';

const shipped = { order: 7, say: 'Order 7 was shipped.' };
const nothing = { order: 8 };

const kept = ({ entries }: World, type: string): number =>
  entries.filter(({ event }) => event.type === type).length;

async function begin(of: World) {
  const monitor = orderMonitor();
  const life = textLife(of, { services: [monitor.service] });
  await life.start();
  return { monitor, life };
}

test('P4: does not handle events again in later processes', async () => {
  const of = world();
  const first = await begin(of);
  await first.monitor.happens(shipped);
  await of.environment.advance(5000);
  await first.monitor.happens(nothing);
  await of.environment.advance(5000);
  const told = ['notice.posted', 'delivery.heard', 'invocation.ended', 'place.freed'];
  const before = told.map((type) => kept(of, type));
  expect(before).toEqual([1, 1, 2, 1]);
  let { life } = first;
  for (let process = 2; process <= 3; process += 1) {
    life.kill();
    ({ life } = await begin(of));
    await of.environment.advance(5000);
    expect(told.map((type) => kept(of, type))).toEqual(before);
  }
});

test('P9: turns an accepted event into one notice whenever the process is killed', async () => {
  const play = async (of: World): Promise<number> => {
    const { monitor, life } = await begin(of);
    const from = of.entries.length;
    void monitor.happens(shipped);
    await of.environment.advance(5000);
    if (!life.isAlive()) {
      await begin(of);
      await of.environment.advance(120_000);
    }
    return from;
  };
  const whole = world();
  const from = await play(whole);
  for (let entry = from + 2; entry <= whole.entries.length; entry += 1)
    for (const when of ['before', 'after'] as const) {
      const of = world();
      of.killAt(entry, when);
      await play(of);
      expect([entry, when, kept(of, 'notice.posted'), kept(of, 'delivery.heard')]).toEqual([
        entry,
        when,
        1,
        1,
      ]);
    }
});
