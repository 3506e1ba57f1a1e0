// A codec and claims for tests of packed jobs.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { JobClaims, JobCodec } from '../../src/entries/jobs.ts';

/** Returns a codec: AES-256-GCM with a key that is derived from a text, and with the place as additional data. */
export function testCodec(secret: string): JobCodec {
  const key = createHash('sha256').update(secret).digest();
  return {
    seal(text, place) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
    },
    open(sealed, place) {
      const bytes = Buffer.from(sealed, 'base64');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString(
        'utf8',
      );
    },
  };
}

export function memoryClaims(): JobClaims & { readonly texts: ReadonlyMap<string, string> } {
  const texts = new Map<string, string>();
  return {
    texts,
    keep: (reference, text) => void texts.set(reference, text),
    read: (reference) => texts.get(reference) ?? null,
    forget(prefix) {
      for (const reference of texts.keys())
        if (reference.startsWith(prefix)) texts.delete(reference);
    },
  };
}

/** Returns a function that gives other threads time to compute digests. */
export function realMoment(settle: () => Promise<void> = () => Promise.resolve()) {
  return async (): Promise<void> => {
    await settle();
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  };
}
