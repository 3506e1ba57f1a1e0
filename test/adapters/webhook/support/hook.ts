// A webhook without a service, and a sender that signs its messages, over real HTTP with a clock that the test
// controls.

import { createHmac } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { EventReceipt, ExternalEvent } from '../../../../src/actors/ports/event-source.ts';
import {
  webhookSource,
  type WebhookRefusal,
  type WebhookSource,
  type WebhookSourceOptions,
} from '../../../../src/adapters/webhook/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';

export const SECRET = 'a secret of more than sixteen bytes';
export const PATH = '/webhooks/orders';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string | Buffer;
  readonly headers?: Record<string, string | undefined>;
}

export async function startHook(options: Partial<WebhookSourceOptions> = {}) {
  const environment = simulatedEnvironment();
  const refusals: WebhookRefusal[] = [];
  const emitted: ExternalEvent[] = [];
  const errors: unknown[] = [];
  const failures: unknown[] = [];
  const controllers: AbortController[] = [];
  const source = webhookSource({
    path: PATH,
    secret: SECRET,
    listen: { port: 0 },
    onRefused: (refusal) => refusals.push(refusal),
    ...options,
  });
  const seconds = (): number => Math.floor(environment.clock.now() / 1000);
  const hook = {
    environment,
    refusals,
    emitted,
    errors,
    failures,
    /** The service's receipt for the next events. */
    receipt: { accepted: true, eventId: 'evt' } as EventReceipt | Promise<EventReceipt>,
    source,
    /** Starts the webhook as a service does, until the controller aborts. */
    async begin(started: WebhookSource = source, controller = new AbortController()) {
      controllers.push(controller);
      await started.start(
        async (event) => {
          emitted.push(event);
          return hook.receipt;
        },
        controller.signal,
        {
          environment,
          fail: (error) => failures.push(error),
          report: (error) => errors.push(error),
        },
      );
    },
    async stop() {
      for (const controller of controllers) controller.abort();
      await source.stop?.();
    },
    /** Returns the time in whole seconds on the webhook's clock. */
    seconds,
    send: (sent: Sent = {}) => send(source.url ?? '', sent),
    /** Sends a body with a Standard Webhooks signature. */
    sendSigned: (body: unknown, { id = 'msg_1', at = seconds(), secret = SECRET } = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return send(source.url ?? '', {
        body: text,
        headers: standardHeaders(text, { id, at, secret }),
      });
    },
  };
  await hook.begin();
  return hook;
}

export function hmac(content: string, secret: string | Buffer, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', secret).update(content).digest(encoding);
}

export function standardHeaders(
  body: string,
  { id, at, secret }: { id: string; at: number; secret: string | Buffer },
): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(at),
    'webhook-signature': `v1,${hmac(`${id}.${at}.${body}`, secret, 'base64')}`,
  };
}

export function send(url: string, { method = 'POST', path, body = '', headers = {} }: Sent) {
  const { hostname, port, pathname } = new URL(url);
  const given = Object.entries({ 'content-type': 'application/json', ...headers }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new Promise<Reply>((resolve, reject) => {
    const request = httpRequest(
      {
        hostname,
        port,
        path: path ?? pathname,
        method,
        agent: false,
        headers: Object.fromEntries(given),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text === '' ? null : JSON.parse(text),
          });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
