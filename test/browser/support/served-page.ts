// A session with connected pages: the server, the script, and the tabs of a browser.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import type { TextSession } from '../../../src/index.ts';
import { serve } from '../../../src/serve/index.ts';

export interface ServedPage {
  /** Errors on the pages. */
  readonly problems: string[];
  readonly tabs: readonly Page[];
  readonly upgrades: number;
  /** Opens a tab whose script has not mounted anything yet. */
  open(): Promise<Page>;
  /** Cuts all connections. */
  cut(): void;
  /** Stops the server and starts another one on the same port. */
  restart(): Promise<void>;
}

const html = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>A session</title><meta name="color-scheme" content="light dark"><div id="root"></div>
<script>globalThis.process = { env: { NODE_ENV: 'development' } };</script><script src="/page.js"></script>`;

/** @param users the user that each token belongs to. */
export async function servedPage(
  browser: Browser,
  code: string,
  session: TextSession,
  users: Readonly<Record<string, string>> = { right: 'ann' },
): Promise<ServedPage> {
  const problems: string[] = [];
  const tabs: Page[] = [];
  const sockets = new Set<Socket>();
  let upgrades = 0;
  const listen = async (port: number) => {
    const web = serve({
      session: () => session,
      authorize: ({ token }) => {
        const user = users[token ?? ''];
        return user === undefined ? null : { sessionId: 's1', user, role: 'user' };
      },
    });
    const http: Server = createServer((request, response) =>
      web.handle(request, response, () => {
        const isScript = request.url === '/page.js';
        response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
        response.end(isScript ? code : html);
      }),
    );
    http.on('connection', (socket: Socket) => sockets.add(socket));
    http.on('upgrade', (request, socket, head) => {
      upgrades += 1;
      void web.upgrade(request, socket, head);
    });
    http.listen(port, '127.0.0.1');
    await once(http, 'listening');
    return { web, http, port: (http.address() as AddressInfo).port };
  };
  let server = await listen(0);
  const stop = async (): Promise<void> => {
    await server.web.close();
    server.http.closeAllConnections();
    await new Promise<void>((resolve) => {
      server.http.close(() => resolve());
    });
  };
  onTestFinished(async () => {
    for (const tab of tabs) await tab.close();
    await stop();
    await session.close();
  });
  return {
    problems,
    tabs,
    get upgrades() {
      return upgrades;
    },
    async open() {
      const tab = await browser.newPage({ viewport: { width: 375, height: 700 } });
      tabs.push(tab);
      tab.on('pageerror', (error) => problems.push(error.message));
      tab.on('console', (message) => {
        // The browser itself logs a refused connection.
        if (message.type() === 'error' && !/WebSocket|ERR_CONNECTION/.test(message.text()))
          problems.push(message.text());
      });
      await tab.goto(`http://127.0.0.1:${server.port}/`);
      return tab;
    },
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async restart() {
      await stop();
      server = await listen(server.port);
    },
  };
}
