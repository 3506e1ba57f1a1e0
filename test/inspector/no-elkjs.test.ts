// The inspector's page when elkjs is not installed.

import { expect, test, vi } from 'vitest';
import { mounted } from './support.ts';

vi.mock('node:module', () => ({
  createRequire: () => ({
    resolve: () => {
      throw new Error('Cannot find module');
    },
  }),
}));

test('receives a script with a note that elkjs is missing, instead of a failed request', async () => {
  const { url } = await mounted({});
  const script = await fetch(`${url.slice(0, url.indexOf('#'))}/elk-api.js`);
  expect(script.status).toBe(200);
  expect(script.headers.get('content-type')).toContain('text/javascript');
  expect(await script.text()).toBe('// elkjs is not installed: npm install elkjs\n');
});
