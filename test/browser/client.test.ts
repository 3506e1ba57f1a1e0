// `offstage/client` in Chromium under a strict Content-Security-Policy: a question with buttons, the microphone, the
// speaker, and a lost connection.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo, Socket } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type * as clientModule from '../../src/client/index.ts';
import { defineTool } from '../../src/index.ts';
import { serve } from '../../src/serve/index.ts';
import type { ServedSession } from '../../src/serve/options.ts';
import { rideSession } from '../serve/support/served.ts';
import { bundle } from '../support/bundle.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { launch } from './support/stage.ts';

declare const bundled: typeof clientModule;
declare let client: clientModule.SessionClient;

let browser: Browser;
let code: string;
let page: Page;
const problems: string[] = [];
const worklet = stripTypeScriptTypes(
  readFileSync(new URL('../../src/client/worklet.ts', import.meta.url), 'utf8'),
);

beforeAll(async () => {
  ({ code } = await bundle('src/client/index.ts', ['browser']));
  browser = await launch();
});
beforeEach(async () => {
  problems.length = 0;
  page = await browser.newPage();
  page.on('pageerror', (error) => problems.push(error.message));
});
afterAll(() => browser.close());

/** Serves the page and a session; `client` is a global on the page. */
async function open(
  session: ServedSession,
): Promise<{ readonly cut: () => void; readonly connect: () => Promise<void> }> {
  const web = serve({
    session: () => session,
    authorize: ({ token }) =>
      token === 'right' ? { sessionId: 's1', user: 'ann', role: 'user' } : null,
  });
  const files: Readonly<Record<string, readonly [string, string]>> = {
    '/': ['text/html', '<!doctype html><script src="/client.js"></script>'],
    '/client.js': ['text/javascript', code],
    '/worklet.js': ['text/javascript', worklet],
  };
  const http = createServer((request, response) =>
    web.handle(request, response, () => {
      const [type, body] = files[request.url ?? ''] ?? ['text/plain', ''];
      response.writeHead(200, {
        'content-type': type,
        'content-security-policy': "default-src 'none'; script-src 'self'; connect-src 'self'",
      });
      response.end(body);
    }),
  );
  const sockets = new Set<Socket>();
  http.on('connection', (socket: Socket) => sockets.add(socket));
  http.on('upgrade', (request, socket, head) => void web.upgrade(request, socket, head));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(async () => {
    await page.close();
    await web.close();
    http.closeAllConnections();
    http.close();
  });
  await page.goto(`http://127.0.0.1:${(http.address() as AddressInfo).port}/`);
  const connect = (): Promise<void> =>
    page.evaluate(() => {
      Object.assign(globalThis, {
        client: bundled.connect({ url: '/offstage', token: 'right', workletUrl: '/worklet.js' }),
      });
    });
  await connect();
  return {
    connect,
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

test('runs a client tool in the page after a reload', async () => {
  const locate = defineTool({
    name: 'locate',
    description: 'Finds the language of the user',
    parameters: z.object({}),
    runsAt: 'client',
    resultSchema: z.object({ language: z.string() }),
  });
  const session = rideSession({ tools: [locate] });
  const { connect } = await open(session);
  await page.evaluate(() => client.send('use locate'));
  await page.reload();
  await connect();
  await page.evaluate(() => client.handle('locate', () => ({ language: navigator.language })));
  await page.waitForFunction(() =>
    client.store.get().context.transcript.some(({ text }) => text.startsWith('Tools said')),
  );
  const language = await page.evaluate(() => navigator.language);
  expect(session.store.getSnapshot().context.transcript.at(-1)?.text).toContain(language);
  expect(problems).toEqual([]);
  await session.close();
});

test('delivers an answer that the page gives while the connection is lost', async () => {
  const session = rideSession();
  const { cut } = await open(session);
  await page.evaluate(() => client.send('use book_ride'));
  await page.waitForFunction(() =>
    client.store.get().context.questions.some(({ state }) => state === 'presenting'),
  );
  const requestId = await page.evaluate(async () => {
    const [question] = client.store.get().context.questions;
    await client.questionShown(question?.requestId ?? '');
    return question?.requestId ?? '';
  });
  cut();
  const receipt = await page.evaluate(
    (id) => client.answer(id, { optionId: 'premium' }),
    requestId,
  );
  expect(receipt).toEqual({ accepted: true, by: 'ann' });
  await page.waitForFunction(() =>
    client.store.get().context.subagents.some(({ state }) => state === 'completed'),
  );
  expect(problems).toEqual([]);
  await session.close();
});

test("sends the user's audio and reports what the page has played", async () => {
  const talk = voiceTalk();
  onTestFinished(() => talk.close());
  const played: { itemId: string; playedMs: number }[] = [];
  let framesHeard = 0;
  const session = new Proxy(talk.session, {
    get(target, name) {
      if (name === 'audioIn') return { next: () => (framesHeard += 1) };
      if (name === 'playout')
        return { next: (report: { itemId: string; playedMs: number }) => played.push(report) };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  await open(session);
  await page.context().grantPermissions(['microphone']);
  // A browser may require a click first.
  await page.mouse.click(5, 5);
  expect(await page.evaluate(() => client.speaker.start())).toBe('on');
  await page.waitForFunction(() => client.status.get().ownsVoice);
  await talk.environment.settle();
  expect(await page.evaluate(() => client.microphone.start())).toBe('on');
  await page.waitForFunction(() => client.microphone.status.get().isOpen);
  await expect.poll(() => framesHeard).toBeGreaterThan(10);
  await page.evaluate(() => client.microphone.mute());
  expect(await page.evaluate(() => client.microphone.status.get())).toMatchObject({
    isMuted: true,
    isOpen: false,
  });
  const itemId = talk.model().speakByItself('Good morning.', 500);
  await talk.environment.settle();
  await expect.poll(() => played.at(-1)?.playedMs).toBeGreaterThanOrEqual(499);
  expect(played.every((report) => report.itemId === itemId)).toBe(true);
  expect(problems).toEqual([]);
});
