// MESSAGES-2: a message with a key is delivered once, and its sender learns when it is in the journal.

import { expect, test } from 'vitest';
import { THE_LEAD, createSubagentService } from '../../../src/entries/subagents.ts';
import {
  createRuntime,
  memoryJournal,
  createChildSubagentToolset,
  createParentSubagentToolset,
} from '../../../src/index.ts';
import { ownedService } from '../../../src/actors/subagents/subagent-service.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { gatedJournal } from '../../support/journals.ts';
import { calls, never, simpleTool } from '../../support/subagent-runs.ts';
import { castOf, configOf } from '../../support/text-talk.ts';

async function atWork({ call = ['look', {}] }: { call?: Parameters<typeof calls>[0] } = {}) {
  const environment = simulatedEnvironment();
  const journal = gatedJournal();
  const order = configOf('order', {
    tools: { look: simpleTool(never), ...createChildSubagentToolset() },
  });
  const service = createSubagentService({
    runtime: createRuntime({ environment, journal }),
    id: 'orders',
    model: castOf({ subagents: { order: { script: () => calls(call) } } }),
  });
  await service.recover();
  const spawn = (): string => {
    const receipt = service.spawn({
      config: order,
      task: { toolName: 'order', args: {}, description: 'Order it' },
      caller: THE_LEAD,
    });
    return receipt.status === 'accepted' ? receipt.subagentId : '';
  };
  const id = spawn();
  await environment.settle();
  const told = (): string[] =>
    journal.kept.flatMap(({ event }) => ('messageId' in event ? String(event.messageId) : []));
  return { environment, journal, service, spawn, id, told };
}

/** Tells whether a promise has settled by now. */
async function isSettled(environment: { settle(): Promise<void> }, promise: Promise<unknown>) {
  let settled = false;
  void promise.then(() => (settled = true));
  await environment.settle();
  return settled;
}

test('MESSAGES-2: writes one entry and returns one receipt for messages with the same key', async () => {
  const { environment, service, id, told } = await atWork();
  const message = { content: 'Hurry', mode: 'interrupt', idempotencyKey: 'k' } as const;
  const sent = [1, 2].map(() => service.send(id, message, THE_LEAD));
  await environment.settle();
  sent.push(service.send(id, message, THE_LEAD));
  service.send(id, { content: 'Hurry' }, THE_LEAD);
  await environment.settle();
  expect(sent.map((one) => one.ok && one.messageId)).toEqual(Array(3).fill(`msg_${id}_k`));
  const receipts = await Promise.all(sent.flatMap((one) => (one.ok ? [one.receipt] : [])));
  const applied = { applied: true, step: 2 };
  expect(receipts).toEqual([applied, applied, applied]);
  expect(told().filter((messageId) => messageId === `msg_${id}_k`)).toHaveLength(1);
  expect(told()).toHaveLength(2);
});

test('MESSAGES-2: treats a key that is used for another subagent as a new message', async () => {
  const { environment, service, spawn, id, told } = await atWork();
  const other = spawn();
  await environment.settle();
  const message = { content: 'Hurry', mode: 'queue', idempotencyKey: 'k' } as const;
  const sent = [id, other].map((one) => service.send(one, message, THE_LEAD));
  await environment.settle();
  expect(new Set(told())).toEqual(new Set(sent.map((one) => one.ok && one.messageId)));
  expect(told()).toHaveLength(2);
});

test('MESSAGES-2: treats two answers with the same key as one, even while the first is being sent', async () => {
  const { environment, journal, service, id, told } = await atWork({
    call: ['request_input', { question: 'Which?' }],
  });
  const checked = service.check(id, THE_LEAD);
  const inResponseTo = (checked.ok && checked.report.pendingRequest?.requestId) || '';
  const answer = { content: 'Rome', inResponseTo, idempotencyKey: 'k' };
  journal.shut();
  const sent = [1, 2].map(() => service.send(id, answer, THE_LEAD));
  const isWritten = sent.map((one) => isSettled(environment, one.ok ? one.written : never()));
  expect(await Promise.all(isWritten)).toEqual([false, false]);
  journal.open();
  await environment.settle();
  sent.push(service.send(id, answer, THE_LEAD));
  for (const one of sent)
    expect(one).toMatchObject({ ok: true, resolvedPending: true, messageId: `msg_${id}_k` });
  for (const one of sent) if (one.ok) await one.written;
  expect(told()).toEqual([`msg_${id}_k`]);
});

test('SUBAGENT-3: does not wake a parked subagent for a message that it has already received', async () => {
  const environment = simulatedEnvironment();
  const journal = memoryJournal({ keep: Infinity });
  const message = { content: 'Hurry', mode: 'queue', idempotencyKey: 'k' } as const;
  const begin = async () => {
    const service = ownedService({
      runtime: createRuntime({ environment, journal }),
      id: 'orders',
      configs: { order: configOf('order', { interactive: true }) },
      model: castOf({
        subagents: { order: { script: () => calls(['ask_user', { question: 'Which?' }]) } },
      }),
      onQuestion: never,
    });
    await service.recover();
    return service;
  };
  const first = await begin();
  const receipt = first.spawn({
    config: configOf('order', { interactive: true }),
    task: { toolName: 'order', args: {}, description: 'Order it' },
    caller: THE_LEAD,
  });
  const id = receipt.status === 'accepted' ? receipt.subagentId : '';
  await environment.settle();
  first.send(id, message, THE_LEAD);
  await environment.settle();
  void first.suspend();
  await environment.settle();
  const second = await begin();
  await environment.settle();
  second.send(id, message, THE_LEAD);
  await environment.settle();
  expect(second.toSnapshot()?.subagents).toMatchObject([{ rest: { life: { isParked: true } } }]);
});

test('MESSAGES-3: settles the pending writes of a released subagent, but does not write anything else', async () => {
  const { environment, journal, service, id } = await atWork();
  journal.shut();
  const sent = service.send(id, { content: 'Hurry' }, THE_LEAD);
  if (!sent.ok) throw new Error(sent.error.message);
  void service.suspend();
  expect(await isSettled(environment, sent.written)).toBe(true);
});

test('MESSAGES-1: settles a pending receipt as not delivered when the service is suspended', async () => {
  const { environment, service, id } = await atWork();
  const sent = service.send(id, { content: 'Hurry', mode: 'queue' }, THE_LEAD);
  if (!sent.ok) throw new Error(sent.error.message);
  await sent.written;
  expect(await isSettled(environment, sent.receipt)).toBe(false);
  void service.suspend();
  // A message that comes too late does not settle either.
  const late = service.send(id, { content: 'Hello?' }, THE_LEAD);
  if (!late.ok) throw new Error(late.error.message);
  for (const { receipt } of [sent, late]) {
    expect(await isSettled(environment, receipt)).toBe(true);
    expect(await receipt).toMatchObject({
      applied: false,
      reason: expect.stringContaining('SUSPENDED'),
    });
  }
});

test('MESSAGES-1: ignores an answer that arrives when no caller is waiting any more', async () => {
  const { environment, service, id } = await atWork({
    call: ['request_input', { prompt: 'Which?', question: 'Which?' }],
  });
  const [asker] = service.list(THE_LEAD);
  const inResponseTo = asker?.pendingRequest?.requestId;
  if (inResponseTo === undefined) throw new Error('Expected it to ask');
  void service.suspend();
  await environment.settle();
  const sent = service.send(id, { content: 'This one', inResponseTo }, THE_LEAD);
  if (!sent.ok) throw new Error(sent.error.message);
  expect(sent.resolvedPending).toBe(false);
  expect(await sent.receipt).toMatchObject({ applied: false });
  expect(await isSettled(environment, sent.written)).toBe(true);
});

test('MESSAGES-2: reports a message as `written` only once its entry is in the journal', async () => {
  const { environment, journal, service, id, told } = await atWork();
  journal.shut();
  const sent = service.send(id, { content: 'Hurry' }, THE_LEAD);
  if (!sent.ok) throw new Error(sent.error.message);
  expect(await isSettled(environment, sent.written)).toBe(false);
  journal.open();
  expect(await isSettled(environment, sent.written)).toBe(true);
  expect(told()).toEqual([sent.messageId]);
});

test("MESSAGES-2: returns the tool's result once the message is in the journal", async () => {
  const { environment, journal, service, id } = await atWork();
  const { send_to_subagent: tool } = createParentSubagentToolset({ service });
  journal.shut();
  const input = { subagentId: id, content: 'Hurry' };
  const answered = Promise.resolve(
    tool.execute?.(input as never, { toolCallId: 'c1', messages: [], context: {} } as never),
  );
  expect(await isSettled(environment, answered)).toBe(false);
  journal.open();
  expect(await isSettled(environment, answered)).toBe(true);
});

test('SUBAGENT-TREE-5: refuses a message to an ended subagent, but settles its receipt', async () => {
  const { environment, journal, service, id } = await atWork();
  journal.shut();
  // Another entry is being written, and this one is waiting for it.
  service.cancel(id, THE_LEAD);
  const sent = service.send(id, { content: 'Hurry' }, THE_LEAD);
  if (!sent.ok) throw new Error(sent.error.message);
  expect(await isSettled(environment, sent.written)).toBe(false);
  journal.open();
  expect(await isSettled(environment, sent.written)).toBe(true);
  expect(await sent.receipt).toMatchObject({ applied: false });
});
