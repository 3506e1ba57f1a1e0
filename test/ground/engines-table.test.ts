// The table in docs/engines.md lists the current cases. `npm run test:engines` compares the table's cells with the
// results.

import { expect, test } from 'vitest';
import { hasAbilityFor, suites, written } from '../../scripts/engines-table.ts';

test('lists every case of the suites in docs/engines.md, in order (see `npm run docs:engines`)', () => {
  const rows = written()
    .split('\n')
    .flatMap((line) => /^\| (.+?) +\| (yes|–) +\|/u.exec(line)?.slice(1, 3).join(': ') ?? []);
  const expected = Object.values(suites).flatMap(({ cases }) => [
    ...cases.map(
      ({ name, skipped }) =>
        `${name}: ${skipped === null && hasAbilityFor('in process', name) ? 'yes' : '–'}`,
    ),
    'processes are killed at random, by seeds: –',
  ]);
  expect(rows).toEqual(expected);
});

test('has titles that remain distinct after the runner shortens them to 40 characters', () => {
  for (const { cases } of Object.values(suites)) {
    const shortened = cases.map(({ name }) => name.slice(0, 39));
    expect(shortened.filter((one, at) => shortened.indexOf(one) !== at)).toEqual([]);
  }
});
