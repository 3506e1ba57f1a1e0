// With an older version of zod or of the runtime, the error names the required version instead of a missing function.

import { expect, onTestFinished, test, vi } from 'vitest';
import * as realZod from 'zod';

test('refuses zod 3 and explains how to install zod 4', async () => {
  onTestFinished(() => vi.doUnmock('zod'));
  vi.resetModules();
  vi.doMock('zod', () => ({ ...realZod, z: { ...realZod.z, looseObject: undefined } }));
  await expect(import('../../src/values/checks.ts')).rejects.toThrow('npm install zod@4');
});

test('throws UNSUPPORTED_RUNTIME if the runtime lacks `Promise.withResolvers`', async () => {
  const { withResolvers } = Promise;
  onTestFinished(() => void (Promise.withResolvers = withResolvers));
  vi.resetModules();
  const loaded = import('../../src/values/plain-checks.ts');
  Reflect.deleteProperty(Promise, 'withResolvers');
  await expect(loaded).rejects.toMatchObject({
    code: 'UNSUPPORTED_RUNTIME',
    message: expect.stringContaining(`got Node.js ${process.version}`),
  });
});
