// The demo's server with a real session: the modules of its page, and the page's other requests. `offstage/serve`
// serves the files, the link, the port and the session; its own tests cover unauthorised visitors.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { createWorld } from '../../../examples/voice-demo/agents/world.ts';
import { startDemoServer, type DemoServerOptions } from '../../../examples/voice-demo/server.ts';
import { memoryJournal } from '../../../src/index.ts';
import type { LocalServer } from '../../../src/serve/index.ts';
import { rideScript } from '../../support/ride.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const about = { transport: 'none', lead: 'rules', subagents: 'rules', speech: 'none' };

let talk: ReturnType<typeof voiceTalk>;
let server: LocalServer;

function start(options: Partial<DemoServerOptions> = {}): Promise<LocalServer> {
  const { session } = talk;
  const world = createWorld();
  const journal = memoryJournal();
  return startDemoServer({
    session,
    journal,
    world,
    port: 0,
    about,
    log: () => undefined,
    ...options,
  });
}

beforeEach(async () => {
  talk = voiceTalk({ subagents: { book_ride: { script: rideScript } } });
  server = await start();
});

afterEach(async () => {
  await server.close();
  await talk.close();
});

/** @param body If present, the request is a POST. */
function call(path: string, body?: unknown): Promise<Response> {
  return fetch(`http://127.0.0.1:${server.port}${path}`, {
    headers: { authorization: `Bearer ${server.token}` },
    ...(body !== undefined && {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  });
}

test('serves every module that the page imports as JavaScript', async () => {
  const html = await (await call('/')).text();
  const { imports } = JSON.parse(/importmap">(.*?)<\/script>/.exec(html)?.[1] ?? '{}') as {
    imports: Record<string, string>;
  };
  const seen = new Set<string>();
  const look = async (path: string): Promise<void> => {
    if (seen.has(path)) return;
    seen.add(path);
    const file = await call(path);
    expect([path, file.status]).toEqual([path, 200]);
    expect(file.headers.get('content-type')).toContain('text/javascript');
    for (const [, name = ''] of (await file.text()).matchAll(
      /(?<=[\s}*])from\s*["']([^"'\s]+)["']/g,
    ))
      await look(imports[name] ?? new URL(name, `http://x${path}`).pathname);
  };
  await look('/main.ts');
  for (const path of Object.values(imports)) await look(path);
  expect(seen.size).toBeGreaterThan(20);
});

test('shows the names of its model and its voice', async () => {
  expect(await (await call('/about')).json()).toEqual({ ...about, canCrash: false });
});

test('announces a changed order, without delay if the change is urgent', async () => {
  await talk.start();
  const urgent = await call('/order', { orderId: '1042', status: 'on its way', urgent: true });
  expect(await urgent.json()).toMatchObject({ orderId: '1042', item: 'an oak desk' });
  await call('/order', { orderId: 'A-7', status: 'lost' });
  await talk.environment.settle();
  expect(
    talk.state().deliveries.map(({ text, priority, label }) => ({ text, priority, label })),
  ).toEqual([
    {
      text: 'Order 1042, an oak desk, is on its way.',
      priority: 'urgent',
      label: 'ORDER UPDATE',
    },
    { text: 'Order 7, your order, is lost.', priority: 'normal', label: 'ORDER UPDATE' },
  ]);
});

test.each<[string, unknown, number]>([
  ['no JSON', '{', 400],
  ['a field too few', { orderId: '1' }, 400],
  ['a field too many', { orderId: '1', status: 'x', priority: 'high' }, 400],
  ['too long a status', { orderId: '1', status: 'x'.repeat(5000) }, 400],
])('an order with %s is refused', async (_, body, expected) => {
  await talk.start();
  expect((await call('/order', body)).status).toBe(expected);
  expect(talk.state().deliveries).toEqual([]);
});

test('crashes on request if crashes are allowed', async () => {
  expect((await call('/crash', {})).status).toBe(404);
  await server.close();
  let crashes = 0;
  server = await start({ crash: () => (crashes += 1) });
  expect(await (await call('/about')).json()).toMatchObject({ canCrash: true });
  await call('/crash', {});
  expect(crashes).toBe(1);
});
