// Mounts the inspector's page in a server in this process.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import {
  inspector,
  type InspectorPage,
  type InspectorPageOptions,
} from '../../src/inspector/index.ts';

export const TOKEN = 'a token of sixteen characters';

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Mounted {
  readonly port: number;
  /** The URL of the page, with its token. */
  readonly url: string;
  readonly page: InspectorPage;
  readonly errors: unknown[];
  /** Closes the server, so that the page behaves as if the process had ended. */
  close(): Promise<void>;
  /** Sends a request as the page does. */
  ask(path: string, init?: Asked): Promise<Response>;
}

export async function mounted(
  options: Omit<InspectorPageOptions, 'token'> & { readonly token?: string },
): Promise<Mounted> {
  const errors: unknown[] = [];
  const page = inspector({ token: TOKEN, onError: (error) => errors.push(error), ...options });
  const server = createServer((request, response) => page.handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  onTestFinished(close);
  const base = `http://127.0.0.1:${port}${options.path ?? '/inspect'}`;
  return {
    port,
    url: `${base}#token=${encodeURIComponent(TOKEN)}`,
    page,
    errors,
    close,
    ask: (path, init = {}) =>
      fetch(`${base}/api/${path}`, {
        ...init,
        headers: { authorization: `Bearer ${TOKEN}`, ...init.headers },
      }),
  };
}
