// The checks without a schema library produce the same messages as those with zod.

import { expect, test } from 'vitest';
import { z } from 'zod';
import { anObject, check } from '../../src/values/checks.ts';
import { ConfigurationError, messageOf } from '../../src/values/errors.ts';
import {
  anyValue,
  checkOptions,
  numberAbove,
  objectWith,
  oneOf,
  optional,
  type OptionChecks,
} from '../../src/values/plain-checks.ts';

interface Options {
  readonly any: unknown;
  readonly keep?: 'newest' | 'oldest';
  readonly volume?: number;
  readonly source?: object;
}

const plain: OptionChecks<Options> = {
  any: anyValue,
  keep: optional(oneOf('newest', 'oldest')),
  volume: optional(numberAbove(0, 1)),
  source: optional(objectWith('an Observable', 'subscribe')),
};
const schema = z.strictObject({
  any: z.custom<unknown>(),
  keep: z.enum(['newest', 'oldest']).optional(),
  volume: z.number().gt(0).max(1).optional(),
  source: anObject('an Observable', 'subscribe').optional(),
});

class Bag {
  any = 1;
}
const inheriting: unknown = Object.assign(Object.create({ inherited: 1 }), { any: 1 });
const throwing = {
  any: 1,
  get volume(): never {
    throw new Error('a getter that throws');
  },
};
const revoked = Proxy.revocable({}, {});
revoked.revoke();

const values: readonly unknown[] = [
  0,
  1,
  0.5,
  -1,
  2,
  NaN,
  Infinity,
  -Infinity,
  '1',
  'newest',
  'both',
  null,
  undefined,
  true,
  1n,
  Symbol('s'),
  () => 1,
  [],
  [1],
  {},
  { subscribe: 1 },
  { subscribe: () => undefined },
  new Map(),
  new Date(0),
  new Number(1),
  'x'.repeat(300),
  Object.create(null),
];
const whole = [
  ...values,
  new Bag(),
  inheriting,
  throwing,
  revoked.proxy,
  JSON.parse('{"__proto__":1}'),
];
const named = ['any', 'keep', 'volume', 'source', 'Volume', 'what', 'toString'].flatMap((name) =>
  values.flatMap((value) => [{ [name]: value }, { any: 1, [name]: value }]),
);
const many = { any: 1, a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, volume: 3 };

function outcomeOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return messageOf(error);
  }
}

test('PLAIN-CHECKS-1: accepts or refuses each value like zod, with identical messages', () => {
  for (const given of [...whole, ...named, many])
    expect(outcomeOf(() => checkOptions('play', plain, given))).toEqual(
      outcomeOf(() => check('play', schema, given)),
    );
});
