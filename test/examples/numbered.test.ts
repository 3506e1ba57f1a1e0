// Every numbered program runs as the documentation says, and says what it shows.

import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const folder = new URL('../../examples/', import.meta.url);
const programs = readdirSync(folder).filter((name) => /^\d\d-.*\.ts$/.test(name));

/** A line that shows that it did its work, by the number of the program. */
const shows: Readonly<Record<string, RegExp>> = {
  '01': /lead: News: The report is ready: .*"revenue":58210/,
  '02': /lunch_orderer asks[^]*lead: Done\. Soup or salad\? You chose Salad\./,
  '03': /every property holds/,
  '04': /waiting_for_input\.asking → ready → running\.thinking → completed/,
};

test.each(programs)('%s', { timeout: 90_000 }, async (name) => {
  const expected = shows[name.slice(0, 2)];
  expect(expected, `a line of ${name} that this test looks for`).toBeDefined();
  const { stdout } = await run(process.execPath, [new URL(name, folder).pathname], {
    timeout: 60_000,
  });
  expect(stdout).toMatch(expected as RegExp);
});
