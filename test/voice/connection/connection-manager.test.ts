// The connections to the voice model during a transfer to another agent that succeeds or fails.

import { describe, expect, test } from 'vitest';
import { createHost } from '../../../src/actors/runtime/host.ts';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { ConnectionManager } from '../../../src/voice/connection/connection-manager.ts';
import type {
  TransportCommand,
  TransportConnection,
} from '../../../src/voice/connection/transport.ts';
import { FakeTransport, type FakeConnection } from '../../support/fake-transport.ts';

const agent = (instructions: string) => ({ instructions, tools: [] });
const lead = agent('lead');
const billing = agent('billing');
const failure = { code: 'TRANSFER_TIMEOUT', message: 'too late', retryable: true };

function managerOf(transport = new FakeTransport()) {
  transport.autoReady = false;
  const environment = simulatedEnvironment();
  const told: string[] = [];
  const who = {
    leads: lead,
    history: [] as TransportCommand[],
    isIdle: true,
  };
  const reported: string[] = [];
  const connections = new ConnectionManager(
    transport,
    createHost({
      environment,
      journal: memoryJournal(),
      onError: (error, where) => reported.push(`${where}: ${(error as Error).message}`),
    }),
    {
      id: 'session',
      get configuration() {
        return who.leads;
      },
      history: () => who.history,
      knownHistory: () => who.history,
      get isIdle() {
        return who.isIdle;
      },
      connectionRenewing: () => told.push('renewing'),
      connectionReady: (pending) => told.push(['ready', ...words(pending)].join(' ')),
      connectionLost: ({ reason }) => told.push(`lost ${reason}`),
      handle: ({ type }) => told.push(type),
      handleAudio: () => told.push('spoke'),
      connectionReplaced: (pending) => told.push(['replaced', ...words(pending)].join(' ')),
      transferAnswered: (error) => told.push(`transferred ${error?.code ?? 'ok'}`),
    },
    {
      keptAudioMs: 100,
      connectTimeoutMs: 30_000,
      backoff: { baseDelayMs: 1000, maxDelayMs: 30_000 },
    },
  );
  connections.connect(lead);
  return {
    connections,
    told,
    reported,
    transport,
    who,
    environment,
    first: transport.connections[0] as FakeConnection,
  };
}

const words = (pending: readonly TransportCommand[]): string[] =>
  pending.map((command) => (command.type === 'message.add' ? command.text : command.type));

const configured = (connection: FakeConnection): string[] =>
  connection.of('session.configure').map(({ configuration }) => configuration.instructions);

const sound = { samples: new Int16Array(480), sampleRateHz: 24_000, responseId: 'r', itemId: 'i' };

test('CONNECTION-MANAGER-1: ignores events after a close and reports a listener that throws', () => {
  const { connections, told, reported, first, transport } = managerOf();
  first.events.next({ type: 'transport.ready' });
  first.audio.next(sound);
  connections.disconnect();
  first.events.next({ type: 'utterance.ended', utteranceId: 'u' });
  first.audio.next(sound);
  first.drop();
  expect(first.isClosed).toBe(true);
  expect(told).toEqual(['ready', 'spoke']);
  connections.connect(lead);
  transport.connections[1]?.events.error(new Error('the adapter broke'));
  expect(told.at(-1)).toBe('lost the adapter broke');
  expect(connections.isReady).toBe(false);
  expect(reported).toEqual([]);
});

test.each(['events', 'audio'] as const)(
  'CONNECTION-MANAGER-1: treats a failing %s stream as a lost connection',
  (stream) => {
    const { told, first } = managerOf();
    first.ready();
    first[stream].error(new Error('the codec broke'));
    expect(told).toEqual(['ready', 'lost the codec broke']);
  },
);

describe('CONNECTION-MANAGER-4: the configuration after a failed transfer', () => {
  test("reverts to the lead agent's configuration if the model has accepted the new one", async () => {
    const { connections, told, first } = managerOf();
    first.events.next({ type: 'transport.ready' });
    connections.transfer(billing);
    await Promise.resolve();
    expect(told.at(-1)).toBe('transferred ok');
    // By then, the session has abandoned the transfer.
    connections.endTransfer(failure);
    expect(configured(first)).toEqual(['billing', 'lead']);
  });

  test("remains the lead agent's configuration if the model has refused the transfer", () => {
    const { connections, told, first } = managerOf();
    first.events.next({ type: 'transport.ready' });
    first.autoConfigured = false;
    connections.transfer(billing);
    first.events.next({ type: 'session.refused', code: 'NO', message: 'No.' });
    expect(told.at(-1)).toBe('transferred NO');
    connections.endTransfer({ ...failure, code: 'NO' });
    expect(configured(first)).toEqual(['billing']);
  });

  test('ignores an answer to an earlier configuration', () => {
    const { connections, told, first } = managerOf();
    first.events.next({ type: 'transport.ready' });
    first.autoConfigured = false;
    connections.configure(lead);
    connections.transfer(billing);
    first.events.next({ type: 'session.configured' });
    expect(told).not.toContain('transferred ok');
    first.events.next({ type: 'session.configured' });
    expect(told.at(-1)).toBe('transferred ok');
    // No transfer is waiting for this configuration, so its refusal is reported like any other error.
    connections.endTransfer(null);
    connections.configure(billing);
    first.events.next({ type: 'session.refused', code: 'NO', message: 'No.' });
    expect(told.at(-1)).toBe('transport.error');
  });
});

describe('CONNECTION-MANAGER-3: make before break', () => {
  const apart = () => {
    const made = managerOf(new FakeTransport({ updatesSession: false }));
    made.first.events.next({ type: 'transport.ready' });
    made.connections.transfer(billing);
    return { ...made, second: made.transport.connections[1] as FakeConnection };
  };

  test('receives from the old connection until the new one takes over, and then from the new one only', () => {
    const { connections, told, first, second } = apart();
    first.events.next({ type: 'utterance.ended', utteranceId: 'u' });
    second.events.next({ type: 'utterance.ended', utteranceId: 'v' });
    second.audio.next(sound);
    second.events.next({ type: 'transport.ready' });
    expect(told).toEqual(['ready', 'utterance.ended', 'transferred ok']);
    expect(connections.isTransferring).toBe(true);
    connections.endTransfer(null);
    expect(first.isClosed).toBe(true);
    first.events.next({ type: 'utterance.ended', utteranceId: 'u' });
    second.audio.next(sound);
    expect(told.slice(3)).toEqual(['replaced', 'spoke']);
  });

  test('reports a connection as lost if it is lost before it takes over', () => {
    const { connections, told, first, second } = apart();
    second.events.next({ type: 'transport.ready' });
    second.drop(true, 'gone');
    expect(told.at(-1)).toBe('transferred ok');
    connections.endTransfer(null);
    expect(told.at(-1)).toBe('lost gone');
    expect(first.isClosed).toBe(true);
    expect(connections.isReady).toBe(false);
  });

  test('closes the new connection if the old one is lost first', () => {
    const { connections, told, first, second } = apart();
    first.drop(true, 'gone');
    expect(told.at(-1)).toBe('lost gone');
    expect(second.isClosed).toBe(true);
    second.events.next({ type: 'transport.ready' });
    expect(told.at(-1)).toBe('lost gone');
    connections.endTransfer(failure);
    expect(told.at(-1)).toBe('lost gone');
  });

  test('does not open a new connection if the old one is already lost', () => {
    const { connections, told, first, transport } = managerOf(
      new FakeTransport({ updatesSession: false }),
    );
    first.events.next({ type: 'transport.ready' });
    first.drop(true, 'gone');
    // The session learns about the loss after it has started the transfer.
    connections.transfer(billing);
    connections.endTransfer(failure);
    expect(told).toEqual(['ready', 'lost gone']);
    expect(transport.connections).toHaveLength(1);
    expect(connections.isTransferring).toBe(false);
  });

  test('closes both connections when the session ends', () => {
    const { connections, first, second } = apart();
    connections.disconnect();
    expect([first, second].map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });
});

test('CONNECTION-MANAGER-2: does not send commands or buffer audio after a close', () => {
  const { connections, first } = managerOf();
  connections.close();
  expect(connections.sendAudio(sound, true)).toBe(false);
  connections.send({ type: 'response.cancel' });
  expect((first as TransportConnection & FakeConnection).commands).toEqual([]);
  expect(connections.takeKeptAudio()).toEqual([]);
});
