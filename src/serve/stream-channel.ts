// The stream of server-sent events to one client: each frame is a `data:` line of a web response.

import type { Channel } from './served-client.ts';

export interface OpenedStream {
  readonly response: Response;
  readonly channel: Channel;
  /** Calls back when the client has gone. */
  whenClosed(callback: () => void): void;
}

const encoder = new TextEncoder();

/** `maxQueuedBytes`: the bytes that the stream queues for a client; bytes above it count as unsent, too. */
export function openStream(maxQueuedBytes: number): OpenedStream {
  const queueBytes = 2 * maxQueuedBytes;
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  let closed: () => void = () => undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      start(made) {
        controller = made;
      },
      cancel() {
        controller = null;
        closed();
      },
    },
    { highWaterMark: queueBytes, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  const end = (finish: (made: ReadableStreamDefaultController<Uint8Array>) => void): void => {
    const made = controller;
    controller = null;
    if (made) finish(made);
  };
  return {
    response: new Response(body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store, no-transform',
        // Proxies otherwise buffer small responses.
        'x-accel-buffering': 'no',
      },
    }),
    channel: {
      kind: 'stream',
      get unsentBytes() {
        return controller ? queueBytes - (controller.desiredSize ?? 0) : 0;
      },
      // JSON text has no line breaks, so that a frame is one line.
      text: ({ text }) => controller?.enqueue(encoder.encode(`data: ${text}\n\n`)),
      close: () => end((made) => made.close()),
      cut: (_code, reason) => end((made) => made.error(new DOMException(reason, 'AbortError'))),
    },
    whenClosed(callback) {
      closed = callback;
    },
  };
}
