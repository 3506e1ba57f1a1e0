// `traceparent` headers from third parties.

import { expect, test } from 'vitest';
import { readTraceparent } from '../../src/values/traceparent.ts';
import { hostile, hostileNames, isPromise } from '../support/hostile-values.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test.each([
  [`00-${TRACE}-${SPAN}-01`, '01'],
  [`00-${TRACE}-${SPAN}-00`, '00'],
  // Undefined flags are not passed on.
  [`00-${TRACE}-${SPAN}-ff`, '01'],
  // A later version may have more fields.
  [`01-${TRACE}-${SPAN}-01`, '01'],
  [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, '01'],
])('reads %s', (given, flags) => {
  expect(readTraceparent(given)).toBe(`00-${TRACE}-${SPAN}-${flags}`);
});

test.each([
  '',
  'null',
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-01 `,
  ` 00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01\r\nset-cookie: a=b`,
  `00-${TRACE}-${SPAN}-01\n`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE}-${SPAN}-1`,
  `00-${TRACE}-${SPAN}-0x`,
  `00-${TRACE}${SPAN}-01`,
  `00-${TRACE}-${SPAN}`,
  `cc-${TRACE}-${SPAN}-01.more`,
  `cc-${TRACE}-${SPAN}-01-${'a'.repeat(1_000)}`,
  `00-${TRACE}-${SPAN}-01,00-${TRACE}-${SPAN}-01`,
])('%j is ignored', (given) => {
  expect(readTraceparent(given)).toBeUndefined();
});

test.each(hostileNames.filter((name) => !isPromise(name)))(
  'rejects malformed values: %s',
  (name) => {
    expect(readTraceparent(hostile(name))).toBeUndefined();
  },
);
