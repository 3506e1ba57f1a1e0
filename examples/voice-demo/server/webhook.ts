// `POST /webhook/order`: a shop tells that an order has changed, and the user is told,
// at once if it is urgent.

import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Environment } from '../../../src/actors/ports/environment.ts';
import { readBody } from '../../../src/adapters/listen/request-body.ts';
import type { World } from '../agents/world.ts';
import type { SessionFace } from '../session-face.ts';
import type { ServerLimits } from './limits.ts';

const orderSchema = z.strictObject({
  orderId: z.string().trim().min(1).max(40),
  status: z.string().trim().min(1).max(200),
  urgent: z.boolean().default(false),
});

export interface WebhookAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface WebhookParts {
  readonly session: SessionFace;
  readonly world: World;
  readonly environment: Environment;
  readonly limits: ServerLimits;
}

/** Reads the request's body, acts on it, and says how to answer. Never rejects because of what was sent. */
export async function handleOrderWebhook(
  request: IncomingMessage,
  { session, world, environment, limits }: WebhookParts,
): Promise<WebhookAnswer> {
  if (!(request.headers['content-type'] ?? '').startsWith('application/json'))
    return refuse(415, 'Expected content-type application/json');
  const { maxWebhookBytes: maxBytes, webhookTimeoutMs: timeoutMs } = limits;
  const { scheduler } = environment;
  const body = await readBody(request, { scheduler, maxBytes, timeoutMs });
  if (body === 'too_large') return refuse(413, `Expected at most ${maxBytes} bytes`);
  if (!Buffer.isBuffer(body)) return refuse(408, `Expected a body, it is ${body}`);
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    return refuse(400, 'Expected JSON');
  }
  const parsed = orderSchema.safeParse(value);
  if (!parsed.success) return refuse(400, z.prettifyError(parsed.error));
  const { orderId, status, urgent } = parsed.data;
  const order = world.updateOrder(orderId, status);
  session.notifyBackground(`Order ${order.orderId}, ${order.item}, is ${order.status}.`, {
    priority: urgent ? 'urgent' : 'normal',
    label: 'ORDER UPDATE',
  });
  return { status: 202, body: { accepted: true, order } };
}

function refuse(status: number, error: string): WebhookAnswer {
  return { status, body: { error } };
}
