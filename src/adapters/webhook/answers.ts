// The answers to a sender: enough to know whether to repeat a request, and nothing else. They do not tell why
// a signature is wrong, or whether a message is late.

import type { ServerResponse } from 'node:http';
import type { WebhookRefusal } from './options.ts';

export interface Answer extends WebhookRefusal {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Accepted: the event is in the journal. */
export const accepted: Answer = { status: 202, reason: 'accepted', body: { accepted: true } };

/** Valid, but of no use: not to be repeated. */
export function unused(reason: string): Answer {
  return { status: 200, reason, body: { accepted: false } };
}

/** A sender that missed the answer repeats the message: it may stop. */
export const duplicate: Answer = {
  status: 200,
  reason: 'a message that was taken already',
  body: { accepted: true, duplicate: true },
};

export function refuse(
  status: number,
  error: string,
  reason = error,
  headers: Record<string, string> = {},
): Answer {
  return { status, reason, body: { error }, headers };
}

export const unauthorized = (reason: string): Answer => refuse(401, 'Unauthorized', reason);

/** Unavailable: the sender is to try again. */
export function unavailable(reason: string, retryAfterSeconds = 5): Answer {
  return refuse(503, 'Try again later', reason, { 'retry-after': String(retryAfterSeconds) });
}

/**
 * Resolves when the answer has been sent, or its recipient is gone. `isRead`: the whole request was read, so
 * its connection can be reused.
 */
export function send(response: ServerResponse, answer: Answer, isRead: boolean): Promise<void> {
  if (response.headersSent || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    response
      .once('close', resolve)
      .writeHead(answer.status, {
        ...answer.headers,
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        ...(isRead ? {} : { connection: 'close' }),
      })
      .end(`${JSON.stringify(answer.body)}\n`, () => resolve());
    // A pipelined request waits for the earlier ones, and gets no event if they end the connection.
    if (!response.socket) resolve();
  });
}
