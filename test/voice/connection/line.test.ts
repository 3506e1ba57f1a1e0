// The line to the voice model: what is kept when an agent is exchanged, and when that fails.

import { describe, expect, test } from 'vitest';
import { createHost } from '../../../src/actors/runtime/host.ts';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { Line } from '../../../src/voice/connection/line.ts';
import type {
  TransportCommand,
  TransportConnection,
} from '../../../src/voice/connection/transport.ts';
import { FakeTransport, type FakeConnection } from '../../support/fake-transport.ts';

const agent = (instructions: string) => ({ instructions, tools: [] });
const lead = agent('lead');
const billing = agent('billing');
const failure = { code: 'TRANSFER_TIMEOUT', message: 'too late', retryable: true };

function lineOf(transport = new FakeTransport()) {
  transport.autoReady = false;
  const environment = simulatedEnvironment();
  const told: string[] = [];
  const who = {
    leads: lead,
    history: [] as TransportCommand[],
    isAtRest: true,
  };
  const reported: string[] = [];
  const line = new Line(
    transport,
    createHost({
      environment,
      journal: memoryJournal(),
      onError: (error, where) => reported.push(`${where}: ${(error as Error).message}`),
    }),
    {
      configuration: () => who.leads,
      history: () => who.history,
      told: () => who.history,
      isAtRest: () => who.isAtRest,
      renewing: () => told.push('renewing'),
      ready: (untold) => told.push(['ready', ...words(untold)].join(' ')),
      lost: ({ reason }) => told.push(`lost ${reason}`),
      happened: ({ type }) => told.push(type),
      spoke: () => told.push('spoke'),
      replaced: (untold) => told.push(['replaced', ...words(untold)].join(' ')),
      transferred: (error) => told.push(`transferred ${error?.code ?? 'ok'}`),
    },
    {
      keptAudioMs: 100,
      connectTimeoutMs: 30_000,
      backoff: { baseDelayMs: 1000, maxDelayMs: 30_000 },
    },
  );
  const connections = transport.connections as readonly FakeConnection[];
  line.dial(lead);
  return {
    line,
    told,
    reported,
    transport,
    who,
    environment,
    connections,
    first: connections[0] as FakeConnection,
  };
}

const words = (untold: readonly TransportCommand[]): string[] =>
  untold.map((command) => (command.type === 'message.add' ? command.text : command.type));

const configured = (connection: FakeConnection): string[] =>
  connection.of('session.configure').map(({ configuration }) => configuration.instructions);

const sound = { samples: new Int16Array(480), sampleRateHz: 24_000, responseId: 'r', itemId: 'i' };

test('CONNECTION-LINE-1: events of a connection that was hung up are ignored, and a listener that throws is reported', () => {
  const { line, told, reported, first, connections } = lineOf();
  first.events.next({ type: 'transport.ready' });
  first.audio.next(sound);
  line.hangUp();
  first.events.next({ type: 'utterance.ended', utteranceId: 'u' });
  first.audio.next(sound);
  first.drop();
  expect(first.isClosed).toBe(true);
  expect(told).toEqual(['ready', 'spoke']);
  line.dial(lead);
  connections[1]?.events.error(new Error('the adapter broke'));
  expect(told.at(-1)).toBe('lost the adapter broke');
  expect(line.isUp).toBe(false);
  expect(reported).toEqual([]);
});

describe('CONNECTION-LINE-4: after a transfer that failed the model is told who it was', () => {
  test('if it has said that it is the other one', async () => {
    const { line, told, first } = lineOf();
    first.events.next({ type: 'transport.ready' });
    line.transfer(billing);
    await Promise.resolve();
    expect(told.at(-1)).toBe('transferred ok');
    // The session had given up by then.
    line.endTransfer(failure, () => lead);
    expect(configured(first)).toEqual(['billing', 'lead']);
  });

  test('not if it has refused', () => {
    const { line, told, first } = lineOf();
    first.events.next({ type: 'transport.ready' });
    first.autoConfigured = false;
    line.transfer(billing);
    first.events.next({ type: 'session.refused', code: 'NO', message: 'No.' });
    expect(told.at(-1)).toBe('transferred NO');
    line.endTransfer({ ...failure, code: 'NO' }, () => lead);
    expect(configured(first)).toEqual(['billing']);
  });

  test('an answer to something that was asked before is no answer to this', () => {
    const { line, told, first } = lineOf();
    first.events.next({ type: 'transport.ready' });
    first.autoConfigured = false;
    line.configure(lead);
    line.transfer(billing);
    first.events.next({ type: 'session.configured' });
    expect(told).not.toContain('transferred ok');
    first.events.next({ type: 'session.configured' });
    expect(told.at(-1)).toBe('transferred ok');
    // A refusal that nobody waits for is an error like others.
    line.endTransfer(null, () => lead);
    line.configure(billing);
    first.events.next({ type: 'session.refused', code: 'NO', message: 'No.' });
    expect(told.at(-1)).toBe('transport.error');
  });
});

describe('CONNECTION-LINE-3: make before break', () => {
  const apart = () => {
    const made = lineOf(new FakeTransport({ updatesSession: false }));
    made.first.events.next({ type: 'transport.ready' });
    made.line.transfer(billing);
    return { ...made, second: made.connections[1] as FakeConnection };
  };

  test('the one in use is heard until the other takes over, and then no more', () => {
    const { line, told, first, second } = apart();
    first.events.next({ type: 'utterance.ended', utteranceId: 'u' });
    second.events.next({ type: 'utterance.ended', utteranceId: 'v' });
    second.audio.next(sound);
    second.events.next({ type: 'transport.ready' });
    expect(told).toEqual(['ready', 'utterance.ended', 'transferred ok']);
    expect(line.isHandingOver).toBe(true);
    line.endTransfer(null, () => lead);
    expect(first.isClosed).toBe(true);
    first.events.next({ type: 'utterance.ended', utteranceId: 'u' });
    second.audio.next(sound);
    expect(told.slice(3)).toEqual(['replaced', 'spoke']);
  });

  test('a connection that is lost before it takes over counts as lost', () => {
    const { line, told, first, second } = apart();
    second.events.next({ type: 'transport.ready' });
    second.drop(true, 'gone');
    expect(told.at(-1)).toBe('transferred ok');
    line.endTransfer(null, () => lead);
    expect(told.at(-1)).toBe('lost gone');
    expect(first.isClosed).toBe(true);
    expect(line.isUp).toBe(false);
  });

  test('if the one in use goes meanwhile, the other is hung up', () => {
    const { line, told, first, second } = apart();
    first.drop(true, 'gone');
    expect(told.at(-1)).toBe('lost gone');
    expect(second.isClosed).toBe(true);
    second.events.next({ type: 'transport.ready' });
    expect(told.at(-1)).toBe('lost gone');
    line.endTransfer(failure, () => lead);
    expect(told.at(-1)).toBe('lost gone');
  });

  test('if the one in use is gone already, no other is opened: nobody would hang it up', () => {
    const { line, told, first, connections } = lineOf(new FakeTransport({ updatesSession: false }));
    first.events.next({ type: 'transport.ready' });
    first.drop(true, 'gone');
    // The session learns of the loss after it began to transfer.
    line.transfer(billing);
    line.endTransfer(failure, () => lead);
    expect(told).toEqual(['ready', 'lost gone']);
    expect(connections).toHaveLength(1);
    expect(line.isHandingOver).toBe(false);
  });

  test('a session that ends hangs up both', () => {
    const { line, first, second } = apart();
    line.hangUp();
    expect([first, second].map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });
});

test('CONNECTION-LINE-2: without anybody to talk to, nothing is said; before and after, sound is not kept for later', () => {
  const { line, first } = lineOf();
  line.close();
  expect(line.sendAudio(sound, true)).toBe(false);
  line.send({ type: 'response.cancel' });
  expect((first as TransportConnection & FakeConnection).commands).toEqual([]);
  expect(line.takeSound()).toEqual([]);
});
