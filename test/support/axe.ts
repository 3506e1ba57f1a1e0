// Finds the axe rules that a page breaks.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as axeModule from 'axe-core';
import type { Page } from 'playwright-core';

declare const axe: typeof axeModule;

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns the rules that the page breaks now, each with the elements that break it. */
export async function violationsIn(page: Page): Promise<(readonly [string, string[]])[]> {
  // Each document needs the source only once. Evaluating the source bypasses the page's policy, as a browser extension
  // does.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
  const { violations } = await page.evaluate(() => axe.run());
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)] as const);
}
