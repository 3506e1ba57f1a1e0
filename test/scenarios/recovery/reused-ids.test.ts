// An id that is reused with a different request, in the same process and in later ones.

import { describe, expect, it } from 'vitest';
import { createRuntime, type Journal, type SubagentConfig } from '../../../src/index.ts';
import {
  THE_LEAD,
  type SpawnRequest,
  createSubagentService,
  runSubagent,
} from '../../../src/entries/subagents.ts';
import { isAskedFor } from '../../../src/actors/ports/journal.ts';
import { redactingJournal, type JournalEntry } from '../../../src/entries/journal.ts';
import { simulatedEnvironment, type Script } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { castOf, configOf } from '../../support/text-talk.ts';

const asks: Script = turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
  say(`Booked ${JSON.stringify(results[0])}`),
);
const model = castOf({ subagents: { order: { script: asks }, report: { script: asks } } });
const order = configOf('order', { interactive: true });
const report = configOf('report', { interactive: true });
const REUSED = { status: 'lost', error: { code: 'ID_REUSED', retryable: false } };

/** Processes that use one journal, one after the other. */
function place(wrap: (journal: Journal) => Journal = (journal) => journal) {
  const environment = simulatedEnvironment();
  let entries: string[] = [];
  const read = (): JournalEntry[] => entries.map((text) => JSON.parse(text) as JournalEntry);
  const journal = wrap({
    append: (entry) => void entries.push(JSON.stringify(entry)),
    read: (query = {}) => read().filter((entry) => isAskedFor(query, entry)),
  });
  return {
    environment,
    read,
    rewrite(change: (text: string) => string) {
      entries = entries.map(change);
    },
    runtime: () => createRuntime({ environment, journal }),
  };
}

interface Asked {
  readonly answers: ((text: string) => void)[];
}

function run(
  runtime: ReturnType<typeof createRuntime>,
  [config, task]: readonly [SubagentConfig, Parameters<typeof runSubagent>[1]],
  { answers }: Asked = { answers: [] },
  by = 'ann',
) {
  return runSubagent(config, task, {
    id: 'order-17',
    runtime,
    model,
    by,
    onQuestion: () => new Promise((resolve) => answers.push((text) => resolve({ text }))),
  });
}

const others: readonly (readonly [string, readonly [SubagentConfig, object | string]])[] = [
  ['another subagent', [report, 'Order it']],
  ['another description', [order, 'Order two']],
  ['other inputs', [order, { description: 'Order it', args: { class: 1 } }]],
];

describe('RUN-SUBAGENT-KR-1: a run whose id is used again', () => {
  it.each(others)('refuses %s in the same process and continues', async (_, other) => {
    const { environment, runtime: start } = place();
    const runtime = start();
    const asked: Asked = { answers: [] };
    const first = run(runtime, [order, 'Order it'], asked);
    await environment.settle();
    const second = run(runtime, other as never);
    expect(await second.result).toMatchObject(REUSED);
    expect(await second.send('Hurry')).toMatchObject({ applied: false });
    second.cancel('not mine');
    asked.answers[0]?.('comfort');
    await environment.settle();
    expect(await first.result).toMatchObject({ status: 'completed' });
  });

  it.each(others)('refuses %s in a later process without losing work', async (_, other) => {
    const { environment, read, runtime } = place();
    void run(runtime(), [order, 'Order it']);
    await environment.settle();
    const before = read().length;
    const shown: Asked = { answers: [] };
    expect(await run(runtime(), other as never, shown).result).toMatchObject(REUSED);
    await environment.settle();
    expect(shown.answers).toEqual([]);
    expect(read().length).toBe(before);
    const asked: Asked = { answers: [] };
    const again = run(runtime(), [order, 'Order it'], asked, 'bob');
    await environment.settle();
    asked.answers[0]?.('comfort');
    await environment.settle();
    expect(await again.result).toMatchObject({ status: 'completed', steps: 2 });
    // The run has ended, but its id still belongs to it.
    expect(await run(runtime(), other as never).result).toMatchObject(REUSED);
    expect(await run(runtime(), [order, 'Order it']).result).toMatchObject({ steps: 2 });
  });

  it('accepts the same inputs with a different key order or from another user', async () => {
    const { environment, runtime: start } = place();
    const runtime = start();
    const task = (args: object) => ({ description: 'Order it', args: { ...args } });
    const first = run(runtime, [order, task({ a: 1, b: { c: 2, d: undefined } })]);
    await environment.settle();
    expect(run(runtime, [order, task({ b: { c: 2 }, a: 1 })], undefined, 'bob')).toBe(first);
  });

  it('accepts any request if the journal is from an earlier version', async () => {
    const { environment, rewrite, runtime } = place();
    void run(runtime(), [order, 'Order it']);
    await environment.settle();
    rewrite((text) => text.replace(/"requestDigest":"\w+",/, ''));
    const asked: Asked = { answers: [] };
    const later = run(runtime(), [order, 'Order two'], asked);
    await environment.settle();
    asked.answers[0]?.('comfort');
    await environment.settle();
    expect(await later.result).toMatchObject({ status: 'completed' });
  });

  it('REDACTING-JOURNAL-4: accepts its own request again even if the journal redacted its secrets', async () => {
    const { environment, read, runtime } = place((journal) => redactingJournal(journal));
    const wanted = { description: 'Order it', args: { password: '1234' } };
    void run(runtime(), [order, wanted]);
    await environment.settle();
    expect(JSON.stringify(read())).not.toContain('1234');
    expect(read()[0]?.event).toMatchObject({ requestDigest: '[redacted]' });
    const asked: Asked = { answers: [] };
    const later = run(runtime(), [order, wanted], asked);
    await environment.settle();
    asked.answers[0]?.('comfort');
    await environment.settle();
    expect(await later.result).toMatchObject({ status: 'completed' });
  });
});

describe('REFUSAL-1: a service', () => {
  it('refuses another request with a used key, both in the same process and in a later one', async () => {
    const { environment, runtime } = place();
    const serve = async (id: string) => {
      const service = createSubagentService({ runtime: runtime(), id, model, configs: { order } });
      await service.recover();
      return (change: Partial<SpawnRequest> = {}) =>
        service.spawn({
          config: order,
          task: { toolName: 'order', args: {}, description: 'Order it' },
          caller: THE_LEAD,
          idempotencyKey: 'k',
          ...change,
        });
    };
    const reused = { status: 'rejected', error: { code: 'ID_REUSED', retryable: false } };
    const task = { toolName: 'order', args: { class: 1 }, description: 'Order it' };
    const first = await serve('orders');
    const accepted = first();
    expect(accepted).toMatchObject({ status: 'accepted' });
    await environment.settle();
    const later = await serve('orders');
    for (const spawn of [first, later]) {
      expect(spawn({ task })).toMatchObject(reused);
      expect(spawn({ config: report })).toMatchObject(reused);
      expect(spawn({ by: 'bob' })).toEqual({ ...accepted, isRepeat: true });
      expect(spawn({ config: { ...order, maxSteps: 3 } })).toEqual({ ...accepted, isRepeat: true });
      expect(spawn({ task, idempotencyKey: 'other' })).toMatchObject({ status: 'accepted' });
    }
    // Another journal does not know the subagent.
    expect((await serve('others'))({ task })).toMatchObject({ status: 'accepted' });
  });
});
