import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  SubagentRegistry,
  SubagentRecord,
  type Admission,
} from '../../../src/actors/subagents/subagent-registry.ts';
import { MAX_DELIVERED, Retention } from '../../../src/actors/subagents/retention.ts';

const RETENTION_MS = 100;

function record(id: string, lineage: readonly string[] = []): SubagentRecord {
  const place = { id, lineage, callId: null, idempotencyKey: null, startedAt: 0 };
  return new SubagentRecord(
    place as unknown as Admission,
    { step: 0 } as never,
    { messages: null } as never,
  );
}

const command = fc.record({
  what: fc.constantFrom('add', 'end', 'deliver', 'pass', 'sweep'),
  who: fc.nat(10),
  ms: fc.nat(80),
});

test('RETENTION-1: never before it was delivered, always once it was long enough ago', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const registry = new SubagentRegistry();
      const retention = new Retention(registry, RETENTION_MS);
      const all: SubagentRecord[] = [];
      /** Since when each is both ended and delivered. */
      const since = new Map<SubagentRecord, number>();
      let now = 0;
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
          retention.ended(one, now);
          note(one);
        } else if (what === 'deliver' && one) {
          retention.delivered(one, now);
          note(one);
        } else if (what === 'pass') now += ms;
        else if (what === 'sweep') {
          const before = registry.all.length;
          const count = retention.sweep(now);
          expect(registry.all.length).toBe(before - count);
          for (const kept of all) {
            const at = since.get(kept);
            const isDue = at !== undefined && now - at >= RETENTION_MS;
            expect(registry.get(kept.id) === undefined).toBe(isDue);
          }
        }
        for (const kept of all) if (!since.has(kept)) expect(registry.get(kept.id)).toBe(kept);
      }
      expect(retention.hasDelivered).toBe(
        all.some((one) => since.has(one) && registry.get(one.id)),
      );
    }),
  );
});

test('RETENTION-2: of those delivered the last are kept; 0 keeps none', () => {
  const registry = new SubagentRegistry();
  const retention = new Retention(registry, RETENTION_MS);
  const forgetful = new Retention(registry, 0);
  for (let number = 0; number <= MAX_DELIVERED; number += 1) {
    const one = record(`s${number}`);
    registry.add(one);
    registry.ended(one, { status: 'completed', usage: { totalTokens: 0 } } as never, 0);
    retention.ended(one, 0);
    retention.delivered(one, 0);
  }
  expect(registry.all).toHaveLength(MAX_DELIVERED);
  expect(registry.get('s0')).toBeUndefined();
  const last = record('last');
  registry.add(last);
  forgetful.delivered(last, 0);
  expect(registry.get('last')).toBe(last);
  registry.ended(last, { status: 'completed', usage: { totalTokens: 0 } } as never, 0);
  forgetful.ended(last, 0);
  expect(registry.get('last')).toBeUndefined();
});
