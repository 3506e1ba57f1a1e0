// Subagents whose instances a service retains between runs.

import { describe, expect, test } from 'vitest';
import type { SubagentConfig } from '../../../src/index.ts';
import { THE_LEAD } from '../../../src/actors/contracts/service-types.ts';
import { readTask } from '../../../src/testing/index.ts';
import { by, puppets } from '../../support/puppets.ts';

type Stage = ReturnType<typeof puppets>;

/** A configuration that counts its instances. */
function kept(stage: Stage, more: Partial<SubagentConfig> = {}) {
  const seen = { made: 0, disposed: 0 };
  const dispose = (): void => {
    seen.disposed += 1;
  };
  const config = stage.configOf('memo', {
    lifetime: 'session',
    createInstance() {
      seen.made += 1;
      return stage.configOf('memo', { lifetime: 'session', dispose });
    },
    ...more,
  });
  const begin = (description: string): string => {
    const receipt = stage.service.spawn({
      config,
      task: { toolName: 'memo', args: {}, description },
      caller: THE_LEAD,
    });
    if (receipt.status === 'rejected') throw new Error(receipt.error.message);
    return receipt.subagentId;
  };
  return { seen, begin, config };
}

const said = ({ prompts }: Stage) =>
  prompts
    .at(-1)
    ?.prompt.prompt.flatMap(({ role, content }) =>
      role === 'system' || typeof content === 'string'
        ? []
        : content.flatMap((part) =>
            part.type === 'text'
              ? `${role}: ${readTask([{ role, content: part.text }])?.task ?? part.text}`
              : [],
          ),
    );

describe("lifetime: 'session'", () => {
  test(
    'passes the messages of earlier runs to the next run',
    { tags: ['B25', 'B92', 'H21'] },
    async () => {
      const stage = puppets();
      const { begin, seen } = kept(stage);
      begin('Learn');
      await stage.says('memo', 'Learnt');
      begin('Recall');
      await stage.settle();
      expect(said(stage)).toEqual(['user: Learn', 'assistant: Learnt', 'user: Recall']);
      expect(seen).toEqual({ made: 1, disposed: 0 });
      await stage.says('memo', 'Recalled');
      await stage.service.close();
      expect(seen).toEqual({ made: 1, disposed: 1 });
    },
  );

  test(
    'executes runs in order, one at a time, and does not hold a slot for a waiting run',
    { tags: ['BW35', 'BW34'] },
    async () => {
      const stage = puppets({ constraints: { maxConcurrentPerSession: 2, whenFull: 'reject' } });
      const { begin } = kept(stage);
      const [first, second] = [begin('1'), begin('2')];
      await stage.settle();
      expect(stage.look(first)?.state).toBe('running');
      expect(stage.look(second)?.state).toBe('ready');
      // The other slot is free, although a run is waiting.
      const other = stage.spawn('o');
      await stage.settle();
      expect(stage.look(other)?.state).toBe('running');
      await stage.says('memo', 'one');
      expect(stage.look(second)?.state).toBe('running');
      expect(said(stage)).toContain('assistant: one');
    },
  );

  test('skips a subagent that was cancelled in the queue, but keeps the messages of a cancelled run', async () => {
    const stage = puppets();
    const { begin } = kept(stage);
    const [first, second, third] = [begin('1'), begin('2'), begin('3')];
    await stage.calls('memo', ['report_progress', { update: 'x' }]);
    stage.service.cancel(second ?? '', THE_LEAD);
    stage.service.cancel(first ?? '', THE_LEAD);
    await stage.settle();
    expect(stage.look(third ?? '')?.state).toBe('running');
    expect(said(stage)).toEqual(['user: 1', 'user: 3']);
  });

  test('drops whole runs beyond maxHistory, so that the history starts with a user message', async () => {
    const stage = puppets();
    const { begin } = kept(stage, { maxHistory: 3 });
    for (const word of ['1', '2', '3']) {
      begin(word);
      await stage.calls('memo', ['report_progress', { update: 'x' }]);
      await stage.says('memo', `done ${word}`);
    }
    begin('4');
    await stage.settle();
    // Each run has four messages. The two runs do not both fit, and only whole runs are kept.
    expect(said(stage)).toEqual(['user: 4']);
    const roomy = puppets();
    const memo = kept(roomy, { maxHistory: 5 });
    for (const word of ['1', '2', '3']) {
      memo.begin(word);
      await roomy.says('memo', `done ${word}`);
    }
    memo.begin('4');
    await roomy.settle();
    expect(said(roomy)).toEqual([
      'user: 2',
      'assistant: done 2',
      'user: 3',
      'assistant: done 3',
      'user: 4',
    ]);
  });

  test(
    'disposes an instance once if the service closes while it is being created',
    { tags: ['BW12'] },
    async () => {
      const stage = puppets();
      let closed: Promise<void> | undefined;
      let disposed = 0;
      const { begin } = kept(stage, {
        createInstance() {
          closed = stage.service.close();
          return stage.configOf('memo', { dispose: () => void (disposed += 1) });
        },
      });
      begin('1');
      await stage.settle();
      await closed;
      expect(closed).toBeDefined();
      expect(disposed).toBe(1);
      expect(stage.timersLeft()).toBe(0);
    },
  );

  test('fails the run if an instance cannot be created, but tries again in the next run', async () => {
    const stage = puppets();
    let tries = 0;
    const { begin } = kept(stage, {
      createInstance() {
        tries += 1;
        if (tries === 1) throw new Error('no room');
        return stage.configOf('memo', { lifetime: 'session' });
      },
    });
    const first = begin('1');
    await stage.settle();
    expect(stage.look(first)).toMatchObject({
      state: 'failed',
      error: { code: 'PREPARATION_FAILED', message: 'no room' },
    });
    begin('2');
    await stage.says('memo', 'done');
    expect(tries).toBe(2);
  });

  test('WAIT_CYCLE: refuses to let the lock holder wait for a subagent that needs the lock', async () => {
    const stage = puppets();
    const { begin, config } = kept(stage);
    const first = begin('1');
    await stage.settle();
    const receipt = stage.service.spawn({
      config,
      task: { toolName: 'memo', args: {}, description: 'below' },
      caller: by(first),
    });
    const below = receipt.status === 'accepted' ? receipt.subagentId : '';
    await stage.calls('memo', ['wait', { ids: [below] }]);
    expect(stage.waited.get(first)).toMatchObject({
      ok: false,
      error: { code: 'WAIT_CYCLE', message: expect.stringContaining(below) },
    });
  });
});
