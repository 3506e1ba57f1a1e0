// Finds the rules of axe that a page breaks.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as axeModule from 'axe-core';
import type { Page } from 'playwright-core';

declare const axe: typeof axeModule;

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns the rules that the page breaks now, each with its elements. */
export async function violationsIn(page: Page): Promise<(readonly [string, string[]])[]> {
  // Each document needs the source once. Evaluating it bypasses the policy of the page, like an extension of the
  // browser.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
  const { violations } = await page.evaluate(() => axe.run());
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)] as const);
}
