import { describe, expect, test } from 'vitest';
import { dial, startCall, userFrame } from './support/called.ts';

describe('a close by the session', () => {
  test("asks the server to close, and reports the server's close code", async () => {
    const { peer, connection, events } = startCall();
    const closed = connection.close();
    expect(peer.sent.at(-1)?.type).toBe('session.close');
    expect(peer.closeCode).toBeNull();
    peer.closes(1000);
    await closed;
    expect(events).toEqual([
      {
        type: 'transport.closed',
        code: 1000,
        reason: 'Closed by the session',
        retryable: false,
      },
    ]);
  });

  test('waits a second for a server that does not close', async () => {
    const { peer, connection, advance } = startCall();
    const closed = connection.close();
    await advance(1000);
    expect(peer.closeCode).toBe(1000);
    await closed;
  });
});

describe('a session that the server ends', () => {
  test.each([
    ['expired', true],
    ['connection_lost', true],
    ['remote_hangup', true],
    ['content', false],
    ['close_requested', false],
  ] as const)('reports %s with retryable: %s', (reason, retryable) => {
    const { peer, events, of } = startCall();
    peer.says({
      type: 'session.closed',
      reason,
      usage: { seconds: 7 },
      session: { id: 'live_1', expires_at: 0, model: 'gpt-live-1', status: 'active' },
    });
    expect(of('usage.reported')).toMatchObject([{ raw: { seconds: 7 } }]);
    expect(events.at(-1)).toEqual({
      type: 'transport.closed',
      code: null,
      reason: `The server ended the session: ${reason}`,
      retryable,
    });
  });

  test('reports its close code', () => {
    const call = startCall();
    call.peer.closes(1011, 'internal');
    expect(call.of('transport.closed')).toMatchObject([{ code: 1011, retryable: true }]);
    expect(call.isComplete).toBe(true);
  });

  test('stops turn detection', async () => {
    const { peer, events, advance, connection, request } = startCall();
    peer.sounds(100);
    peer.hears('Hello', 0);
    request('offer:1');
    peer.closes(1006);
    const count = events.length;
    connection.sendAudio(userFrame());
    await advance(60_000);
    expect(events).toHaveLength(count);
    expect(peer.audioFrames).toEqual([]);
  });
});

describe('a session that expires', () => {
  test('announces its expiry a minute in advance', async () => {
    const { advance, of } = startExpiring(600_000);
    await advance(539_999);
    expect(of('transport.expiring')).toEqual([]);
    await advance(1);
    expect(of('transport.expiring')).toEqual([{ type: 'transport.expiring', inMs: 60_000 }]);
  });

  test('does not announce its expiry if the clocks disagree', async () => {
    const call = startExpiring(-1000);
    await call.advance(60_000);
    expect(call.of('transport.expiring')).toEqual([]);
  });
});

function startExpiring(inMs: number) {
  const call = dial();
  call.peer.opens();
  call.peer.starts({ expires_at: (call.environment.clock.now() + inMs) / 1000 });
  return call;
}
