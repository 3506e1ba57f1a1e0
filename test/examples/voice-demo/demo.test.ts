import { expect, test } from 'vitest';
import { startDemo, type SessionParts } from '../../../examples/voice-demo/demo.ts';
import { FakeSession } from './fake-session.ts';
import { PageSocket } from './page-socket.ts';

async function demoWithFake(port = 0) {
  const session = new FakeSession();
  let parts: SessionParts | undefined;
  const demo = await startDemo({
    port,
    variables: {},
    createSession: (made) => {
      parts = made;
      return session;
    },
  });
  return { demo, session, parts };
}

test('every background tool has its subagent', async () => {
  const { demo, parts } = await demoWithFake();
  const background = (parts?.lead.tools ?? [])
    .filter(({ execution }) => execution === 'background')
    .map(({ name }) => name);
  expect(Object.keys(parts?.subagentConfigs ?? {}).toSorted()).toEqual(background.toSorted());
  await demo.close();
});

test('the link leads to a page that is let in', async () => {
  const { demo, session } = await demoWithFake();
  const { port, hash } = new URL(demo.url);
  expect(hash).toBe(`#${demo.token}`);
  const page = await PageSocket.open({ port: Number(port), token: hash.slice(1) });
  page.send({ type: 'client.attach' });
  await page.next('voice.owner');
  expect(session.names).toEqual(['attach', 'start']);
  await demo.close();
});

test('closing ends the pages first, then the session, and may be asked twice', async () => {
  const { demo, session } = await demoWithFake();
  const page = await PageSocket.open({ port: Number(new URL(demo.url).port), token: demo.token });
  page.send({ type: 'client.attach' });
  await page.next('voice.owner');
  await demo.close();
  await demo.close();
  expect(session.names).toEqual(['attach', 'start', 'detach', 'close']);
});

test('resources are closed when the start fails', async () => {
  const session = new FakeSession();
  const failing = startDemo({
    // Not a port that can be listened on.
    port: 70_000,
    variables: {},
    createSession: () => session,
  });
  await expect(failing).rejects.toThrow(/port/i);
  expect(session.names).toEqual(['close']);
});
