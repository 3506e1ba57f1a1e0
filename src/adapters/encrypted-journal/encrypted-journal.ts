// A journal whose events are encrypted with the app's key. The underlying store, its copies and its operators see an
// entry's scope, unit, time and length, but not its content. It also provides a codec that uses the same key to encrypt
// the texts of jobs in an engine.
//
// Owns:     the form of an encrypted event: AES-256-GCM over the packed JSON.
// Does not: store keys, or encrypt names. A `sessionId` should therefore not identify its user.
//
// Invariants
//   ENCRYPTED-JOURNAL-1. Encryption is deterministic, so an append that is retried produces the same entry as the first
//       attempt. The nonce is derived from the content (as in AES-SIV), so two different contents never share a nonce.
//   ENCRYPTED-JOURNAL-2. The encryption authenticates the place of an entry. An entry that was changed or moved is
//       rejected (`JOURNAL_CORRUPT`).
//   ENCRYPTED-JOURNAL-3. An unencrypted entry is rejected (`JOURNAL_CORRUPT`), because a writer without the key could
//       otherwise forge the user's messages. With `readsPlain`, a scope may start with unencrypted entries, but none
//       may follow its first encrypted entry.
//   ENCRYPTED-JOURNAL-4. Job texts are encrypted with separate keys, and each text is bound to its place. A text
//       therefore cannot be mistaken for an entry or another text. A text from an earlier version is not bound to a
//       place and can still be decrypted.
//   ENCRYPTED-JOURNAL-5. On the desk, the content of a row is encrypted and bound to its place. An identity that may
//       answer is replaced by its HMAC, so that the store can search for it but cannot read it. The store sees the
//       kinds, ids and times of the rows.

import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { z } from 'zod';
import type { Desk, DeskRow } from '../../actors/ports/desk.ts';
import { JournalError, journalCorrupt } from '../../actors/ports/journal-error.ts';
import { journalSchema } from '../../actors/ports/journal-entry.ts';
import { passedOn, type Journal, type JournalEntry } from '../../actors/ports/journal.ts';
import { check, checkUnshown, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { textOfEntry } from '../journal-rows/stored-rows.ts';

/** The keys for `encryptionCodec` and an encrypted journal. */
export interface EncryptionOptions {
  /** The key for new entries: 32 random bytes, or their base64: `openssl rand -base64 32`. */
  readonly key: Uint8Array | string;
  /** The keys of earlier entries. @defaultValue none */
  readonly earlierKeys?: readonly (Uint8Array | string)[];
}

/** The options of `encryptedJournal`. */
export interface JournalEncryptionOptions extends EncryptionOptions {
  /**
   * Whether to read unencrypted entries that were written before encryption was introduced. A scope may start with such
   * entries, but none may follow its first encrypted entry. With this option, anyone who can write to the store can
   * forge a scope or rewrite an unencrypted one. Remove it once every scope has been rewritten. @defaultValue false: an
   * unencrypted entry is rejected (`JOURNAL_CORRUPT`)
   */
  readonly readsPlain?: boolean;
}

const KEY_BYTES = 32;
const isKey = (value: unknown): boolean =>
  (value instanceof Uint8Array && value.length === KEY_BYTES) ||
  (typeof value === 'string' &&
    /^[A-Za-z0-9+/]{43}=?$/.test(value) &&
    Buffer.from(value, 'base64').length === KEY_BYTES);
const keySchema = z.custom<Uint8Array | string>(
  isKey,
  'expected 32 bytes, or their base64: openssl rand -base64 32',
);

const optionsSchema = z.strictObject({
  key: keySchema,
  earlierKeys: z.array(keySchema).optional(),
} satisfies ChecksOf<EncryptionOptions>);
const journalOptionsSchema = z.strictObject({
  ...optionsSchema.shape,
  readsPlain: z.boolean().optional(),
} satisfies ChecksOf<JournalEncryptionOptions>);

/** The type of an encrypted event in the store. */
const SEALED = 'sealed';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ALGORITHM = 'aes-256-gcm';

interface Sealed {
  readonly type: typeof SEALED;
  /** The fingerprint of the key. */
  readonly key: string;
  /** Nonce, tag and content, in base64. */
  readonly data: string;
}

interface Key {
  readonly fingerprint: string;
  readonly content: Buffer;
  readonly nonce: Buffer;
}

/**
 * Encrypts a journal's events. Wrap it in a `redactingJournal`, not the other way round.
 * @throws {ConfigurationError} `INVALID_OPTION`; the message does not reveal a key.
 */
export function encryptedJournal(journal: Journal, options: JournalEncryptionOptions): Journal {
  check('encryptedJournal(journal, options)', journalSchema, journal);
  checkUnshown('encryptedJournal', journalOptionsSchema, options);
  const { readsPlain = false } = options;
  const current = keyOf(options.key);
  const keys = new Map(
    [...(options.earlierKeys ?? []).map((key) => keyOf(key)), current].map((key) => [
      key.fingerprint,
      key,
    ]),
  );
  const opened = (entries: readonly JournalEntry[]): readonly JournalEntry[] => {
    const begun = new Set<string>();
    return entries.map((entry) => {
      // ENCRYPTED-JOURNAL-3
      if (entry.event.type === SEALED) begun.add(entry.scope);
      else if (!readsPlain || begun.has(entry.scope)) throw notEncrypted(entry, readsPlain);
      else return entry;
      return { ...entry, event: openedEvent(entry, keys) };
    });
  };
  return {
    ...passedOn(journal),
    append: (entry) => journal.append({ ...entry, event: sealed(entry, current) }),
    read(query) {
      const found = journal.read(query);
      return 'then' in found ? found.then(opened) : opened(found);
    },
    readAfter:
      journal.readAfter &&
      (async (position) => {
        const found = (await journal.readAfter?.(position)) ?? null;
        return found && opened(found);
      }),
    desk: journal.desk && encryptedDesk(journal.desk, current, keys),
  };
}

/** ENCRYPTED-JOURNAL-5 */
function encryptedDesk(desk: Desk, current: Key, keys: ReadonlyMap<string, Key>): Desk {
  const place = (scope: string, { id, since }: Pick<DeskRow, 'id' | 'since'>): Buffer =>
    Buffer.from(JSON.stringify(['desk', scope, id, since]));
  const hidden = (name: string, { nonce }: Key): string =>
    createHmac('sha256', nonce).update(`desk, ${name}`).digest('base64');
  return {
    set: (scope, rows) =>
      desk.set(
        scope,
        rows.map((row) => ({
          ...row,
          answerableBy: row.answerableBy?.map((name) => hidden(name, current)) ?? null,
          body: `${current.fingerprint}.${encrypted(Buffer.from(row.body), current, place(scope, row))}`,
        })),
      ),
    async find({ answerableBy, ...query }) {
      const found = await desk.find({
        ...query,
        ...(answerableBy && {
          answerableBy: answerableBy.flatMap((name) =>
            [...keys.values()].map((key) => hidden(name, key)),
          ),
        }),
      });
      return found.map((row) => {
        const { scope, id, body } = row;
        const [fingerprint = '', data = ''] = body.split('.');
        const name = `the row ${id} of ${scope} on the desk`;
        return {
          ...row,
          body: openedData(name, fingerprint, data, place(scope, row), keys).toString(),
        };
      });
    },
  };
}

/**
 * Encrypts the texts in an engine with AES-256-GCM. Use it as the `codec` of `packedEngine` and `packedHandler`. The
 * codec may share the journal's key. The same text at the same place always has the same encrypted form, which makes it
 * possible to repeat a job. `open` throws if a text was changed, was encrypted for another place, or has no matching
 * key. It accepts texts from earlier versions at any place.
 * @throws {ConfigurationError} `INVALID_OPTION`; the message does not reveal a key.
 */
export function encryptionCodec(options: EncryptionOptions): {
  seal(text: string, place: string): string;
  open(text: string, place: string): string;
} {
  checkUnshown('encryptionCodec', optionsSchema, options);
  const codecKey = (key: Uint8Array | string): Key => keyOf(key, 'jobs');
  const current = codecKey(options.key);
  const keys = [current, ...(options.earlierKeys ?? []).map(codecKey)];
  return {
    seal(text, place) {
      const data = encrypted(Buffer.from(text), current, Buffer.from(place));
      return `${VERSION}${current.fingerprint}.${data}`;
    },
    open(text, place) {
      const [, version, fingerprint = 'of something else', data = ''] =
        SEALED_TEXT.exec(text) ?? [];
      const key = keys.find((each) => each.fingerprint === fingerprint);
      if (!key)
        throw new ConfigurationError(
          'JOURNAL_KEY_MISSING',
          `A text was sealed with the key ${fingerprint}: add it to \`earlierKeys\` of encryptionCodec`,
        );
      return decrypted(data, key, version ? Buffer.from(place) : NO_PLACE).toString();
    },
  };
}

/** Marks a text that is bound to its place. */
const VERSION = '2.';
/** The place that is used for texts from earlier versions. */
const NO_PLACE = Buffer.alloc(0);
const SEALED_TEXT = /^(2\.)?([0-9a-f]{16})\.(.+)$/;

/** ENCRYPTED-JOURNAL-4 */
function keyOf(key: Uint8Array | string, purpose: 'journal' | 'jobs' = 'journal'): Key {
  const secret = typeof key === 'string' ? Buffer.from(key, 'base64') : key;
  const derived = (what: string): Buffer =>
    createHmac('sha256', secret).update(`offstage ${purpose}, ${what}`).digest();
  return {
    fingerprint: derived('fingerprint').toString('hex').slice(0, 16),
    content: derived('content'),
    nonce: derived('nonce'),
  };
}

/** ENCRYPTED-JOURNAL-2 */
function placeOf({ scope, unit, seq, at, actor, definitionVersion }: JournalEntry): Buffer {
  return Buffer.from(JSON.stringify([scope, unit, seq, at, actor, definitionVersion]));
}

function sealed(entry: JournalEntry, key: Key): Sealed {
  const packed = deflateRawSync(textOfEntry(entry));
  const place = placeOf(entry);
  return { type: SEALED, key: key.fingerprint, data: encrypted(packed, key, place) };
}

/** Returns nonce, tag and content, in base64. */
function encrypted(content: Buffer, key: Key, place: Buffer): string {
  // ENCRYPTED-JOURNAL-1
  const nonce = createHmac('sha256', key.nonce)
    .update(`${place.length}\n`)
    .update(place)
    .update(content)
    .digest()
    .subarray(0, NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key.content, nonce).setAAD(place);
  const hidden = Buffer.concat([cipher.update(content), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), hidden]).toString('base64');
}

/** Throws unless the data was encrypted with this key for this place. */
function decrypted(data: string, key: Key, place: Buffer): Buffer {
  const bytes = Buffer.from(data, 'base64');
  const decipher = createDecipheriv(ALGORITHM, key.content, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  })
    .setAAD(place)
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([
    decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
    decipher.final(),
  ]);
}

const nameOf = ({ seq, unit, scope }: JournalEntry): string =>
  `entry ${seq} of ${unit} in ${scope}`;

function notEncrypted(entry: JournalEntry, readsPlain: boolean): JournalError {
  const why = readsPlain
    ? 'is not encrypted, and follows entries of its scope that are'
    : 'is not encrypted; with `readsPlain: true`, encryptedJournal reads entries of the time before the key';
  return journalCorrupt('The encrypted journal', `${nameOf(entry)} ${why}`);
}

/** @throws {JournalError} `JOURNAL_KEY_MISSING`, `JOURNAL_CORRUPT` */
function openedEvent(entry: JournalEntry, keys: ReadonlyMap<string, Key>): JournalEntry['event'] {
  const { key, data } = entry.event as Partial<Sealed>;
  const name = nameOf(entry);
  const packed = openedData(name, String(key), String(data), placeOf(entry), keys);
  try {
    return JSON.parse(inflateRawSync(packed).toString()) as JournalEntry['event'];
  } catch (error) {
    throw changed(name, error);
  }
}

const changed = (name: string, cause: unknown): JournalError =>
  journalCorrupt('The encrypted journal', `${name} is not what was written`, cause);

/** @throws {JournalError} `JOURNAL_KEY_MISSING`, `JOURNAL_CORRUPT` */
function openedData(
  name: string,
  fingerprint: string,
  data: string,
  place: Buffer,
  keys: ReadonlyMap<string, Key>,
): Buffer {
  const key = keys.get(fingerprint);
  if (!key)
    throw new JournalError(
      'JOURNAL_KEY_MISSING',
      `${name} was encrypted with the key ${fingerprint}: add it to \`earlierKeys\` of encryptedJournal`,
      { retryable: false },
    );
  try {
    return decrypted(data, key, place);
  } catch (error) {
    throw changed(name, error);
  }
}
