// A local push service (RFC 8030) for the package `web-push`. It checks the VAPID token (RFC 8292), decrypts messages as a
// browser does (RFC 8291), and refuses what push services refuse.

import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, createServer } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { webPushChannel } from '../../../../src/adapters/web-push/index.ts';

interface Subscription {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
}
const require = createRequire(import.meta.url);
const webPush = require('web-push') as {
  generateVAPIDKeys(): { publicKey: string; privateKey: string };
  sendNotification(device: Subscription, payload: string, options: object): Promise<unknown>;
};
const { decrypt } = require('http_ece') as {
  decrypt(body: Buffer, options: object): Buffer;
};

const pem = (name: string): Buffer =>
  readFileSync(new URL(`../../local-voice/support/${name}`, import.meta.url));
const cert = pem('test-only-cert.pem');
const key = pem('test-only-key.pem');

/** Returns the claims of a VAPID token, or null if the token or its signature is wrong (RFC 8292, 2 and 3). */
function claimsOf(authorization: string, publicKey: string): Record<string, unknown> | null {
  const [, token = '', named] = /^vapid t=([^,]+), k=(.+)$/.exec(authorization) ?? [];
  const [head = '', body = '', signature = ''] = token.split('.');
  if (named !== publicKey) return null;
  const raw = Buffer.from(publicKey, 'base64url');
  const [x, y] = [raw.subarray(1, 33), raw.subarray(33)].map((it) => it.toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', x, y };
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${body}`),
    { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  return isSigned ? (JSON.parse(Buffer.from(body, 'base64url').toString()) as never) : null;
}

export async function localPushService() {
  const vapid = { subject: 'mailto:ops@example.com', ...webPush.generateVAPIDKeys() };
  const messages: { id: string; text: string; device: string; headers: object }[] = [];
  const browsers = new Map<string, { ecdh: ReturnType<typeof createECDH>; secret: Buffer }>();
  const statuses = new Map<string, number>();
  let always = 0;
  const server = createServer({ cert, key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const device = request.url?.slice(1) ?? '';
      const browser = browsers.get(device);
      const claims = claimsOf(request.headers.authorization ?? '', vapid.publicKey);
      const { topic = '', ttl } = request.headers as Record<string, string>;
      const refused = (): number => {
        if (always || statuses.has(device)) return always || (statuses.get(device) ?? 0);
        if (claims === null) return 401;
        // RFC 8292, 2: the token is for this push service, and is valid for at most 24 hours.
        if (claims.aud !== origin || Number(claims.exp) > Date.now() / 1000 + 86_400) return 403;
        // RFC 8030, 7.3 and 5.2 and 5.4 and 7.2
        if (!browser) return 404;
        if (ttl === undefined) return 400;
        if (!/^[\w-]{1,32}$/.test(topic)) return 400;
        return body.length > 4096 ? 413 : 0;
      };
      const status = refused();
      if (status > 0 || !browser) {
        response.writeHead(status, status === 429 ? { 'retry-after': '30' } : {}).end();
        return;
      }
      const { ecdh: privateKey, secret: authSecret } = browser;
      const text = decrypt(body, { version: 'aes128gcm', privateKey, authSecret }).toString();
      messages.push({ id: topic, text, device, headers: request.headers });
      response.writeHead(201).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const agent = new Agent({ ca: cert, keepAlive: false });
  /** The package `web-push`, which trusts the certificate of this push service. */
  const trusting = {
    sendNotification: (device: Subscription, payload: string, options: object) =>
      webPush.sendNotification(device, payload, { ...options, agent }),
  };
  const subscribe = (name: string): Subscription => {
    const ecdh = createECDH('prime256v1');
    const p256dh = ecdh.generateKeys('base64url');
    const secret = randomBytes(16);
    browsers.set(name, { ecdh, secret });
    return { endpoint: `${origin}/${name}`, keys: { p256dh, auth: secret.toString('base64url') } };
  };
  const device = subscribe('phone');
  const settings = { webPush: trusting, vapid, subscriptions: () => [device] };
  return {
    messages,
    settings,
    device,
    subscribe,
    channel: webPushChannel(settings),
    refuse: (status: number) => void (always = status),
    answer: (name: string, status: number) => void statuses.set(name, status),
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
