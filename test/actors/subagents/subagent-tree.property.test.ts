// Random families under random commands in any order: every wait and every receipt settles, every subagent ends once,
// limits hold, and nothing is left over.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { THE_LEAD, type AwaitResult } from '../../../src/actors/contracts/service-types.ts';
import { by, puppets } from '../../support/puppets.ts';

const LIMITS = {
  maxConcurrentPerSession: 3,
  maxLivePerSession: 6,
  maxDepth: 3,
  inactivityTimeoutMs: 20_000,
  sweepIntervalMs: 5000,
  stateRetentionMs: 30_000,
} as const;

const command = fc.record({
  what: fc.constantFrom(
    'spawn',
    'spawn',
    'spawn',
    'say',
    'ask',
    'wait',
    'watch',
    'send',
    'answer',
    'cancel',
    'kill',
    'pass',
  ),
  who: fc.nat(20),
  other: fc.nat(20),
  choice: fc.nat(3),
});

type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

async function play(commands: readonly Command[]) {
  const stage = puppets({ constraints: LIMITS });
  const { service, delegation, environment, chunks } = stage;
  const ids: string[] = [];
  const names = new Map<string, string>();
  const waits: { settled: AwaitResult | null }[] = [];
  const receipts: { settled: boolean }[] = [];
  const pick = (index: number): string => ids[index % Math.max(1, ids.length)] ?? '';

  const watch = (requester: string | null, targets: string[], mode: 'any' | 'all'): void => {
    const wait: { settled: AwaitResult | null } = { settled: null };
    waits.push(wait);
    void service.await(targets, by(requester), { mode, timeoutMs: 40_000 }).then((result) => {
      expect(wait.settled).toBeNull();
      wait.settled = result;
    });
  };

  const act = async ({ what, who, other, choice }: Command): Promise<void> => {
    const id = pick(who);
    const name = names.get(id) ?? '';
    switch (what) {
      case 'spawn': {
        const caller = ids.length === 0 || choice === 0 ? null : id;
        const fresh = `n${names.size}`;
        const receipt = stage.request(fresh, {
          caller: by(caller),
          ...(choice > 1 ? { workstreamId: 'w' } : {}),
        });
        if (receipt.status === 'rejected') return;
        ids.push(receipt.subagentId);
        names.set(receipt.subagentId, fresh);
        return;
      }
      case 'say':
        if (stage.isThinking(name)) await stage.says(name, 'done');
        return;
      case 'ask':
        if (stage.isThinking(name)) await stage.calls(name, ['request_input', { question: '?' }]);
        return;
      case 'wait':
        if (stage.isThinking(name))
          await stage.calls(name, [
            'wait',
            {
              ids: [pick(other), pick(other + choice)],
              mode: choice % 2 ? 'any' : 'all',
              timeoutMs: 40_000,
            },
          ]);
        return;
      case 'watch':
        if (ids.length > 0) watch(null, [id, pick(other)], choice % 2 ? 'any' : 'all');
        return;
      case 'send': {
        const modes = ['queue', 'steer', 'interrupt'] as const;
        const sent = service.send(
          id,
          { content: 'Hi', mode: modes[choice % 3] ?? 'queue' },
          THE_LEAD,
        );
        if (!sent.ok) return;
        const receipt = { settled: false };
        receipts.push(receipt);
        void sent.receipt.then(() => {
          expect(receipt.settled).toBe(false);
          receipt.settled = true;
        });
        return;
      }
      case 'answer': {
        const { requestId } = stage.look(id)?.pendingRequest ?? {};
        if (requestId) service.send(id, { content: 'So', inResponseTo: requestId }, THE_LEAD);
        return;
      }
      case 'cancel':
        service.cancel(id, THE_LEAD);
        return;
      case 'kill':
        delegation.get(id)?.kill('the test says so');
        return;
      case 'pass':
        await environment.advance(choice * 7000);
    }
  };

  for (const one of commands) {
    await act(one);
    await stage.settle();
    const reports = service.list(THE_LEAD, { includeEnded: true });
    const live = reports.filter(({ endedAt }) => endedAt === null);
    expect(live.length).toBeLessThanOrEqual(LIMITS.maxLivePerSession);
    const running = live.filter(({ state }) => state === 'running');
    expect(running.length).toBeLessThanOrEqual(LIMITS.maxConcurrentPerSession);
    for (const { parentId, depth } of live) {
      expect(depth).toBeLessThanOrEqual(LIMITS.maxDepth);
      // SUBAGENT-TREE-4: a living subagent has a living parent.
      if (parentId !== null) expect(live.map(({ id }) => id)).toContain(parentId);
    }
  }

  // No more actions follow, so time alone has to end every wait.
  await environment.advance(100_000);
  for (const { settled } of waits) expect(settled).not.toBeNull();
  const closed = service.close();
  await environment.advance(10_000);
  await closed;
  await stage.settle();
  for (const { settled } of receipts) expect(settled).toBe(true);
  expect(delegation.waits.count).toBe(0);
  for (const id of ids) {
    const own = chunks.filter(({ subagentId }) => subagentId === id).map(({ type }) => type);
    expect(own[0]).toBe('spawned');
    expect(own.filter((type) => type === 'ended')).toHaveLength(1);
    expect(own.filter((type) => type === 'input.requested').length).toBe(
      own.filter((type) => type === 'input.settled').length,
    );
  }
  expect(stage.timersLeft()).toBe(0);
  expect(stage.errors).toEqual([]);
}

test('SUBAGENT-TREE-3 SUBAGENT-TREE-4 SUBAGENT-TREE-5 WAITS-1 SUBAGENTS-REQUESTS-1 MESSAGES-1 P1 P7: settles every subagent in a random tree', async () => {
  await fc.assert(fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 30 }), play), {
    numRuns: 200,
  });
}, 120_000);
