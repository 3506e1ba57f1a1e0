// One lead agent transfers the conversation to another in a voice session, on wires whose session can be changed and on
// wires that need a new connection.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import type { TransportCommand } from '../../src/voice/connection/transport.ts';
import { FakeTransport, type FakeConnection } from '../support/fake-transport.ts';
import { agentInstructions, LEAD, withoutNotes } from '../support/text-talk.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks up an invoice',
  parameters: z.object({}),
  execute: () => '7 euros',
});

const order = defineTool({
  name: 'order',
  description: 'Orders',
  parameters: z.object({}),
  execute: (_, { setDirective }) => setDirective('pace', 'slow'),
});

function handover(options: VoiceTalkOptions = {}) {
  const talk = voiceTalk({
    others: [{ name: 'billing', description: 'invoices', tools: [lookUp] }],
    ...options,
  });
  const { session, model, environment, events, say } = talk;
  const frame = (mark: number) => ({
    samples: new Int16Array(480).fill(mark),
    sampleRateHz: 24_000,
  });
  return {
    ...talk,
    connection: () => session.actor.getSnapshot().value.connection,
    /** Sends this many marked frames of 20 ms of the user's audio. */
    hum: (...marks: number[]) => {
      for (const mark of marks) session.audioIn.next(frame(mark));
    },
    /** Makes the lead agent transfer the conversation. */
    async hand(to = 'billing', callId = 'call_t') {
      await say('my invoice, please');
      model().call({
        callId,
        name: 'transfer_to_agent',
        arguments: JSON.stringify({ agent_name: to }),
      });
      await environment.settle();
    },
    told: () =>
      events.flatMap((event) =>
        ['agent.', 'transfer.', 'connection.'].some((kind) => event.type.startsWith(kind))
          ? [`${event.type} ${Object.values(event).slice(1).join(' ')}`]
          : [],
      ),
  };
}

const marks = (connection: FakeConnection): number[] =>
  connection.heard.map(({ samples }) => samples[0] ?? 0);

const types = (connection: FakeConnection): string[] =>
  connection.commands.map(({ type }: TransportCommand) => type);

const failed = (code: string) => expect.stringContaining(code);

describe('a transfer on a transport that can update its session', () => {
  test(
    "installs the new agent's instructions, tools and greeting before it answers the call",
    { tags: ['B69', 'B70'] },
    async () => {
      const { start, hand, model, asked, told, transport } = handover({
        others: [{ name: 'billing', tools: [lookUp], greeting: 'Say hi' }],
      });
      await start();
      await hand();
      expect(transport.connections).toHaveLength(1);
      const [configured] = model().of('session.configure');
      expect(withoutNotes(configured?.configuration.instructions)).toBe(
        agentInstructions('billing'),
      );
      expect(configured?.configuration.tools.map(({ name }) => name)).toEqual([
        'look_up',
        'transfer_to_agent',
      ]);
      const handed = model().commands.slice(types(model()).indexOf('session.configure') + 1);
      expect(handed).toEqual([
        expect.objectContaining({ role: 'system', text: expect.stringContaining('handed') }),
        expect.objectContaining({
          role: 'user',
          text: expect.stringContaining('{"from":"lead","to":"billing"}'),
        }),
        expect.objectContaining({ role: 'system', text: expect.stringContaining('Say hi') }),
        expect.objectContaining({ type: 'tool.answer', callId: 'call_t' }),
        expect.objectContaining({ type: 'response.request' }),
      ]);
      expect(asked()).toBe('reply');
      expect(told().slice(2)).toEqual([
        'agent.entered lead ',
        'agent.exited lead billing',
        'connection.changed transferring',
        'connection.changed active',
        'agent.entered billing lead',
        'transfer.completed lead billing call_t',
      ]);
      // The rest of the old agent's output does not reach the new agent's tools.
      model().call({ callId: 'c2', name: 'look_up', arguments: '{}' });
    },
  );

  test(
    "buffers a limited amount of the user's speech, and passes it on in order after the transfer",
    { tags: ['B69'] },
    async () => {
      const { start, hand, hum, model, environment, connection } = handover({
        voice: { keptAudioMs: 60 },
      });
      await start();
      model().autoConfigured = false;
      hum(1);
      await hand();
      expect(connection()).toBe('transferring');
      hum(2, 3, 4, 5);
      expect(marks(model())).toEqual([1]);
      model().events.next({ type: 'session.configured' });
      await environment.settle();
      hum(6);
      expect(marks(model())).toEqual([1, 3, 4, 5, 6]);
    },
  );

  test('does not reply during the transfer even if a reply is due', async () => {
    const { start, hand, model, session, environment, asked, speak } = handover();
    await start();
    model().autoConfigured = false;
    await hand();
    session.notifyBackground('The order was sent', { priority: 'urgent' });
    await session.sendText('are you there?');
    await environment.advance(5000);
    expect(asked()).toBeNull();
    model().events.next({ type: 'session.configured' });
    await environment.settle();
    expect(asked()).toContain('The order was sent');
    await speak('It was sent.');
    expect(asked()).toBe('reply');
  });

  test(
    'leaves the old agent in charge if the server refuses, and gives the reason',
    { tags: ['BW28'] },
    async () => {
      const { start, hand, hum, model, environment, state, connection, told } = handover();
      await start();
      model().autoConfigured = false;
      await hand();
      hum(1);
      model().events.next({ type: 'session.refused', code: 'NO_SUCH_VOICE', message: 'No.' });
      await environment.settle();
      expect(connection()).toBe('active');
      expect(state().agent).toBe('lead');
      expect(marks(model())).toEqual([1]);
      expect(model().of('session.configure')).toHaveLength(1);
      expect(model().of('tool.answer')[0]?.output).toContain('NO_SUCH_VOICE');
      expect(told().slice(-3)).toEqual([
        'connection.changed active',
        'agent.entered lead lead',
        failed('transfer.failed lead billing call_t NO_SUCH_VOICE'),
      ]);
    },
  );

  test(
    'CONNECTION-MANAGER-4: configures the lead agent again after 30 s without an answer',
    { tags: ['BW28'] },
    async () => {
      const { start, hand, model, environment, state, connection } = handover();
      await start();
      model().autoConfigured = false;
      await hand();
      await environment.advance(29_999);
      expect(connection()).toBe('transferring');
      await environment.advance(1);
      expect(connection()).toBe('active');
      expect(state().agent).toBe('lead');
      expect(withoutNotes(model().of('session.configure').at(-1)?.configuration.instructions)).toBe(
        LEAD,
      );
      expect(model().of('tool.answer')[0]?.output).toContain('TRANSFER_TIMEOUT');
      // The late confirmation has no effect.
      model().events.next({ type: 'session.configured' });
      await environment.settle();
      expect(state().agent).toBe('lead');
    },
  );

  test('keeps the old agent in charge after a lost connection', { tags: ['BW28'] }, async () => {
    const { start, hand, transport, environment, state, model, told } = handover();
    await start();
    model().autoConfigured = false;
    await hand();
    model().drop();
    await environment.advance(2000);
    expect(transport.connections).toHaveLength(2);
    expect(withoutNotes(model().configuration.instructions)).toBe(LEAD);
    expect(state()).toMatchObject({ agent: 'lead', connection: 'active' });
    expect(told()).toContainEqual(failed('transfer.failed lead billing call_t TRANSPORT_LOST'));
  });

  test('fails without a connection and keeps the current agent', { tags: ['BW28'] }, async () => {
    let leave: () => void = () => {};
    const { start, session, model, environment, told, transport } = handover({
      agent: {
        onExit: () =>
          new Promise<void>((resolve) => {
            leave = resolve;
          }),
      },
    });
    await start();
    const transfer = session.transfer('billing');
    await environment.settle();
    transport.autoReady = false;
    model().drop();
    await environment.advance(2000);
    leave();
    await environment.settle();
    expect(await transfer).toMatchObject({ code: 'SESSION_NOT_ACTIVE' });
    expect(told().filter((line) => line.startsWith('agent.'))).toEqual([
      'agent.entered lead ',
      'agent.exited lead billing',
      'agent.entered lead lead',
    ]);
    expect(await session.transfer('billing')).toMatchObject({
      code: 'SESSION_NOT_ACTIVE',
      error: expect.stringContaining('connecting'),
    });
  });

  test(
    'configures the current lead agent after a reconnect and notes the transfer',
    { tags: ['B71'] },
    async () => {
      const { start, hand, environment, model } = handover();
      await start();
      await hand();
      model().drop();
      await environment.advance(2000);
      expect(withoutNotes(model().configuration.instructions)).toBe(agentInstructions('billing'));
      expect(
        model()
          .of('message.add')
          .map(({ text }) => text),
      ).toContainEqual(expect.stringContaining('{"from":"lead","to":"billing"}'));
    },
  );

  test('passes a directive to the model immediately', { tags: ['B9'] }, async () => {
    const { start, use, model } = handover({ tools: [order] });
    await start();
    await use('order');
    expect(withoutNotes(model().of('session.configure').at(-1)?.configuration.instructions)).toBe(
      `${LEAD}\n\n# Directives\n- pace: slow`,
    );
  });
});

describe('a transfer on a transport that needs a new connection', () => {
  const wire = () => new FakeTransport({ updatesSession: false });

  test(
    'keeps the old connection until the new one is ready, and then hands over even open calls',
    { tags: ['B69'] },
    async () => {
      const { start, hand, hum, transport, environment, connection } = handover({
        transport: wire(),
      });
      await start();
      transport.autoReady = false;
      await hand();
      const [before, after] = transport.connections as [FakeConnection, FakeConnection];
      expect(connection()).toBe('transferring');
      expect(withoutNotes(after.configuration.instructions)).toBe(agentInstructions('billing'));
      expect(before.isClosed).toBe(false);
      hum(1, 2);
      after.events.next({ type: 'transport.ready' });
      await environment.settle();
      expect(before.isClosed).toBe(true);
      expect(connection()).toBe('active');
      expect(marks(before)).toEqual([]);
      expect(marks(after)).toEqual([1, 2]);
      expect(types(after)).toEqual([
        'message.add',
        'tool.recall',
        'message.add',
        'message.add',
        'tool.answer',
        'response.request',
      ]);
      expect(after.of('tool.recall')[0]).toMatchObject({ callId: 'call_t' });
      expect(after.of('tool.answer')[0]?.output).toContain('transferred');
      // The session no longer listens to the old connection.
      before.utterance('hello?');
      await environment.settle();
      expect(types(after)).toHaveLength(6);
    },
  );

  test('keeps the old connection if the new one fails', { tags: ['BW28'] }, async () => {
    const { start, hand, transport, environment, state, connection } = handover({
      transport: wire(),
    });
    await start();
    transport.autoReady = false;
    await hand();
    const [before, after] = transport.connections as [FakeConnection, FakeConnection];
    after.drop(false, 'no quota');
    await environment.settle();
    expect(connection()).toBe('active');
    expect(state().agent).toBe('lead');
    expect(before.isClosed).toBe(false);
    expect(before.of('tool.answer')[0]?.output).toContain('no quota');
    expect(before.openRequests).toHaveLength(1);
  });

  test('closes a connection that is not ready in time', { tags: ['BW28'] }, async () => {
    const { start, hand, transport, environment, connection, close } = handover({
      transport: wire(),
      voice: { transferTimeoutMs: 2000 },
    });
    await start();
    transport.autoReady = false;
    await hand();
    const [before, after] = transport.connections as [FakeConnection, FakeConnection];
    await environment.advance(2000);
    expect(connection()).toBe('active');
    expect(after.isClosed).toBe(true);
    expect(before.isClosed).toBe(false);
    await close();
    expect(environment.pendingTimers).toBe(0);
  });

  test('passes a directive as a note', { tags: ['B9'] }, async () => {
    const { start, use, model } = handover({ transport: wire(), tools: [order] });
    await start();
    await use('order');
    expect(
      model()
        .of('message.add')
        .map(({ text }) => text),
    ).toContainEqual(expect.stringMatching(/^\[data \S+\] \{"directives":\{"pace":"slow"\}\}$/));
  });
});

describe('a new connection', { tags: ['B72'] }, () => {
  test('closes and is retried if it is not ready after 30 s', async () => {
    const { session, transport, environment } = handover();
    transport.autoReady = false;
    const started = session.start();
    await environment.advance(29_999);
    expect(transport.connections).toHaveLength(1);
    transport.autoReady = true;
    await environment.advance(1);
    await started;
    expect(transport.connections).toHaveLength(2);
    expect(transport.connections[0]?.isClosed).toBe(true);
  });

  test('ends with its reason after too many failed attempts in a row', async () => {
    const { session, transport, environment } = handover({
      voice: { maxReconnects: 1, connectTimeoutMs: 100 },
    });
    transport.autoReady = false;
    const started = session.start();
    const outcome = started.catch((error: unknown) => error);
    await environment.advance(10_000);
    expect(await outcome).toMatchObject({ code: 'CONNECT_TIMEOUT' });
    expect(transport.connections.map(({ isClosed }) => isClosed)).toEqual([true, true]);
    expect(environment.pendingTimers).toBe(0);
  });
});

test(
  'aborts a call that the model withdraws and cancels its subagent',
  { tags: ['B22'] },
  async () => {
    const aborted: string[] = [];
    const slow = defineTool({
      name: 'slow',
      description: 'Takes its time',
      parameters: z.object({}),
      execute: (_, { abortSignal, callId }) =>
        new Promise(() => abortSignal.addEventListener('abort', () => aborted.push(callId))),
    });
    const { start, say, model, environment, events } = handover({ tools: [slow] });
    await start();
    await say('use slow');
    model().call({ callId: 'c1', name: 'slow', arguments: '{}' });
    await environment.settle();
    model().events.next({ type: 'tool.cancelled', callId: 'c1' });
    await environment.settle();
    expect(aborted).toEqual(['c1']);
    expect(events.filter(({ type }) => type === 'tool.answered')).toHaveLength(1);
  },
);
