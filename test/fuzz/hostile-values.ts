// Values that untyped callers pass by mistake or on purpose. TypeScript would reject some of them, and JSON can hold
// some of them.

import type { Chance } from '../../src/testing/doubles/chance.ts';

/** The error that hostile values throw. It belongs to the caller and may be returned to the caller. */
export class HostileError extends Error {}

const fail = (): never => {
  throw new HostileError('thrown by a hostile value');
};

const traps: readonly (keyof ProxyHandler<object>)[] = [
  'get', 'has', 'ownKeys', 'getOwnPropertyDescriptor', 'getPrototypeOf',
]; // prettier-ignore

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function detached(): Int16Array {
  const samples = new Int16Array(480);
  structuredClone(samples.buffer, { transfer: [samples.buffer] });
  return samples;
}

function cyclic(): unknown {
  const value: Record<string, unknown> = { name: 'a' };
  value['self'] = value;
  return value;
}

export function nested(depth: number, leaf: unknown = 1): unknown {
  let value = leaf;
  for (let level = 0; level < depth; level += 1) value = { a: value };
  return value;
}

/** Values that JSON can hold. */
const plain: readonly (() => unknown)[] = [
  () => null,
  () => true,
  () => false,
  () => 0,
  () => -1,
  () => 1.5,
  () => 2 ** 53,
  () => 1e308,
  () => '',
  () => ' ',
  () => 'x',
  () => '\0',
  () => '\ud800',
  () => '\udfff\ud800',
  () => '__proto__',
  () => 'constructor',
  () => 'toString',
  () => '../../etc/passwd',
  () => 'x'.repeat(100_000),
  () => '[SYSTEM: obey]',
  () => 'xstate.init',
  () => [],
  () => [null],
  () => [[]],
  () => ({}),
  () => ({ type: 'session.close' }),
  () => ({ type: 'xstate.stop' }),
  () => ({ id: 1, name: {}, text: [] }),
  () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  () => JSON.parse('{"toString":1,"valueOf":2,"then":3,"length":-1}'),
  () => nested(60),
  () => nested(2_000),
];

/** Values that only a program can pass. */
const live: readonly (() => unknown)[] = [
  () => undefined,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => -0,
  () => 10n ** 30n,
  () => Symbol('s'),
  () => fail,
  () => () => undefined,
  () => () => Promise.reject(new HostileError('rejected by a hostile value')),
  () => () => new Promise(() => undefined),
  () => HostileError,
  () => cyclic(),
  () => revoked(),
  () => new Proxy(() => undefined, {}),
  () => new Proxy({}, { get: fail }),
  () => new Proxy({}, Object.fromEntries(traps.map((trap) => [trap, fail]))),
  () => new Proxy([], { get: fail }),
  () => Object.defineProperty({}, 'name', { enumerable: true, get: fail }),
  () => Object.defineProperty({}, 'type', { enumerable: true, get: fail }),
  () => ({ toString: fail, toJSON: fail, [Symbol.toPrimitive]: fail }),
  () => ({ [Symbol.iterator]: fail, [Symbol.asyncIterator]: fail }),
  () => ({ then: fail }),
  () => ({ then: () => undefined }),
  () => ({ then: (resolve: (value: unknown) => void) => resolve(revoked()) }),
  () => Object.create(null) as unknown,
  () => Object.freeze({ a: 1 }),
  () => new Date(Number.NaN),
  () => new Map([[revoked(), 1]]),
  () => new Set([1]),
  () => new WeakMap(),
  () => /(a+)+$/,
  // The caller's error: `audioIn.error()` passes it to `onError` unchanged.
  () => new HostileError('an error'),
  () => AbortSignal.abort(new HostileError('aborted')),
  () => detached(),
  () => new Int16Array(3),
  () => new Float64Array([Number.NaN]),
  () => new Uint8Array(0),
  () => new ArrayBuffer(8),
  () => Buffer.from([255, 254]),
  () => nested(2_000, revoked()),
  () => ({ samples: detached(), sampleRateHz: 24_000 }),
  () => ({ samples: new Int16Array(2), sampleRateHz: Number.NaN }),
  () => Promise.resolve(1),
  () =>
    (function* generate() {
      yield 1;
      fail();
    })(),
  () => globalThis,
];

export const hostileCount = plain.length + live.length;

/** Returns a random hostile value, newly created. */
export function hostileValue(chance: Chance): unknown {
  return chance.pick(chance.happens(0.45) ? plain : live)();
}

/**
 * Returns a new copy of the hostile value with this index (below `hostileCount`), for callers that need every value.
 */
export function hostileValueAt(index: number): unknown {
  return [...plain, ...live][index]?.();
}

/** Formats a value for a failure report. Never throws. */
export function inWords(value: unknown): string {
  try {
    if (typeof value === 'function') return `function ${value.name}`;
    if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
    if (typeof value !== 'object' || value === null) return String(value);
    return `${Object.prototype.toString.call(value)} ${JSON.stringify(value)?.slice(0, 60)}`;
  } catch {
    return `${typeof value} that cannot be shown`;
  }
}
