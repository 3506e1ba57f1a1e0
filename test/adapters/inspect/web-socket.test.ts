// A remote inspector server that starts late, disappears and returns.

import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { createInspector, type InspectorMessage } from '../../../src/adapters/inspect/index.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { seen } from './support/receiver.ts';
import { stamped, startInteraction, startSession } from './support/ride.ts';

/** Starts a server that records its messages, with one view per connection. */
async function listen(port = 0) {
  const server = new WebSocketServer({ host: '127.0.0.1', port });
  await new Promise((resolve) => server.on('listening', resolve));
  const view = seen();
  server.on('connection', (socket) => {
    socket.on('message', (data: Buffer) =>
      view.take(JSON.parse(data.toString()) as InspectorMessage),
    );
  });
  return {
    view,
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        for (const socket of server.clients) socket.terminate();
        server.close(resolve);
      }),
  };
}

// The sockets are real; on a busy machine, one of them once stayed open.
const realSockets = { timeout: 20_000, retry: 2 };

test('sends everything again each time the connection was lost', realSockets, async () => {
  const environment = simulatedEnvironment();
  /** Lets simulated time pass while an outside event takes its time. */
  const inTime = async (happening: Promise<unknown>): Promise<void> => {
    let isOver = false;
    void happening.then(() => (isOver = true));
    while (!isOver) await environment.advance(10);
  };
  const first = await listen();
  const { port } = first;
  const problems: string[] = [];
  let onProblem = (): void => {};
  const lost = () => new Promise<void>((resolve) => (onProblem = resolve));
  const inspector = await createInspector({
    environment,
    flushMs: 0,
    to: { mode: 'webSocket', url: `ws://127.0.0.1:${port}/in?token=secret` },
    onError: (error) => {
      problems.push((error as Error).message);
      onProblem();
    },
  });
  const session = startSession(inspector.inspect);
  session.send(stamped({ type: 'session.start' as const }));
  await first.view.until(({ snapshots }) => snapshots('ses_1').length > 0);

  let gone = lost();
  await first.close();
  await gone;
  session.send(stamped({ type: 'transport.ready' as const }));
  startInteraction(inspector.inspect);

  // The server is not there yet, so the connection is retried at growing intervals.
  gone = lost();
  await environment.advance(250);
  await gone;
  const second = await listen(port);
  await inTime(second.view.until(({ snapshots }) => snapshots('ses_1/interaction').length > 0));
  expect(second.view.actor('ses_1')).toMatchObject({ rootId: 'ses_1' });
  expect(second.view.snapshots('ses_1').at(-1)?.snapshot.value).toMatchObject({
    connection: 'active',
  });
  expect(second.view.actor('ses_1/interaction')).toMatchObject({ parentId: 'ses_1' });
  expect(problems).toEqual([
    `No connection to the inspector at ws://127.0.0.1:${port}/in; trying again in 250 ms`,
    `No connection to the inspector at ws://127.0.0.1:${port}/in; trying again in 500 ms`,
  ]);

  // The last message arrives before the connection is closed.
  session.send(stamped({ type: 'client.attached' as const }));
  await inTime(inspector.stop());
  await second.view.until(({ events }) =>
    events('ses_1').some(({ event }) => event.type === 'client.attached'),
  );
  await second.close();
  expect(problems).toHaveLength(2);
  expect(environment.pendingTimers).toBe(0);
});

test('reports a server that never responds, and stops without waiting for it', async () => {
  const environment = simulatedEnvironment();
  const { port, close } = await listen();
  await close();
  let problems = 0;
  const lost = new Promise<void>((resolve) => {
    void createInspector({
      environment,
      to: { mode: 'webSocket', url: `ws://127.0.0.1:${port}` },
      onError: () => {
        problems += 1;
        resolve();
      },
    }).then((inspector) => {
      startSession(inspector.inspect);
      void lost.then(() => inspector.stop());
    });
  });
  await lost;
  await environment.advance(60_000);
  expect(problems).toBe(1);
  expect(environment.pendingTimers).toBe(0);
});
