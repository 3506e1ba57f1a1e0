import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openKept } from '../../../examples/voice-demo/kept.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offstage-kept-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('the link is the same at the next start, and nobody else may read its token', async () => {
  const environment = nodeEnvironment();
  const first = openKept(folder, environment);
  await first?.close();
  const second = openKept(folder, environment);
  expect(second?.token).toBe(first?.token);
  expect(second?.sessionId).toBe(first?.sessionId);
  expect(statSync(join(folder, 'token')).mode & 0o077).toBe(0);
  await second?.close();
});
