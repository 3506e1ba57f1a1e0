// A server of its own for a webhook.

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Listener {
  /** Such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  /** Resolves when the port is free. Connections that are open are closed. */
  close(): Promise<void>;
}

/** Longer than the headers of any sender. */
const MAX_HEADER_BYTES = 16_384;

/** Resolves when it listens; rejects if it cannot. `failed` learns of what breaks it later. */
export function listen(
  { port, host }: { readonly port: number; readonly host: string },
  handler: (...request: Parameters<RequestListener>) => Promise<void>,
  failed: (error: unknown) => void,
): Promise<Listener> {
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
    void handler(request, response);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, () => {
      server.off('error', reject);
      server.on('error', failed);
      const { address, port: bound, family } = server.address() as AddressInfo;
      resolve({
        origin: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}
