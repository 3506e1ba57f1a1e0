// Signature schemes that prove that a sender knows the secret. A signature is an HMAC-SHA256 over the body and some
// headers. There are three standard schemes, and the app can describe custom schemes.
//
// Owns:     where the signature is, and which content it signs.
// Does not: read bodies, read the clock, or store any state.
//
// Sources (2026): standardwebhooks.com, `spec/standard-webhooks.md`; docs.stripe.com/webhooks
// ("Verify webhook signatures manually"); docs.github.com ("Validating webhook deliveries").

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The headers of a custom scheme. The signed content is `id.timestamp.body`; parts that do not exist are left out. */
export interface HmacHeaders {
  /** The header with the signature, such as `x-signature`. */
  readonly header: string;
  /** The text before the signature, such as `sha256=`. @defaultValue '' */
  readonly prefix?: string;
  /** @defaultValue 'hex' */
  readonly encoding?: 'hex' | 'base64';
  /** The header with the time of sending: whole seconds since 1970. Without it, a request is never too old. */
  readonly timestampHeader?: string;
  /** The header with the message id. */
  readonly idHeader?: string;
}

/**
 * `standard`: Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). `stripe`: `Stripe-Signature`.
 * `github`: `X-Hub-Signature-256`, which has no timestamp.
 */
export type SignatureScheme = 'standard' | 'stripe' | 'github' | HmacHeaders;

/** The claims in a request's headers. */
export interface Claim {
  /** The message id, if the scheme signs it. */
  readonly id: string | null;
  /** Whole seconds since 1970, as written; null if the scheme has no timestamp. */
  readonly timestamp: string | null;
  readonly signatures: readonly Buffer[];
}

/** The maximum number of signatures, because a sender may sign with several keys during rotation. */
const MAX_SIGNATURES = 10;
const DIGEST_BYTES = 32;

/** Returns whether the scheme signs the time. */
export function signsTime(scheme: SignatureScheme): boolean {
  return typeof scheme === 'string' ? scheme !== 'github' : scheme.timestampHeader !== undefined;
}

/** Returns the key that a secret encodes. Standard Webhooks writes a key as `whsec_` and base64. */
export function keyOf(scheme: SignatureScheme, secret: string): Buffer {
  return scheme === 'standard' && secret.startsWith('whsec_')
    ? Buffer.from(secret.slice('whsec_'.length), 'base64')
    : Buffer.from(secret, 'utf8');
}

/** Returns these values; null if they are missing or malformed. */
export function claimOf(scheme: SignatureScheme, headers: IncomingHttpHeaders): Claim | null {
  const claim = read(scheme, headers);
  if (!claim || claim.signatures.length === 0) return null;
  if (claim.timestamp === null) return signsTime(scheme) ? null : claim;
  return /^\d{1,12}$/.test(claim.timestamp) ? claim : null;
}

/** Returns the HMAC of the signed content: `id.timestamp.body`, without the parts that do not exist. */
export function digestOf(key: Buffer, { id, timestamp }: Claim, body: Buffer): Buffer {
  const hmac = createHmac('sha256', key);
  for (const part of [id, timestamp]) if (part !== null) hmac.update(`${part}.`);
  return hmac.update(body).digest();
}

/** Returns whether any signature matches any key. The duration of this check does not depend on its result. */
export function isSigned(keys: readonly Buffer[], claim: Claim, body: Buffer): boolean {
  let matches = 0;
  for (const key of keys) {
    const expected = digestOf(key, claim, body);
    for (const signature of claim.signatures)
      matches += timingSafeEqual(expected, signature) ? 1 : 0;
  }
  return matches > 0;
}

function read(scheme: SignatureScheme, headers: IncomingHttpHeaders): Claim | null {
  switch (scheme) {
    case 'standard': {
      const id = single(headers, 'webhook-id');
      const written = single(headers, 'webhook-signature');
      if (!id || !written) return null;
      const own = written.split(' ').filter((part) => part.startsWith('v1,'));
      return {
        id,
        timestamp: single(headers, 'webhook-timestamp'),
        signatures: decoded(
          own.map((part) => part.slice('v1,'.length)),
          'base64',
        ),
      };
    }
    case 'stripe': {
      const parts = (single(headers, 'stripe-signature') ?? '').split(',');
      const valuesOf = (name: string): string[] =>
        parts
          .filter((part) => part.startsWith(`${name}=`))
          .map((part) => part.slice(name.length + 1));
      const [timestamp = null] = valuesOf('t');
      return { id: null, timestamp, signatures: decoded(valuesOf('v1'), 'hex') };
    }
    case 'github':
      return read({ header: 'x-hub-signature-256', prefix: 'sha256=' }, headers);
    default: {
      const { header, prefix = '', encoding = 'hex', timestampHeader, idHeader } = scheme;
      const written = single(headers, header);
      const id = idHeader === undefined ? null : single(headers, idHeader);
      if (!written?.startsWith(prefix) || (idHeader !== undefined && !id)) return null;
      return {
        id,
        timestamp: timestampHeader === undefined ? null : single(headers, timestampHeader),
        signatures: decoded([written.slice(prefix.length)], encoding),
      };
    }
  }
}

/** Returns a header. Node.js joins repeated headers, so a repeated header does not match. */
function single(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return typeof value === 'string' ? value.trim() : null;
}

/** Returns the signatures that have the length of a digest, because others cannot match. */
function decoded(written: readonly string[], encoding: 'hex' | 'base64'): readonly Buffer[] {
  return written
    .slice(0, MAX_SIGNATURES)
    .map((text) => Buffer.from(text, encoding))
    .filter(({ length }) => length === DIGEST_BYTES);
}
