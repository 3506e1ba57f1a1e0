// Contexts, events and history variables as text. `canonical` tells two of them apart, and `show` prints one in a
// trace.
//
// Invariants
//   PLAIN-DATA-1. `canonical` returns the same text if and only if the data is equal. The order of object keys, and of
//       the members of a Set or Map, does not matter. A key whose value is undefined does not matter either.
//   PLAIN-DATA-2. A value that its data does not identify (a function, a promise, an instance with private state) is
//       refused. The ConfigurationError contains the value's path.

import { shown } from '../../values/plain-checks.ts';
import { ConfigurationError } from '../../values/errors.ts';

/** This is deeper than any sensible context. A deeper value counts as a cycle. */
const maxDepth = 64;

/**
 * Returns a text that differs from the text of every other value.
 * @param whose names the origin of the value in the error, for example `the context of "door"`.
 * @throws {ConfigurationError} NOT_PLAIN_DATA if the value is not plain data
 */
export function canonical(value: unknown, whose: string): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return write(value, [], whose);
}

function write(value: unknown, path: string[], whose: string): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'bigint':
      return `${value}n`;
    case 'object':
      return value === null ? 'null' : writeObject(value, path, whose);
    case 'function':
    case 'symbol':
      throw notPlain(`a ${typeof value}`, path, whose);
  }
}

function writeObject(value: object, path: string[], whose: string): string {
  if (path.length > maxDepth) {
    throw notPlain(`a cycle, or data deeper than ${maxDepth} levels`, path, whose);
  }
  if (isPlainObject(value)) {
    const members = value as Record<string, unknown>;
    const names = Object.keys(members);
    let text = '';
    for (const name of names.length > 1 ? names.toSorted() : names) {
      const member = members[name];
      if (member !== undefined) {
        text += `${JSON.stringify(name)}:${writeMember(member, name, path, whose)},`;
      }
    }
    return `{${text}}`;
  }
  if (Array.isArray(value)) {
    return `[${value.map((member, index) => writeMember(member, String(index), path, whose)).join(',')}]`;
  }
  return writeInstance(value, path, whose);
}

function writeMember(member: unknown, name: string, path: string[], whose: string): string {
  path.push(name);
  const text = write(member, path, whose);
  path.pop();
  return text;
}

function writeInstance(value: object, path: string[], whose: string): string {
  if (isActorRef(value)) return `Actor(${JSON.stringify(value.id)})`;
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (value instanceof Error) return `${value.name}(${JSON.stringify(value.message)})`;
  if (value instanceof Set) {
    const members = [...value].map((member) => writeMember(member, '(member)', path, whose));
    return `Set(${members.toSorted().join(',')})`;
  }
  if (value instanceof Map) {
    const entries = [...value].map(([key, member]) => {
      const name = writeMember(key, '(key)', path, whose);
      return `${name}:${writeMember(member, name, path, whose)}`;
    });
    return `Map(${entries.toSorted().join(',')})`;
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return `${value.constructor.name}(${Array.from(value as Uint8Array).join(',')})`;
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return writeMember((value.toJSON as () => unknown)(), 'toJSON()', path, whose);
  }
  throw notPlain(`an instance of ${value.constructor.name}`, path, whose);
}

/** Returns whether this is a plain object of this realm or another one, such as that of a test runner. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function isActorRef(value: object): value is { readonly id: string } {
  return 'sessionId' in value && 'send' in value && 'id' in value;
}

function notPlain(what: string, path: readonly string[], whose: string): ConfigurationError {
  const place = path.slice(0, 8).join('.');
  return new ConfigurationError(
    'NOT_PLAIN_DATA',
    `Expected plain data in ${whose}, got ${what}${place === '' ? '' : ` at \`${place}\``}. ` +
      'Keep it outside the machine, or give a `key` that names what tells two states apart.',
  );
}

const plainName = /^[A-Za-z_$][\w$]*$/;

/** Formats a value as a person would type it. The text is truncated to `maxLength` characters. */
export function show(value: unknown, maxLength = 240): string {
  let text: string;
  try {
    text = display(value, 0);
  } catch {
    // A getter that throws, or a revoked proxy.
    text = shown(value);
  }
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

function display(value: unknown, depth: number): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "\\'")}'`;
  if (typeof value === 'function') return `ƒ ${value.name}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (depth > 6) return '…';
  if (Array.isArray(value)) {
    return `[${value.map((member) => display(member, depth + 1)).join(', ')}]`;
  }
  if (isActorRef(value)) return `Actor(${value.id})`;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Set || value instanceof Map) {
    const members = [...value].map((member) => display(member, depth + 1));
    return `${value.constructor.name}(${members.join(', ')})`;
  }
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  const members = entries.map(
    ([name, member]) =>
      `${plainName.test(name) ? name : `'${name}'`}: ${display(member, depth + 1)}`,
  );
  return `{${members.join(', ')}}`;
}

/** Formats the value of a state as a path: `waiting.queued`, `{ear: silent, mouth: idle}`. */
export function showValue(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return String(value);
  const regions = Object.entries(value);
  const [only] = regions;
  if (regions.length === 1 && only !== undefined) return `${only[0]}.${showValue(only[1])}`;
  return `{${regions.map(([name, inner]) => `${name}: ${showValue(inner)}`).join(', ')}}`;
}
