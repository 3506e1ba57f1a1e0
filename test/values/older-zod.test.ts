// An app with another major of zod is told which one is needed, and not that a function is missing.

import { expect, onTestFinished, test, vi } from 'vitest';
import * as realZod from 'zod';

test('zod 3 is refused by name', async () => {
  onTestFinished(() => vi.doUnmock('zod'));
  vi.resetModules();
  vi.doMock('zod', () => ({ ...realZod, z: { ...realZod.z, looseObject: undefined } }));
  await expect(import('../../src/values/checks.ts')).rejects.toThrow('npm install zod@4');
});
