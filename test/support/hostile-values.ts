// Values that a tool, hook or model may throw or return, and that make most code fail when it reads them.

import { runInNewContext } from 'node:vm';

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function throwing(): never {
  throw new Error('do not touch');
}

/** An object whose traps all throw. */
function mine(): object {
  return new Proxy(
    {},
    {
      get: throwing,
      has: throwing,
      getPrototypeOf: throwing,
      ownKeys: throwing,
      getOwnPropertyDescriptor: throwing,
    },
  );
}

function nested(depth: number): object {
  let value: object = {};
  for (let level = 0; level < depth; level += 1) value = { deeper: value };
  return value;
}

function cyclic(): object {
  const value: Record<string, unknown> = {};
  value['self'] = value;
  return value;
}

/** The values by name. Each call creates a new value. */
export const hostileValues: Readonly<Record<string, () => unknown>> = {
  'a revoked Proxy': revoked,
  'a Proxy whose traps throw': mine,
  'an object with throwing conversions': () => ({
    toString: throwing,
    toJSON: throwing,
    valueOf: throwing,
  }),
  'an object with throwing getters': () =>
    Object.defineProperties(
      {},
      Object.fromEntries(
        ['message', 'name', 'code', 'cause', 'stack', 'then', 'retryable', 'isRetryable'].map(
          (key) => [key, { get: throwing, enumerable: true }],
        ),
      ),
    ),
  'an object without a prototype': () => Object.create(null) as object,
  'a symbol': () => Symbol('thrown'),
  null: () => null,
  undefined: () => undefined,
  'a bigint': () => 10n ** 40n,
  'a function': () => throwing,
  'a frozen error': () => Object.freeze(new Error('frozen')),
  'an error whose message is no text': () =>
    Object.assign(new Error(), { message: { not: 'text' } }),
  'an error whose message is a symbol': () => Object.assign(new Error(), { message: Symbol('s') }),
  'an error whose message throws': () =>
    Object.defineProperty(new Error(), 'message', { get: throwing }),
  'an error with a revoked cause': () => new Error('outer', { cause: revoked() }),
  'an error of another realm': () => runInNewContext('new Error("elsewhere")') as unknown,
  'a rejected promise of another realm': () =>
    runInNewContext('Promise.reject(new Error("elsewhere"))') as unknown,
  'a thenable that throws': () => ({ then: throwing }),
  'a cyclic object': cyclic,
  'an object nested 20,000 deep': () => nested(20_000),
  'an object nested 2,000 deep': () => nested(2_000),
  'a text of 5 MB': () => 'x'.repeat(5_000_000),
  'half a surrogate pair': () => 'half \uD83D of a pair \0',
};

export const hostileNames = Object.keys(hostileValues);

/**
 * Returns whether the value is a promise that has already been rejected. Only the code that receives such a promise can
 * handle the rejection.
 */
export const isPromise = (name: string): boolean => name.includes('rejected promise');

export const hostile = (name: string): unknown => hostileValues[name]?.();
