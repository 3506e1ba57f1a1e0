// How much one page may ask of the server.

import type { Rate } from './token-bucket.ts';

export interface ServerLimits {
  /** Pages at once. */
  readonly maxClients: number;
  /** From a connection to its token, and for the answer to a request. */
  readonly strangerTimeoutMs: number;
  /** Of one WebSocket message. */
  readonly maxMessageBytes: number;
  /** Of one binary frame: 100 ms of sound at 48 kHz. */
  readonly maxAudioBytes: number;
  readonly messages: Rate;
  /** Seconds of sound. A page that was held up may catch up: it keeps 10 s while its connection is away. */
  readonly audioSeconds: Rate;
  /** The refused messages; when these are used up, the connection is closed. */
  readonly mistakes: Rate;
  /** The bytes that a page has not read yet. A page that falls behind further is closed, and begins anew. */
  readonly maxUnsentBytes: number;
  /** Between two signs of life that are asked of a page. */
  readonly heartbeatMs: number;
  readonly maxWebhookBytes: number;
  /** For the whole body of a webhook. */
  readonly webhookTimeoutMs: number;
  readonly webhooks: Rate;
}

export const defaultLimits: ServerLimits = {
  maxClients: 8,
  strangerTimeoutMs: 10_000,
  maxMessageBytes: 16_384,
  maxAudioBytes: 9_600,
  messages: { burst: 60, perSecond: 30 },
  audioSeconds: { burst: 12, perSecond: 1.25 },
  mistakes: { burst: 20, perSecond: 0.2 },
  maxUnsentBytes: 4 * 1024 * 1024,
  heartbeatMs: 15_000,
  maxWebhookBytes: 4_096,
  webhookTimeoutMs: 5_000,
  webhooks: { burst: 10, perSecond: 1 },
};
