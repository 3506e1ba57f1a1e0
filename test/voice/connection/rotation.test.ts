// Rotation: the session replaces the connection to the voice model before the connection ends, and resumes the
// conversation on the new one. The tests cover what the new connection receives, and that nothing is lost in between.

import { describe, expect, test } from 'vitest';
import { createHost } from '../../../src/actors/runtime/host.ts';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { ConnectionManager } from '../../../src/voice/connection/connection-manager.ts';
import type {
  TransportCapabilities,
  TransportCommand,
} from '../../../src/voice/connection/transport.ts';
import { FakeTransport, type FakeConnection } from '../../support/fake-transport.ts';

const agent = (instructions: string) => ({ instructions, tools: [] });
const failure = { code: 'TRANSFER_TIMEOUT', message: 'too late', retryable: true };
const HOUR = 3_600_000;

const message = (text: string): TransportCommand => ({
  type: 'message.add',
  itemId: text,
  role: 'user',
  text,
});

const frame = (mark: number) => ({
  samples: new Int16Array(480).fill(mark),
  sampleRateHz: 24_000,
});

const marks = ({ heard }: FakeConnection): number[] => heard.map(({ samples }) => samples[0] ?? 0);

function managerOf(capabilities: Partial<TransportCapabilities>) {
  const transport = new FakeTransport(capabilities);
  transport.autoReady = false;
  const environment = simulatedEnvironment();
  const told: string[] = [];
  const who = { leads: agent('lead'), history: [message('hello')], isIdle: true };
  const texts = (pending: readonly TransportCommand[]): string =>
    pending.map((command) => ('text' in command ? command.text : command.type)).join(',');
  const connections = new ConnectionManager(
    transport,
    createHost({
      environment,
      journal: memoryJournal(),
      onError: (error) => told.push(String(error)),
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
      connectionReady: (pending) => told.push(`ready: ${texts(pending)}`),
      connectionLost: ({ reason }) => told.push(`lost: ${reason}`),
      connectionRenewing: () => told.push('renewing'),
      handle: ({ type }) => told.push(type),
      handleAudio: () => told.push('spoke'),
      connectionReplaced: (pending) => told.push(`replaced: ${texts(pending)}`),
      transferAnswered: (error) => told.push(`transferred: ${error?.code ?? 'ok'}`),
    },
    {
      keptAudioMs: 100,
      connectTimeoutMs: 30_000,
      backoff: { baseDelayMs: 1000, maxDelayMs: 8000 },
    },
  );
  connections.connect(who.leads);
  const at = (index: number): FakeConnection => {
    const connection = transport.connections[index];
    if (!connection) throw new Error(`Nobody has dialled ${index + 1} times`);
    return connection;
  };
  at(0).ready();
  told.length = 0;
  return { connections, told, who, environment, transport, at };
}

const open = ({ transport }: ReturnType<typeof managerOf>): boolean[] =>
  transport.connections.map(({ isClosed }) => !isClosed);

describe('make before break', () => {
  test('ROTATION-2, CONNECTION-MANAGER-3: prepares the new connection early and switches in a pause', async () => {
    const made = managerOf({ maxConnectionMs: HOUR });
    const { connections, told, who, environment, transport, at } = made;
    who.isIdle = false;
    await environment.advance(HOUR * 0.9 - 1);
    expect(transport.connections).toHaveLength(1);
    transport.autoReady = true;
    await environment.advance(HOUR * 0.05 + 1);
    expect(at(1).configuration).toEqual(agent('lead'));
    connections.sendAudio(frame(1), true);
    at(0).utterance('wait');
    expect(open(made)).toEqual([true, true]);
    expect(marks(at(0))).toEqual([1]);
    expect(told).toEqual(['utterance.started', 'utterance.ended', 'utterance.transcribed']);
    told.length = 0;
    who.history = [...who.history, message('wait')];
    who.isIdle = true;
    connections.rotateIfDue();
    expect(told).toEqual(['replaced: hello,wait']);
    expect(open(made)).toEqual([false, true]);
    connections.sendAudio(frame(2), true);
    expect([marks(at(0)), marks(at(1))]).toEqual([[1], [2]]);
    // The next rotation follows.
    await environment.advance(HOUR * 0.95);
    expect(open(made)).toEqual([false, false, true]);
  });

  test('ROTATION-2: switches shortly before the old connection expires if there was no pause', async () => {
    const made = managerOf({});
    const { told, who, environment, at } = made;
    who.isIdle = false;
    at(0).events.next({ type: 'transport.expiring', inMs: 10_000 });
    at(1).ready();
    await environment.advance(7499);
    expect(told).toEqual([]);
    await environment.advance(1);
    expect(told).toEqual(['replaced: hello']);
    expect(open(made)).toEqual([false, true]);
  });

  test('ROTATION-2: replaces a lost connection with the prepared one', () => {
    const made = managerOf({});
    const { told, who, at } = made;
    who.isIdle = false;
    at(0).events.next({ type: 'transport.expiring', inMs: 10_000 });
    at(1).ready();
    at(0).drop(false, 'time is over');
    expect(told).toEqual(['replaced: hello']);
    expect(open(made)).toEqual([false, true]);
  });

  test('ROTATION-2: discards a new connection if it is not ready when the old one is lost', () => {
    const made = managerOf({});
    const { told, at } = made;
    at(0).events.next({ type: 'transport.expiring', inMs: 10_000 });
    at(0).drop(true, 'gone');
    expect(told).toEqual(['lost: gone']);
    expect(open(made)).toEqual([false, false]);
  });

  test('ROTATION-4: opens another connection if one fails or hangs, and uses the old one until then', async () => {
    const { told, who, environment, transport, at } = managerOf({});
    at(0).events.next({ type: 'transport.expiring', inMs: 120_000 });
    at(1).drop(true, 'no room');
    await environment.advance(1000);
    expect(transport.connections).toHaveLength(3);
    at(2).ready();
    expect(told).toEqual(['replaced: hello']);
    who.isIdle = false;
    at(2).events.next({ type: 'transport.expiring', inMs: 120_000 });
    await environment.advance(31_000);
    expect(at(3).isClosed).toBe(true);
    at(4).ready();
    at(4).drop(true, 'after all not');
    expect(at(2).isClosed).toBe(false);
    await environment.advance(4000);
    at(5).ready();
    who.isIdle = true;
    await environment.advance(90_000);
    expect(told.at(-1)).toBe('replaced: hello');
    expect(at(5).isClosed).toBe(false);
  });

  test('applies changes made during the rotation to the new connection', () => {
    const { who, at } = managerOf({});
    at(0).events.next({ type: 'transport.expiring', inMs: 10_000 });
    who.leads = agent('lead, slowly');
    at(1).ready();
    expect(
      at(1)
        .of('session.configure')
        .map(({ configuration }) => configuration),
    ).toEqual([agent('lead, slowly')]);
  });

  test('ROTATION-3: lets a transfer replace a rotation and rotates after a failed transfer', async () => {
    const made = managerOf({ updatesSession: false });
    const { connections, told, who, at } = made;
    who.isIdle = false;
    at(0).events.next({ type: 'transport.expiring', inMs: 60_000 });
    at(1).ready();
    connections.transfer(agent('billing'));
    expect(open(made)).toEqual([true, false, true]);
    connections.endTransfer(failure);
    expect(open(made)).toEqual([true, false, false, true]);
    expect(at(3).configuration).toEqual(agent('lead'));
    connections.transfer(agent('billing'));
    at(4).ready();
    connections.endTransfer(null);
    expect(told).toEqual(['transferred: ok', 'replaced: hello']);
    expect(open(made)).toEqual([false, false, false, false, true]);
  });

  test('ROTATION-3: postpones a rotation that is due during a transfer on the same connection', () => {
    const { connections, transport, at } = managerOf({});
    connections.transfer(agent('billing'));
    at(0).events.next({ type: 'transport.expiring', inMs: 60_000 });
    expect(transport.connections).toHaveLength(1);
    connections.endTransfer(null);
    expect(transport.connections).toHaveLength(2);
  });

  test('stops rotating once the manager is closed', async () => {
    const made = managerOf({ maxConnectionMs: HOUR });
    made.at(0).events.next({ type: 'transport.expiring', inMs: 10_000 });
    made.connections.close();
    await made.environment.advance(HOUR);
    expect(open(made)).toEqual([false, false]);
    expect(made.environment.pendingTimers).toBe(0);
  });
});

describe('a conversation resumed by the next connection', () => {
  const resumable = () => {
    const made = managerOf({ resumes: true });
    made.at(0).events.next({ type: 'transport.resumable', resume: 'token' });
    return made;
  };

  test('CONNECTION-MANAGER-3: closes the old connection in a pause and sends only new messages to the next', async () => {
    const made = resumable();
    const { connections, told, who, at } = made;
    who.isIdle = false;
    at(0).events.next({ type: 'transport.expiring', inMs: 60_000 });
    expect(open(made)).toEqual([true]);
    who.isIdle = true;
    connections.rotateIfDue();
    expect(told).toEqual(['renewing']);
    expect(open(made)).toEqual([false]);
    connections.sendAudio(frame(1), true);
    connections.send(message('said to nobody'));
    connections.connect(who.leads);
    expect(at(1).resume).toBe('token');
    connections.sendAudio(frame(2), true);
    who.history = [...who.history, message('new')];
    at(1).ready({ resumed: true });
    expect(told.at(-1)).toBe('ready: new');
    expect(connections.takeKeptAudio().map(({ samples }) => samples[0])).toEqual([1, 2]);
    expect(at(1).commands).toEqual([]);
  });

  test('waits for a resumption handle, but no later than the expiry', async () => {
    const { connections, told, environment, at } = resumable();
    at(0).events.next({ type: 'transport.resumable', resume: null });
    at(0).events.next({ type: 'transport.resumable', resume: 'another' });
    at(0).events.next({ type: 'transport.expiring', inMs: 8000 });
    expect(told).toEqual(['renewing']);
    connections.connect(agent('lead'));
    expect(at(1).resume).toBe('another');
    at(1).ready({ resumed: true });
    at(1).events.next({ type: 'transport.expiring', inMs: 8000 });
    // The connection provided no handle for resuming, so the session opens the new connection before it closes the old
    // one.
    at(2).ready();
    expect(at(2).resume).toBeUndefined();
    expect(told.at(-1)).toBe('replaced: hello');
    await environment.settle();
  });

  test('CONTINUATION-1: sends the whole history to a server that starts a new conversation', () => {
    const { connections, told, who, at } = resumable();
    at(0).drop();
    connections.connect(who.leads);
    at(1).ready();
    expect(told.at(-1)).toBe('ready: hello');
  });

  test('CONTINUATION-1: does not repeat a truncated message to a server that resumes', () => {
    const { connections, told, who, at } = resumable();
    at(0).drop();
    connections.connect(who.leads);
    who.history = [{ ...message('hello'), text: 'hel' } as TransportCommand, message('new')];
    at(1).ready({ resumed: true });
    expect(told.at(-1)).toBe('ready: new');
  });

  test('CONTINUATION-2: drops a refused resumption handle, but retries an unanswered one a few times', () => {
    const { connections, told, who, transport, at } = resumable();
    at(0).drop();
    const resumes = () => transport.connections.slice(1).map(({ resume }) => resume ?? null);
    connections.connect(who.leads);
    at(1).events.next({
      type: 'transport.closed',
      code: null,
      reason: 'no route',
      retryable: true,
    });
    connections.connect(who.leads);
    connections.disconnect();
    connections.connect(who.leads);
    at(3).events.next({
      type: 'transport.closed',
      code: null,
      reason: 'no route',
      retryable: true,
    });
    connections.connect(who.leads);
    expect(resumes()).toEqual(['token', 'token', 'token', null]);
    at(4).ready();
    expect(told.at(-1)).toBe('ready: hello');
    at(4).events.next({ type: 'transport.resumable', resume: 'fresh' });
    at(4).drop();
    connections.connect(who.leads);
    at(5).events.next({ type: 'transport.closed', code: 1007, reason: 'refused', retryable: true });
    connections.connect(who.leads);
    expect(resumes().slice(4)).toEqual(['fresh', null]);
  });

  test('CONTINUATION-1: sends only newer messages to a connection that was opened with the history', () => {
    const { connections, told, who, at } = managerOf({});
    at(0).drop();
    connections.connect(who.leads);
    expect(at(1).takeHistory()).toEqual([message('hello')]);
    who.history = [...who.history, message('new')];
    at(1).ready({ told: true });
    expect(told.at(-1)).toBe('ready: new');
  });

  test('CONTINUATION-1: sends only newer messages to a prepared connection that waited for a pause', () => {
    const { connections, told, who, at } = managerOf({});
    who.isIdle = false;
    at(0).events.next({ type: 'transport.expiring', inMs: 60_000 });
    at(1).takeHistory();
    at(1).ready({ told: true });
    who.history = [...who.history, message('new')];
    who.isIdle = true;
    connections.rotateIfDue();
    expect(told).toEqual(['replaced: new']);
  });
});

describe("the user's audio", () => {
  test('CONNECTION-MANAGER-2: buffers the most recent audio between two attempts and sends it once', () => {
    const { connections, who, at } = managerOf({});
    connections.sendAudio(frame(1), true);
    at(0).drop();
    for (const mark of [2, 3, 4, 5, 6, 7]) connections.sendAudio(frame(mark), true);
    connections.connect(who.leads);
    at(1).drop();
    connections.connect(who.leads);
    connections.sendAudio(frame(8), true);
    expect(connections.takeKeptAudio()).toEqual([]);
    at(2).ready();
    expect(connections.takeKeptAudio().map(({ samples }) => samples[0])).toEqual([4, 5, 6, 7, 8]);
    expect(connections.takeKeptAudio()).toEqual([]);
  });

  test('CONNECTION-MANAGER-6: repeats untranscribed audio before it sends the buffered audio', () => {
    const { connections, who, at } = managerOf({});
    for (const mark of [1, 2]) connections.sendAudio(frame(mark), true);
    for (const mark of [3, 4]) connections.sendAudio(frame(mark), false);
    at(0).drop();
    expect(connections.keepSentAudio(40)).toBe(true);
    connections.sendAudio(frame(5), true);
    expect(connections.keepSentAudio(40)).toBe(false);
    connections.connect(who.leads);
    at(1).ready();
    const samples = connections.takeKeptAudio().flatMap((given) => [...given.samples]);
    expect(samples).toEqual([3, 4, 5].flatMap((mark) => [...frame(mark).samples]));
  });

  test('CONNECTION-MANAGER-1: counts usage even if a connection reports it after being closed', () => {
    const { connections, told, at } = managerOf({});
    connections.disconnect();
    at(0).events.next({ type: 'usage.reported', inputTokens: 1, outputTokens: 2, raw: null });
    at(0).events.next({ type: 'utterance.ended', utteranceId: 'u' });
    expect(told).toEqual(['usage.reported']);
  });
});
