// A server that answers token requests with a fixed response.

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts the server, which closes when the test ends. `host`: for example, `127.0.0.1:40000`. */
export async function tokenServer(status: number, answer: string) {
  const requests: { readonly request: IncomingMessage; readonly body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      requests.push({ request, body });
      response.writeHead(status).end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { requests, host: `127.0.0.1:${port}` };
}
