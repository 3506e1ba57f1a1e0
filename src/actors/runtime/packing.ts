// Packs the texts of jobs and runs that an engine stores: removes secrets, seals the text with the app's key, and moves
// a large text to the claims. Both ends need the same packing.
//
// Owns:     the order of the operations (redaction, then sealing, then claiming).
// Does not: encrypt texts, or store large texts (the app's codec and the claims do).
//
// Invariants
//   PACKING-1. With a codec, no packed text reaches the engine or the claims unsealed.
//   PACKING-2. The claims store a text of more than `claimAboveBytes` before the engine receives its reference.
//   PACKING-3. A text that cannot be unpacked causes a failure (`JOB_UNREADABLE`). It is never replaced by another
//       text.
//   PACKING-4. A reference always names the same text, because a later attempt does not replace a text that an engine
//       has recorded.
//   PACKING-5. Both ends pass the text's place to the codec, so a text that was moved to another place cannot be
//       opened.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { isLongerThan, parsedOrText } from '../../values/json.ts';
import { isA, messageOf } from '../../values/errors.ts';
import { digestOf, JobError, jobUnreadable } from '../ports/jobs.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { entryRedaction, secretsTaken, type RedactionOptions } from './redacting-journal.ts';

/**
 * Seals texts with the app's key, for example by encryption. Both ends need the same codec. `place` names the text's
 * subject, such as `chat-1/run:answer:req_2`, and is the same at both ends. A codec that authenticates `place` (as the
 * additional data of an AEAD cipher) prevents the engine from passing off one text as another.
 */
export interface JobCodec {
  /** Returns the sealed text. If it throws, the text is not sent, and the job or turn fails with `JOB_UNREADABLE`. */
  seal(text: string, place: string): string | Promise<string>;
  /**
   * Opens a sealed text. Rejects a text that was not sealed for this place. After a `JobError` that is `retryable`, the
   * caller retries.
   */
  open(sealed: string, place: string): string | Promise<string>;
}

/**
 * Stores large texts for both ends, for example in a bucket, a table or a shared folder (`fileClaims` of
 * `offstage/node`). References are never reused.
 */
export interface JobClaims {
  /** Stores a text. Calls with the same reference always pass the same text. */
  keep(reference: string, text: string): void | Promise<void>;
  /** Returns the text; null if there is none. */
  read(reference: string): string | null | Promise<string | null>;
  /** Deletes all texts whose references start with this prefix. */
  forget?(prefix: string): void | Promise<void>;
}

/** How both ends pack the texts of jobs before an engine stores them. Both ends need the same settings. */
export interface JobPacking {
  /**
   * Removes secrets from bodies and results, as `redactingJournal` does. The worker's model and tools do not see the
   * secrets either.
   * @defaultValue none
   */
  readonly redact?: RedactionOptions;
  /** @defaultValue none */
  readonly codec?: JobCodec;
  /** @defaultValue none: a body larger than the engine's `maxBytes` is refused */
  readonly claims?: JobClaims;
  /** The size, in bytes, above which a text is stored in the claims. @defaultValue 100000 */
  readonly claimAboveBytes?: number;
}

const packingSchema = z.strictObject({
  redact: z.unknown().optional(),
  codec: anObject('a codec with seal() and open()', 'seal', 'open').optional(),
  claims: anObject('claims with keep() and read()', 'keep', 'read').optional(),
  claimAboveBytes: z.number().int().min(0).optional(),
} satisfies ChecksOf<JobPacking>);

const CLAIM_ABOVE_BYTES = 100_000;
/** The length of the digest in a reference. */
const DIGEST_CHARS = 32;

const packed = z.strictObject({
  sealed: z.boolean(),
  text: z.string().optional(),
  claim: z.string().optional(),
});

/** Packs texts at one end and unpacks them at the other. */
export class Packer {
  readonly #packing: JobPacking;
  readonly #redact: ((json: unknown) => unknown) | null;
  readonly #redactEntry: ((entry: JournalEntry) => JournalEntry) | null;

  constructor(where: string, packing: JobPacking) {
    check(where, packingSchema, packing);
    this.#packing = packing;
    const { redact } = packing;
    this.#redact = redact === undefined ? null : secretsTaken(`${where}.redact`, redact);
    this.#redactEntry = redact === undefined ? null : entryRedaction(`${where}.redact`, redact);
  }

  get isSealing(): boolean {
    return this.#packing.codec !== undefined;
  }

  /** Whether any of the texts must be hidden from the engine. */
  get isHiding(): boolean {
    return this.isSealing || this.#redact !== null;
  }

  pack(place: string, text: string): Promise<string> {
    if (!this.#redact) return this.#pack(place, text, place);
    return this.#pack(place, JSON.stringify(this.#redact(parsedOrText(text))), place);
  }

  /** Packs a JSON value. `reference`: the prefix of the reference under which the claims store the text. */
  packJson(place: string, json: unknown, reference = place): Promise<string> {
    return this.#pack(place, JSON.stringify(this.#redact ? this.#redact(json) : json), reference);
  }

  packEntries(place: string, entries: readonly JournalEntry[], reference: string): Promise<string> {
    const redact = this.#redactEntry;
    return this.#pack(place, JSON.stringify(redact ? entries.map(redact) : entries), reference);
  }

  /** Packs a text that contains no secrets. @throws {JobError} `CLAIMS_UNREACHABLE`, `JOB_UNREADABLE`. */
  async #pack(place: string, bare: string, beginning: string): Promise<string> {
    const { codec, claims, claimAboveBytes = CLAIM_ABOVE_BYTES } = this.#packing;
    const sealed = codec !== undefined;
    const ready = codec ? await sealedBy(codec, bare, place) : bare;
    if (!claims || !isLongerThan(ready, claimAboveBytes))
      return JSON.stringify({ sealed, text: ready });
    const reference = `${beginning}~${(await digestOf(ready)).slice(0, DIGEST_CHARS)}`;
    try {
      await claims.keep(reference, ready);
    } catch (error) {
      throw new JobError('CLAIMS_UNREACHABLE', `The claims keep nothing: ${messageOf(error)}`, {
        retryable: true,
        cause: error,
      });
    }
    return JSON.stringify({ sealed, claim: reference });
  }

  /** PACKING-3, PACKING-5 */
  async unpack(written: string, place: string): Promise<string> {
    const { success, data } = packed.safeParse(parsedOrText(written));
    if (!success) throw unreadable('expected a text that the other end packed');
    const { codec } = this.#packing;
    if (data.sealed !== (codec !== undefined))
      throw unreadable(data.sealed ? 'it is sealed: expected a codec' : 'it is not sealed');
    const ready = data.claim === undefined ? data.text : await this.#claimed(data.claim);
    if (ready === undefined) throw unreadable('it is empty');
    if (!codec) return ready;
    try {
      return await codec.open(ready, place);
    } catch (error) {
      if (isA(error, JobError) && error.retryable) throw error;
      throw unreadable(`the codec cannot open it: ${messageOf(error)}`);
    }
  }

  async #claimed(reference: string): Promise<string> {
    const { claims } = this.#packing;
    if (!claims) throw unreadable('it was kept elsewhere: expected `claims`');
    let text: string | null;
    try {
      text = await claims.read(reference);
    } catch (error) {
      throw new JobError('CLAIMS_UNREACHABLE', `The claims cannot be read: ${messageOf(error)}`, {
        retryable: true,
        cause: error,
      });
    }
    if (text === null) throw unreadable(`the claims do not have ${reference}`);
    return text;
  }
}

/** Returns whether a packer wrote the text. */
export function isPacked(text: string): boolean {
  return packed.safeParse(parsedOrText(text)).success;
}

async function sealedBy(codec: JobCodec, text: string, place: string): Promise<string> {
  try {
    return await codec.seal(text, place);
  } catch (error) {
    throw jobUnreadable(`The codec cannot seal it: ${messageOf(error)}`, error);
  }
}

/** The error for a text that cannot be unpacked. */
export function unreadable(why: string): JobError {
  return jobUnreadable(`A job or run cannot be unpacked: ${why}. Both ends need the same packing`);
}
