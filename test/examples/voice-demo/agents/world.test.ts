import { describe, expect, test } from 'vitest';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';

describe('rides', () => {
  test('have a price that depends only on the distance', () => {
    const world = createWorld();
    expect(world.quoteRide('the airport')).toEqual(createWorld().quoteRide('the airport'));
    expect(world.quoteRide('the airport').options[0]?.priceUsd).toBe(12);
    expect(world.quoteRide('my aunt')).toEqual(createWorld().quoteRide('my aunt'));
  });

  test('get unique references', () => {
    const world = createWorld();
    const [first, second] = [world.bookRide('home', 'economy'), world.bookRide('home', 'Premium')];
    expect(first.reference).not.toBe(second.reference);
    expect(second.option.id).toBe('premium');
  });

  test('accept only an offered option', () => {
    expect(() => createWorld().bookRide('home', 'helicopter')).toThrow(
      'There is no option "helicopter"; there are economy, premium.',
    );
  });
});

describe('tables', () => {
  test.each([0, -1, 1.5, 9])('refuse %d guests', (partySize) => {
    expect(() => createWorld().findTables(partySize)).toThrow(/table/);
  });
});

describe('sales', () => {
  test('add up the days of a period', () => {
    const world = createWorld();
    const week = world.sales('2026-11-09', '2026-11-15');
    const first = world.sales('2026-11-09', '2026-11-11');
    const rest = world.sales('2026-11-12', '2026-11-15');
    expect(first.revenueUsd + rest.revenueUsd).toBe(week.revenueUsd);
    expect(first.orders + rest.orders).toBe(week.orders);
    expect(week.days).toBe(7);
    expect([first.bestDay, rest.bestDay]).toContainEqual(week.bestDay);
  });

  test('refuse a period without days', () => {
    expect(() => createWorld().sales('2026-11-15', '2026-11-09')).toThrow('There are no days');
  });
});

describe('refunds', () => {
  test('return a payment only once', () => {
    const world = createWorld();
    expect(world.refund('no. 1042', 640)).toMatchObject({ orderId: '1042', status: 'refunded' });
    expect(world.order('1041')?.status).toBe('delivered');
    expect(() => world.refund('1042', 640)).toThrow('Order 1042 was refunded before.');
  });

  test('return part of a payment, but not more than was paid', () => {
    expect(createWorld().refund('1042', 100)).toMatchObject({ dollars: 100 });
    expect(() => createWorld().refund('1042', 641)).toThrow('Only $640 were paid for it.');
  });

  test('refuse an unknown order', () => {
    expect(() => createWorld().refund('9', 1)).toThrow('There is no order with the number 9.');
  });
});
