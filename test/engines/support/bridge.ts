// Lets workers in other processes run handlers in this process. Each job is an HTTP request, and the response is the
// end of the job. A killed worker or a cancelled job closes the request.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Job, JobHandler } from '../../../src/entries/jobs.ts';

export interface Bridge {
  readonly url: string;
  /** The current handler; if null, every job waits. */
  handler: JobHandler | null;
  close(): Promise<void>;
}

export async function openBridge(): Promise<Bridge> {
  const server = createServer((request, response) => {
    const controller = new AbortController();
    response.on('close', () => {
      if (!response.writableEnded) controller.abort(new Error('the worker is gone'));
    });
    const answer = async (): Promise<void> => {
      const job = JSON.parse(await text(request)) as Job;
      if (!bridge.handler) return;
      try {
        response.end(JSON.stringify(await bridge.handler.do(job, controller.signal)));
      } catch (error) {
        if (!controller.signal.aborted) response.writeHead(500).end(String(error));
      }
    };
    answer().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bridge: Bridge = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    handler: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return bridge;
}
