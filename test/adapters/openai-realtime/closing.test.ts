import { describe, expect, test } from 'vitest';
import { startCall, connectTo, userAudio } from './support/connected.ts';
import { startFakeServer } from './support/fake-server.ts';

describe('a close by the session', () => {
  test('emits transport.closed last, completes, and resolves', async () => {
    const { client, peer } = await startCall();
    const order: string[] = [];
    void client.next('transport.closed').then(() => order.push('transport.closed'));
    const peerClosed = new Promise<number>((resolve) => peer.socket.on('close', resolve));
    const closing = client.connection.close().then(() => order.push('resolved'));
    peer.send({ type: 'input_audio_buffer.speech_started', audio_start_ms: 0, item_id: 'late' });
    expect(await peerClosed).toBe(1000);
    await closing;
    await client.completed;
    expect(order).toEqual(['transport.closed', 'resolved']);
    expect(client.events.at(-1)).toEqual({
      type: 'transport.closed',
      code: 1000,
      reason: 'Closed by the session',
      retryable: false,
    });
    expect(client.events.map(({ type }) => type)).not.toContain('utterance.started');
  });

  test('emits one event when it is called twice', async () => {
    const { client } = await startCall();
    const first = client.connection.close();
    expect(client.connection.close()).toBe(first);
    await first;
    await client.connection.close();
    expect(client.events.filter(({ type }) => type === 'transport.closed')).toHaveLength(1);
  });

  test('ends after a deadline if the peer does not answer the close frame', async () => {
    const { client, peer } = await startCall();
    // The peer no longer reads, so it cannot answer.
    peer.socket.pause();
    const closing = client.connection.close();
    expect(client.environment.pending).toEqual([1_000]);
    client.environment.advance(1_000);
    await closing;
    expect(client.events.at(-1)).toMatchObject({ type: 'transport.closed', retryable: false });
  });

  test('ends a connection that is not open yet', async () => {
    const server = await startFakeServer({ onUpgrade: () => {} });
    const client = connectTo(server.url);
    await client.connection.close();
    await client.completed;
    expect(client.events).toHaveLength(1);
    expect(client.environment.pending).toEqual([]);
    await server.close();
  });

  test('ignores later commands and audio', async () => {
    const { client } = await startCall();
    await client.connection.close();
    const before = client.events.length;
    client.send({ type: 'response.request', responseKey: 'late' });
    client.connection.sendAudio(userAudio());
    expect(client.events).toHaveLength(before);
  });

  test('leaves no timer running', async () => {
    const { client } = await startCall();
    expect(client.environment.pending).toEqual([20_000]);
    await client.connection.close();
    expect(client.environment.pending).toEqual([]);
  });
});

describe('a close by the server', () => {
  test.each([
    [1000, 'done', false],
    [1001, 'maximum duration', true],
    [1008, 'policy', false],
    [1011, 'internal', true],
    [1013, 'later', true],
    [3000, 'invalid_request_error.invalid_api_key', false],
    [4000, 'server_error', true],
  ])('reports %i %s', async (code, reason, retryable) => {
    const { client, peer } = await startCall();
    peer.socket.close(code, reason);
    const closed = await client.next('transport.closed');
    expect(closed).toMatchObject({ code, retryable });
    expect(closed.reason).toContain(reason);
    await client.completed;
  });

  test('reports 1006 when the connection is lost', async () => {
    const { client, peer } = await startCall();
    peer.socket.terminate();
    expect(await client.next('transport.closed')).toMatchObject({ code: 1006, retryable: true });
  });

  test('counts as retryable after the maximum duration, whatever the code', async () => {
    const { client, peer } = await startCall();
    peer.send({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        code: 'session_expired',
        message: 'Your session hit the maximum duration of 60 minutes.',
      },
    });
    peer.socket.close(1000);
    expect(await client.next('transport.error')).toMatchObject({ code: 'session_expired' });
    expect(await client.next('transport.closed')).toMatchObject({ code: 1000, retryable: true });
  });

  test('follows an oversized message without affecting the process', async () => {
    const { client, peer } = await startCall();
    peer.sendRaw('x'.repeat(17 * 1024 * 1024));
    const closed = await client.next('transport.closed');
    expect(closed.reason).toMatch(/payload/i);
  });
});

describe('keep-alive', () => {
  test('keeps the connection to a peer that answers pings', async () => {
    const { client, peer } = await startCall({ keepAliveMs: 1_000 });
    const pings = peer.socket;
    for (let round = 0; round < 3; round += 1) {
      const pinged = new Promise((resolve) => pings.once('ping', resolve));
      client.environment.advance(1_000);
      await pinged;
      // The pong arrives before this event.
      peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 1, item_id: 'i' });
      await client.next('utterance.ended');
    }
    expect(client.events.map(({ type }) => type)).not.toContain('transport.closed');
  });

  test('closes the connection to a peer that sends nothing between two pings', async () => {
    const { client, peer } = await startCall({ keepAliveMs: 1_000 });
    peer.socket.pause();
    client.environment.advance(2_000);
    expect(await client.next('transport.closed')).toEqual({
      type: 'transport.closed',
      code: null,
      reason: 'The server did not answer a ping within 1000 ms',
      retryable: true,
    });
  });

  test('does not drop a peer when `keepAlive` is null', async () => {
    const { client } = await startCall({ keepAliveMs: null });
    client.environment.advance(86_400_000);
    expect(client.events).toEqual([{ type: 'transport.ready' }]);
  });
});
