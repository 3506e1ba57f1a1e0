// What a sender is told: enough to know whether to send it again, and nothing else. Why a
// signature is wrong, and whether a message is late, is not among it.

import type { ServerResponse } from 'node:http';
import type { WebhookRefusal } from './options.ts';

export interface Answer extends WebhookRefusal {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Taken: it is in the journal. */
export const accepted: Answer = { status: 202, reason: 'accepted', body: { accepted: true } };

/** In order, and of no use: not to be sent again. */
export function unused(reason: string): Answer {
  return { status: 200, reason, body: { accepted: false } };
}

/** A sender that has not heard our answer sends again: it may stop. */
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

/** Not now: the sender shall try again. */
export function unavailable(reason: string, retryAfterSeconds = 5): Answer {
  return refuse(503, 'Try again later', reason, { 'retry-after': String(retryAfterSeconds) });
}

/**
 * Resolves when the answer has gone out, or nobody is there to get it. `isRead`: the whole
 * request was read, so its connection can be used again.
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
    // A pipelined request waits for those before it, and is never heard of again if they end the connection.
    if (!response.socket) resolve();
  });
}
