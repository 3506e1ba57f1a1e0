// A journal that removes secrets from events before another journal stores them.
//
// Invariants
//   REDACTING-JOURNAL-1. An entry without secrets is passed on as the same object.
//   REDACTING-JOURNAL-2. The same entry is always redacted in the same way, so that a retried entry equals the first
//       attempt.
//   REDACTING-JOURNAL-3. Only strings and numbers are replaced. Event types, and property names that are not secrets,
//       stay unchanged.
//   REDACTING-JOURNAL-4. If a request contained secrets, its digest is removed too, since a reader could use it to
//       confirm a guess.

import { propertiesOf } from '../../values/json.ts';
import { check, checkUnshown } from '../../values/checks.ts';
import { z } from 'zod';
import { journalSchema } from '../ports/journal-entry.ts';
import { passedOn, type Journal, type JournalEntry } from '../ports/journal.ts';
import {
  isSecretName,
  nameMatcher,
  REDACTED,
  SECRET_NAMES,
  secretRemover,
  type TakeOut,
} from '../../values/secrets.ts';

/** The secrets that `redactingJournal` replaces, and their replacement. */
export interface RedactionOptions {
  /**
   * The names of properties whose strings and numbers are replaced, including everything nested inside them at any
   * depth. Case, `_` and `-` are ignored: `apiKey` also matches `API_KEY` and `api-key`. A value next to its name is
   * replaced too: `{ name: 'password', value: '…' }`.
   * @defaultValue `SECRET_NAMES`, and names that end like one of them: `openaiApiKey`, `x-api-key`, `DB_PASSWORD`
   */
  readonly names?: readonly string[];
  /**
   * Secrets to replace wherever they occur in a text: exact strings, such as keys from the environment
   * (`process.env.OPENAI_API_KEY`; undefined values and strings shorter than 8 characters are skipped), and patterns.
   * Strings that look like a common provider's key, or like a token after `Bearer`, are always replaced.
   * @defaultValue none
   */
  readonly values?: readonly (string | RegExp | undefined)[];
  /** The text that replaces a secret. @defaultValue '[redacted]' */
  readonly replace?: string;
}

const optionsSchema = z.strictObject({
  names: z.array(z.string().regex(/[^_-]/)).optional(),
  values: z
    .array(
      z.union([
        z.string(),
        z.undefined(),
        z
          .instanceof(RegExp)
          .refine((pattern) => !matchesNothing(pattern), 'matches the empty text'),
      ]),
    )
    .optional(),
  replace: z.string().optional(),
});

/**
 * Wraps a journal and removes secrets from its entries. After a crash, removed secrets are missing: a repeated tool
 * call receives `[redacted]` as its argument. Do not let a model pass secrets to tools as arguments.
 * @throws {ConfigurationError} if an option is invalid.
 */
export function redactingJournal(journal: Journal, options: RedactionOptions = {}): Journal {
  check('redactingJournal(journal, options)', journalSchema, journal);
  const redaction = redactionOf('redactingJournal', options);
  return {
    ...passedOn(journal),
    append: (entry) => journal.append(redacted(entry, redaction)),
    desk: journal.desk && {
      set: (scope, rows) =>
        journal.desk?.set(
          scope,
          rows.map((row) => ({
            ...row,
            body: JSON.stringify(clean(JSON.parse(row.body), redaction, false)),
          })),
        ),
      find: journal.desk.find.bind(journal.desk),
    },
  };
}

/**
 * Returns the function that removes secrets from JSON.
 * @throws {ConfigurationError} if an option is invalid.
 */
export function secretsTaken(where: string, options: RedactionOptions): (json: unknown) => unknown {
  const redaction = redactionOf(where, options);
  return (json) => clean(json, redaction, false);
}

/**
 * Returns the function that removes secrets from journal entries.
 * @throws {ConfigurationError} if an option is invalid.
 */
export function entryRedaction(
  where: string,
  options: RedactionOptions,
): (entry: JournalEntry) => JournalEntry {
  const redaction = redactionOf(where, options);
  return (entry) => redacted(entry, redaction);
}

function redactionOf(where: string, options: RedactionOptions): Redaction {
  checkUnshown(where, optionsSchema, options);
  const { names = SECRET_NAMES, values = [], replace = REDACTED } = options;
  return {
    isSecret: options.names === undefined ? isSecretName : nameMatcher(names),
    takeOut: secretRemover(
      values.filter((value) => value !== undefined),
      replace,
    ),
    replace,
  };
}

interface Redaction {
  readonly isSecret: (name: string) => boolean;
  readonly takeOut: TakeOut;
  readonly replace: string;
}

function redacted(entry: JournalEntry, redaction: Redaction): JournalEntry {
  const event = clean(entry.event, redaction, false) as JournalEntry['event'];
  // REDACTING-JOURNAL-1. An event's type is never redacted, because the machines depend on it.
  return event === entry.event ? entry : { ...entry, event: { ...event, type: entry.event.type } };
}

function clean(value: unknown, redaction: Redaction, isSecret: boolean): unknown {
  if (typeof value === 'string') {
    if (!isSecret) return redaction.takeOut(value);
    return value === '' ? value : redaction.replace;
  }
  if (typeof value === 'number') return isSecret ? redaction.replace : value;
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value)
    ? cleanItems(value, redaction, isSecret)
    : cleanObject(value, redaction, isSecret);
}

function cleanItems(items: readonly unknown[], redaction: Redaction, isSecret: boolean): unknown {
  const cleaned = items.map((item) => clean(item, redaction, isSecret));
  return cleaned.every((item, at) => Object.is(item, items[at])) ? items : cleaned;
}

function cleanObject(object: object, redaction: Redaction, isSecret: boolean): object {
  let isChanged = false;
  const named = nameBeside(object);
  const cleaned = Object.entries(object).map(([name, value]) => {
    const isValue = name === 'value' && named !== null && redaction.isSecret(named);
    const to = clean(value, redaction, isSecret || isValue || redaction.isSecret(name));
    // In a record, the secret may be the property name itself.
    const as = redaction.takeOut(name);
    isChanged ||= as !== name || !Object.is(to, value);
    return [as, to] as const;
  });
  // Does not assign the property, because its name may be `__proto__`.
  if (!isChanged) return object;
  const kept = (name: string, value: unknown) =>
    [name, name === 'requestDigest' ? redaction.replace : value] as const;
  return Object.fromEntries(cleaned.map(([name, value]) => kept(name, value)));
}

/** Returns the name that stands beside `value` in an object, as in form fields and header lists. */
function nameBeside(object: object): string | null {
  const { name, key, field, header } = propertiesOf(object);
  return [name, key, field, header].find((value) => typeof value === 'string') ?? null;
}

function matchesNothing({ source, flags }: RegExp): boolean {
  return new RegExp(source, flags.replace(/[gy]/g, '')).test('');
}
