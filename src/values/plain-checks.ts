// Checks of options and arguments that need no schema library, and their error messages. Code that runs in any host
// (`offstage/voice`, the life of a subagent) uses only these checks.
//
// PLAIN-CHECKS-1. The messages and codes are the same as those of `check` in `checks.ts`.

import { secretRemover } from './secrets.ts';
import { ConfigurationError, messageOf } from './errors.ts';

// A package manager only warns about an old version of Node.js, and a browser does not check at all.
if (typeof Promise.withResolvers !== 'function')
  throw new ConfigurationError(
    'UNSUPPORTED_RUNTIME',
    `Expected Node.js 22.13 or newer, or a browser of 2024, got ${runtimeName()}`,
  );

/** An error message shows at most this many characters of an invalid value. */
const MAX_SHOWN_CHARS = 80;
const MAX_LOOKED_AT_CHARS = 2000;
/** The maximum number of unknown options that one error message names. The object passed in may have a million keys. */
const MAX_UNKNOWN_KEYS = 5;

const withoutSecrets = secretRemover([]);

/**
 * Returns a description of the expected value; null if the value is valid. `isGiven`: whether the option was passed.
 */
export type OptionCheck = (value: unknown, isGiven: boolean) => string | null;

/** One check per option of `Options`. A missing check, or a check for an unknown option, is a compile-time error. */
export type OptionChecks<Options> = { readonly [Option in keyof Required<Options>]: OptionCheck };

/**
 * Checks the options in one object and reads each of them only once.
 * @param where The function. The message starts with its name.
 * @throws {ConfigurationError} `INVALID_OPTION`, whose message lists each wrong or unknown option.
 */
export function checkOptions<Options extends object>(
  where: string,
  checks: OptionChecks<Options>,
  options: unknown,
): Options {
  let read: Partial<Options> = {};
  let problems: readonly string[];
  try {
    [read, problems] = readOptions(checks, options);
  } catch (cause) {
    problems = [`the value cannot be read: ${messageOf(cause)}`];
  }
  if (problems.length === 0) return read as Options;
  throw new ConfigurationError('INVALID_OPTION', `${where}: ${problems.join('; ')}`);
}

function readOptions<Options extends object>(
  checks: OptionChecks<Options>,
  options: unknown,
): [Partial<Options>, readonly string[]] {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return [{}, [`${expected('object', options)}, got ${shown(options)}`]];
  const given = options as Partial<Options>;
  const read: Partial<Options> = {};
  const problems: string[] = [];
  const known = Object.keys(checks) as (keyof Options & string)[];
  for (const name of known) {
    const isGiven = name in given;
    const value = given[name];
    const problem = checks[name](value, isGiven);
    if (problem !== null) problems.push(`\`${name}\`: ${problem}, got ${shown(value)}`);
    else if (isGiven) read[name] = value;
  }
  const unknown: string[] = [];
  // Inherited names are included, because an instance of a class is not an options object.
  for (const name in given) if (!Object.hasOwn(checks, name)) unknown.push(name);
  if (unknown.length > 0) problems.push(unknownOptions(unknown, known));
  return [read, problems];
}

/** Accepts an option that is missing or undefined. */
export function optional(check: OptionCheck): OptionCheck {
  return (value, isGiven) => (value === undefined ? null : check(value, isGiven));
}

/** Accepts any value, because a later check validates it. The option must not be missing. */
export const anyValue: OptionCheck = (_value, isGiven) =>
  isGiven ? null : 'Invalid input: expected nonoptional, received undefined';

/** Checks for an object that has at least these methods, such as an Observable. */
export function objectWith(what: string, ...methods: readonly string[]): OptionCheck {
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    methods.every(
      (method) => typeof (value as Readonly<Record<string, unknown>>)[method] === 'function',
    )
      ? null
      : `expected ${what}`;
}

/** Checks for a finite number greater than `least` and at most `most`. */
export function numberAbove(least: number, most: number): OptionCheck {
  return (value) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return expected('number', value);
    if (value <= least) return `Too small: expected number to be >${least}`;
    return value > most ? `Too big: expected number to be <=${most}` : null;
  };
}

/** Checks for one of these strings. */
export function oneOf(...values: readonly string[]): OptionCheck {
  const listed = values.map((value) => `"${value}"`).join('|');
  return (value) =>
    values.includes(value as string) ? null : `Invalid option: expected one of ${listed}`;
}

function expected(type: string, value: unknown): string {
  return `Invalid input: expected ${type}, received ${typeName(value)}`;
}

/** Returns the name of a value's type in zod's notation. */
function typeName(value: unknown): string {
  if (typeof value === 'number') return Number.isFinite(value) ? 'number' : String(value);
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value !== 'object' || Object.getPrototypeOf(value) === Object.prototype)
    return typeof value;
  const made: unknown = value.constructor;
  return typeof made === 'function' ? made.name : 'object';
}

/** Names at most five of the unknown options, each with a suggestion. */
export function unknownOptions(
  names: readonly string[],
  known: readonly string[],
  path = '',
): string {
  const told = names
    .slice(0, MAX_UNKNOWN_KEYS)
    .map(
      (name) => `unknown option \`${[path, name].filter(Boolean).join('.')}\`${meant(name, known)}`,
    );
  const more = names.length - told.length;
  return [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** Returns `; did you mean …?`, the list of all options, or an empty string. */
function meant(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  if (near !== null) return `; did you mean \`${near}\`?`;
  if (known.length === 0) return '';
  return `; expected ${known.map((name) => `\`${name}\``).join(', ')}`;
}

/**
 * Returns the known name that was probably meant, which differs only in case or in a few letters; null if there is
 * none.
 */
export function nearest(key: string, known: readonly string[]): string | null {
  const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]|ms$/g, '');
  const wanted = plain(key);
  let best: string | null = null;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of known) {
    const distance = edits(wanted, plain(name));
    if (distance < least) [best, least] = [name, distance];
  }
  return best;
}

const MAX_COMPARED_CHARS = 64;

/** Counts the letters that have to be inserted, deleted or replaced (Levenshtein distance). */
function edits(one: string, other: string): number {
  const [from, to] = [one.slice(0, MAX_COMPARED_CHARS), other.slice(0, MAX_COMPARED_CHARS)];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of from.split('').entries()) {
    const next = [i + 1];
    for (const [j, against] of to.split('').entries())
      next.push(
        Math.min(
          (next[j] ?? 0) + 1,
          (row[j + 1] ?? 0) + 1,
          (row[j] ?? 0) + (letter === against ? 0 : 1),
        ),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}

/**
 * Checks that the options are an object rather than a promise of one, before any option is read.
 * @param example the correct code, such as `new TextSession({ model, agents: [agent] })`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function checkIsObject(where: string, value: unknown, example: string): void {
  const problem = notAnObject(value);
  if (problem === null) return;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `${where}: expected an object, got ${problem}. Write ${example}`,
  );
}

/** Describes a value that is not a plain object; null if it is one. */
export function notAnObject(value: unknown): string | null {
  try {
    if (typeof value === 'function') return `${shown(value)}, which is not called`;
    if (typeof value !== 'object' || value === null) return shown(value);
    if (Array.isArray(value)) return 'an array';
    return typeof (value as { then?: unknown }).then === 'function'
      ? 'a promise, which is not awaited'
      : null;
  } catch {
    return shown(value);
  }
}

/**
 * Returns a shallow copy of the options that a caller passed. Each option is read only once: an option that cannot be
 * read is rejected here, and later reads cannot throw or return a different value.
 * @param where The function. The message starts with its name.
 * @throws {ConfigurationError} `INVALID_OPTION` if the value is not an object or cannot be read.
 */
export function readable<Options extends object>(where: string, options: Options): Options {
  let why: string;
  try {
    if (typeof options === 'object' && options !== null && !Array.isArray(options))
      return { ...options };
    why = `expected options in an object, got ${shown(options)}`;
  } catch (cause) {
    why = `the options cannot be read: ${messageOf(cause)}`;
  }
  throw new ConfigurationError('INVALID_OPTION', `${where}: ${why}`);
}

/**
 * Formats a value for an error message, briefly and on one line. Names the class if JSON would say little about the
 * value: `Float32Array(480)`, `Map {}`. Never throws.
 */
export function shown(value: unknown): string {
  try {
    const text =
      typeof value === 'function'
        ? `function ${value.name}`
        : ((typeof value === 'object' && value !== null
            ? shownObject(value)
            : typeof value === 'string'
              ? JSON.stringify(value)
              : undefined) ?? String(value));
    // Secrets are removed before the text is cut, because the pattern would not match half a credential.
    const clean = withoutSecrets(text.slice(0, MAX_LOOKED_AT_CHARS));
    return clean.length > MAX_SHOWN_CHARS ? `${clean.slice(0, MAX_SHOWN_CHARS)}…` : clean;
  } catch {
    // Even `Array.isArray` throws for a revoked Proxy.
    return `${typeof value} that cannot be read`;
  }
}

function shownObject(value: object): string | undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    const { byteLength, length = byteLength } = value as ArrayBufferView & {
      readonly length?: number;
    };
    return `${classOf(value)}(${length})`;
  }
  const json = JSON.stringify(value) as string | undefined;
  const name = json === '{}' ? classOf(value) : 'Object';
  return name === 'Object' ? json : `${name} {}`;
}

/** Returns the name of an object's class: `Object` for a plain object. */
export function classOf(value: object): string {
  const made: unknown = (Object.getPrototypeOf(value) as { constructor?: unknown } | null)
    ?.constructor;
  return typeof made === 'function' && made.name !== '' ? made.name : 'Object';
}

function runtimeName(): string {
  const { process, navigator } = globalThis as {
    readonly process?: { readonly version?: string };
    readonly navigator?: { readonly userAgent?: string };
  };
  return process?.version ? `Node.js ${process.version}` : (navigator?.userAgent ?? 'another one');
}

/** A value that a callback returns directly or as a promise. */
export type MaybePromise<T> = T | Promise<T>;

export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return 'then' in value && typeof value.then === 'function';
}

/** Applies `change`, synchronously unless the value is a promise. */
export function changed<T, U>(value: MaybePromise<T>, change: (value: T) => U): MaybePromise<U> {
  return isPromiseLike(value) ? Promise.resolve(value).then(change) : change(value);
}
