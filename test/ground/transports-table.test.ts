import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { transportsDocument } from '../../scripts/transports-table.ts';

test("lists the transports' declarations in docs/transports.md: `npm run docs:transports`", () => {
  const path = new URL('../../docs/transports.md', import.meta.url);
  expect(readFileSync(path, 'utf8')).toBe(transportsDocument());
});
