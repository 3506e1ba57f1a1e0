import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startDemo, type DemoOptions } from '../../../examples/voice-demo/demo.ts';
import { connect } from '../../../src/client/index.ts';
import { FakeTransport } from '../../support/fake-transport.ts';
import { forgetKeys } from './support.ts';

const options: DemoOptions = { port: 0, transport: new FakeTransport() };

beforeEach(() => forgetKeys());

test('prints a link to the page and starts the conversation when a listener is ready', async () => {
  const demo = await startDemo(options);
  onTestFinished(() => demo.close());
  const { origin, hash } = new URL(demo.url);
  expect(hash).toBe(`#${demo.token}`);
  const client = connect({ url: `${origin}/offstage`, token: hash.slice(1) });
  onTestFinished(() => client.close());
  await expect.poll(() => client.status.get().state).toBe('open');
  const connection = (): string => demo.session.store.getSnapshot().context.connection;
  expect(connection()).toBe('created');
  await client.speaker.start({ silent: true });
  await expect.poll(connection).toBe('active');
});

test('close() disconnects the pages and then closes the session, and can be called twice', async () => {
  const demo = await startDemo(options);
  const client = connect({ url: `${new URL(demo.url).origin}/offstage`, token: demo.token });
  onTestFinished(() => client.close());
  await expect.poll(() => client.status.get().state).toBe('open');
  await demo.close();
  await demo.close();
  // This close reason lets a page reconnect to the next start under the same link.
  expect(client.status.get().reason?.code).toBe('SERVER_CLOSING');
  expect(demo.session.store.getSnapshot().context.connection).toBe('closed');
});

test('releases its resources if it fails to start', async () => {
  // An invalid port.
  await expect(startDemo({ ...options, port: 70_000 })).rejects.toThrow(/port/i);
});

test('stores its link and conversation in a folder that a second demo does not use', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-demo-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const first = await startDemo({ ...options, folder });
  const log: string[] = [];
  const second = await startDemo({ ...options, folder, log: (line) => log.push(line) });
  expect(second.token).not.toBe(first.token);
  expect(log).toEqual(['Another demo has the kept conversation: nothing of this one is kept']);
  await second.close();
  await first.close();
  const third = await startDemo({ ...options, folder });
  onTestFinished(() => third.close());
  expect(third.token).toBe(first.token);
  expect(third.session.id).toBe(first.session.id);
  expect(statSync(join(folder, 'token')).mode & 0o077).toBe(0);
});
