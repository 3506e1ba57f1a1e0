// The rules of axe that a page breaks.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as axeModule from 'axe-core';
import type { Page } from 'playwright-core';

declare const axe: typeof axeModule;

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns the rules that it breaks as it is now, each with the elements that do. */
export async function violationsIn(page: Page): Promise<(readonly [string, string[]])[]> {
  // Each document needs it once. It comes as from an extension of the browser: past the policy of the page.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
  const { violations } = await page.evaluate(() => axe.run());
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)] as const);
}
