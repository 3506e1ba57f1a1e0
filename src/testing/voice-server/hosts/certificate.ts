// A self-signed certificate for 127.0.0.1 and localhost, created at run time. Clients that require TLS must trust it
// explicitly. Node.js creates the keys and signatures. This module writes the surrounding X.509 structure (DER).

import { generateKeyPairSync, sign } from 'node:crypto';

export interface Certificate {
  /** In PEM. */
  readonly key: string;
  readonly cert: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const TEN_YEARS_MS = 3_650 * DAY_MS;

/** The encoded object identifiers in the certificate. */
const oids = {
  ecdsaWithSha256: '2a8648ce3d040302',
  commonName: '550403',
  basicConstraints: '551d13',
  subjectAltName: '551d11',
} as const;

/** @param now milliseconds since 1970; the certificate is valid from the day before this time */
export function selfSignedCertificate(now: number): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid('ecdsaWithSha256'));
  const name = sequence(set(sequence(oid('commonName'), utf8('127.0.0.1'))));
  const extensions = sequence(
    extension('basicConstraints', sequence(boolean(true))),
    extension(
      'subjectAltName',
      sequence(tagged(0x87, Buffer.from([127, 0, 0, 1])), tagged(0x82, Buffer.from('localhost'))),
    ),
  );
  const body = sequence(
    tagged(0xa0, integer(2)),
    integer(Math.floor(now / 1000)),
    algorithm,
    name,
    sequence(time(now - DAY_MS), time(now + TEN_YEARS_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, extensions),
  );
  const signature = sign('sha256', body, privateKey);
  const bitString = tagged(0x03, Buffer.concat([Buffer.from([0]), signature]));
  const der = sequence(body, algorithm, bitString);
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), content]);
}

const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, Buffer.concat(parts));
const set = (...parts: readonly Buffer[]): Buffer => tagged(0x31, Buffer.concat(parts));
const boolean = (value: boolean): Buffer => tagged(0x01, Buffer.from([value ? 0xff : 0]));
const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
const oid = (name: keyof typeof oids): Buffer => tagged(0x06, Buffer.from(oids[name], 'hex'));

function integer(value: number): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  // If the first bit were 1, the number would be negative.
  const isPositive = ((bytes[0] ?? 0) & 0x80) === 0;
  return tagged(0x02, isPositive ? bytes : Buffer.concat([Buffer.from([0]), bytes]));
}

/** `YYYYMMDDHHMMSSZ`. */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  // Years before 2050 must be written with two digits.
  const year = Number(text.slice(0, 4));
  return year < 2050 ? tagged(0x17, Buffer.from(text.slice(2))) : tagged(0x18, Buffer.from(text));
}

function extension(name: keyof typeof oids, value: Buffer): Buffer {
  return sequence(oid(name), tagged(0x04, value));
}
