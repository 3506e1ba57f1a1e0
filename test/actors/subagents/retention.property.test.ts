import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  MAX_DELIVERED,
  MAX_DELIVERED_CHARS,
  MAX_UNDELIVERED_CHARS,
  SubagentRegistry,
  SubagentRecord,
  type Admission,
} from '../../../src/actors/subagents/subagent-registry.ts';

const RETENTION_MS = 100;

function record(id: string, lineage: readonly string[] = []): SubagentRecord {
  const definition = { source: {} };
  const place = { id, lineage, definition, callId: null, idempotencyKey: null, startedAt: 0 };
  return new SubagentRecord(
    place as unknown as Admission,
    { step: 0, toSnapshot: () => null } as never,
    { messages: null } as never,
  );
}

function registryAt(now: () => number, stateRetentionMs: number): SubagentRegistry {
  return new SubagentRegistry({ now }, { stateRetentionMs, inactivityTimeoutMs: 0 });
}

const command = fc.record({
  what: fc.constantFrom('add', 'end', 'deliver', 'pass', 'sweep'),
  who: fc.nat(10),
  ms: fc.nat(80),
});

test('RETENTION-1: deletes every result after its retention, but never before its delivery', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const all: SubagentRecord[] = [];
      /** The time since which each has been both ended and delivered. */
      const since = new Map<SubagentRecord, number>();
      let now = 0;
      const registry = registryAt(() => now, RETENTION_MS);
      const note = (one: SubagentRecord): void => {
        if (one.endedAt !== null && one.deliveredAt !== null && !since.has(one))
          since.set(one, now);
      };
      for (const { what, who, ms } of commands) {
        const one = all[who % Math.max(1, all.length)];
        if (what === 'add') {
          const fresh = record(`s${all.length}`);
          all.push(fresh);
          registry.add(fresh);
        } else if (what === 'end' && one?.isLive) {
          registry.ended(one, { status: 'completed', usage: { totalTokens: 0 } } as never, now);
          registry.keepResult(one, now);
          note(one);
        } else if (what === 'deliver' && one) {
          registry.markDelivered(one, now);
          note(one);
        } else if (what === 'pass') now += ms;
        else if (what === 'sweep') {
          const before = registry.all.length;
          const count = registry.forgetDue();
          expect(registry.all.length).toBe(before - count);
          for (const kept of all) {
            const at = since.get(kept);
            const isDue = at !== undefined && now - at >= RETENTION_MS;
            expect(registry.get(kept.id) === undefined).toBe(isDue);
          }
        }
        for (const kept of all) if (!since.has(kept)) expect(registry.get(kept.id)).toBe(kept);
      }
      expect(registry.needsSweep).toBe(all.some((one) => since.has(one) && registry.get(one.id)));
    }),
  );
});

test('RETENTION-2: keeps only the most recently delivered results, and none with a retention of 0', () => {
  const registry = registryAt(() => 0, RETENTION_MS);
  for (let number = 0; number <= MAX_DELIVERED; number += 1) {
    const one = record(`s${number}`);
    registry.add(one);
    registry.ended(one, { status: 'completed', usage: { totalTokens: 0 } } as never, 0);
    registry.keepResult(one, 0);
    registry.markDelivered(one, 0);
  }
  expect(registry.all).toHaveLength(MAX_DELIVERED);
  expect(registry.get('s0')).toBeUndefined();
  const forgetful = registryAt(() => 0, 0);
  const last = record('last');
  forgetful.add(last);
  forgetful.markDelivered(last, 0);
  expect(forgetful.get('last')).toBe(last);
  forgetful.ended(last, { status: 'completed', usage: { totalTokens: 0 } } as never, 0);
  forgetful.keepResult(last, 0);
  expect(forgetful.get('last')).toBeUndefined();
});

test('RETENTION-2: counts the characters of long results', () => {
  const registry = registryAt(() => 0, RETENTION_MS);
  const long = 'x'.repeat(200_000);
  const most = MAX_UNDELIVERED_CHARS / long.length;
  const ended = Array.from({ length: most }, (_, number) => record(`s${number}`));
  for (const one of ended) {
    expect(registry.isFull).toBe(false);
    registry.add(one);
    const outcome = { status: 'completed', output: long, usage: { totalTokens: 0 } };
    registry.ended(one, outcome as never, 0);
    registry.keepResult(one, 0);
  }
  expect(registry.all).toHaveLength(most);
  expect(registry.isFull).toBe(true);
  for (const one of ended) registry.markDelivered(one, 0);
  expect(registry.isFull).toBe(false);
  const { length } = JSON.stringify(registry.toSnapshot());
  expect(length).toBeGreaterThan(MAX_DELIVERED_CHARS / 2);
  expect(length).toBeLessThan(MAX_DELIVERED_CHARS * 1.1);
  expect(registry.get(ended.at(-1)?.id ?? '')).toBeDefined();
});

test('TREE-SNAPSHOT-2: charges the grandparent for a child that was deleted after its parent', () => {
  let now = 0;
  const registry = registryAt(() => now, RETENTION_MS);
  const boss = record('boss');
  const parent = record('parent', ['boss']);
  const child = record('child', ['boss', 'parent']);
  for (const one of [boss, parent, child]) registry.add(one);
  const end = (one: SubagentRecord, totalTokens: number): void => {
    registry.ended(one, { status: 'cancelled', usage: { totalTokens } } as never, now);
    registry.keepResult(one, now);
    registry.markDelivered(one, now);
  };
  end(parent, 10);
  now += RETENTION_MS - 1;
  // The child was given a grace period to stop.
  end(child, 5);
  now += 1;
  expect(registry.forgetDue()).toBe(1);
  now += RETENTION_MS;
  expect(registry.forgetDue()).toBe(1);
  expect(registry.toSnapshot().gone).toMatchObject([{ parentId: 'boss', agents: 2, tokens: 15 }]);
});
