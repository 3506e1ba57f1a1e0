// The browser, and the bundled script for all pages of a test file.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { TextSession } from '../../../src/index.ts';
import { bundle } from '../../support/bundle.ts';
import { servedPage, type ServedPage } from './served-page.ts';
import { launch } from './stage.ts';

/** @param path The path of the script. Returns the function that serves pages with that script. */
export function pageOfFile(
  path: string,
): (session: TextSession, users?: Readonly<Record<string, string>>) => Promise<ServedPage> {
  let browser: Browser;
  let code: string;
  beforeAll(async () => {
    ({ code } = await bundle(path, ['browser']));
    browser = await launch();
  });
  afterAll(() => browser.close());
  return (session, users) => servedPage(browser, code, session, users);
}
