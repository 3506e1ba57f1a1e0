// `POST /webhook/order`: a shop tells that an order has changed, and the user is told,
// at once if it is urgent.

import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { World } from '../agents/world.ts';
import type { SessionFace } from '../session-face.ts';

const orderSchema = z.strictObject({
  orderId: z.string().trim().min(1).max(40),
  status: z.string().trim().min(1).max(200),
  urgent: z.boolean().default(false),
});

export interface WebhookAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads the request's body, acts on it, and says how to answer. Never rejects because of what was sent. */
export async function handleOrderWebhook(
  request: IncomingMessage,
  { session, world, maxBytes }: { session: SessionFace; world: World; maxBytes: number },
): Promise<WebhookAnswer> {
  if (!(request.headers['content-type'] ?? '').startsWith('application/json'))
    return refuse(415, 'Expected content-type application/json');
  const body = await readBody(request, maxBytes);
  if (body === null) return refuse(413, `Expected at most ${maxBytes} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(body);
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

/** The body as text, or null if it is larger than allowed. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
