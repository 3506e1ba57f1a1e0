// The folder for a user whose id has no entry in passwd, as in a container with `--user 12345`.

import { existsSync, rmSync } from 'node:fs';
import type * as os from 'node:os';
import { expect, it, vi } from 'vitest';
import { ownFolder } from '../../../src/adapters/agent-process/agent-process.ts';

vi.mock('node:os', async (importOriginal) => ({
  ...(await importOriginal<typeof os>()),
  // Node.js's error text: https://nodejs.org/api/os.html#osuserinfooptions
  userInfo() {
    throw new Error(
      'A system error occurred: uv_os_get_passwd returned ENOENT (no such file or directory)',
    );
  },
}));

it.skipIf(process.platform === 'win32')('creates a folder even if the user has no name', () => {
  const folder = ownFolder('test-own-folder');
  expect(existsSync(folder)).toBe(true);
  rmSync(folder, { recursive: true });
});
