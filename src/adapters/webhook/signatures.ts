// How a sender proves that it knows the secret: an HMAC-SHA256 over the body, and what goes
// with it. Three known schemes, and one to be described.
//
// Owns:     where the signature stands, and what is signed.
// Does not: read bodies, know the time, or remember anything.
//
// Sources (2026): standardwebhooks.com, `spec/standard-webhooks.md`; docs.stripe.com/webhooks
// ("Verify webhook signatures manually"); docs.github.com ("Validating webhook deliveries").

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Where a sender puts its signature. Signed is `id.timestamp.body`, of these three what there is. */
export interface HmacHeaders {
  /** The header with the signature, such as `x-signature`. */
  readonly header: string;
  /** Stands before the signature, such as `sha256=`. @defaultValue '' */
  readonly prefix?: string;
  /** @defaultValue 'hex' */
  readonly encoding?: 'hex' | 'base64';
  /** The header with the time of sending: whole seconds since 1970. Without it a request is never late. */
  readonly timestampHeader?: string;
  /** The header with the id of the message. */
  readonly idHeader?: string;
}

/**
 * `standard`: Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`).
 * `stripe`: `Stripe-Signature`. `github`: `X-Hub-Signature-256`, which has no time.
 */
export type SignatureScheme = 'standard' | 'stripe' | 'github' | HmacHeaders;

/** What the headers of a request claim. */
export interface Claim {
  /** Of the message, if the scheme signs one. */
  readonly id: string | null;
  /** Whole seconds since 1970, as written; null where the scheme has no time. */
  readonly timestamp: string | null;
  readonly signatures: readonly Buffer[];
}

/** A sender may sign with several keys while it changes them; nobody needs more. */
const MAX_SIGNATURES = 10;
const DIGEST_BYTES = 32;

/** Does the scheme sign the time? */
export function signsTime(scheme: SignatureScheme): boolean {
  return typeof scheme === 'string' ? scheme !== 'github' : scheme.timestampHeader !== undefined;
}

/** The key of a secret. Standard Webhooks writes a key as `whsec_` and base64. */
export function keyOf(scheme: SignatureScheme, secret: string): Buffer {
  return scheme === 'standard' && secret.startsWith('whsec_')
    ? Buffer.from(secret.slice('whsec_'.length), 'base64')
    : Buffer.from(secret, 'utf8');
}

/** What the headers claim; null: something is missing or malformed. */
export function claimOf(scheme: SignatureScheme, headers: IncomingHttpHeaders): Claim | null {
  const claim = read(scheme, headers);
  if (!claim || claim.signatures.length === 0) return null;
  if (claim.timestamp === null) return signsTime(scheme) ? null : claim;
  return /^\d{1,12}$/.test(claim.timestamp) ? claim : null;
}

/** What is signed: `id.timestamp.body`, of these what there is. */
export function digestOf(key: Buffer, { id, timestamp }: Claim, body: Buffer): Buffer {
  const hmac = createHmac('sha256', key);
  for (const part of [id, timestamp]) if (part !== null) hmac.update(`${part}.`);
  return hmac.update(body).digest();
}

/** Is one of the signatures that of one of the keys? Takes the same time whichever it is, if any. */
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

/** A header. One that came twice is joined by Node, and then fits nothing. */
function single(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return typeof value === 'string' ? value.trim() : null;
}

/** Those that have the length of a digest; others cannot match. */
function decoded(written: readonly string[], encoding: 'hex' | 'base64'): readonly Buffer[] {
  return written
    .slice(0, MAX_SIGNATURES)
    .map((text) => Buffer.from(text, encoding))
    .filter(({ length }) => length === DIGEST_BYTES);
}
