// Checks that no text blocks the process: every function that reads long texts reads a megabyte of hostile text. A
// function that takes quadratic time would need days. The test makes no assertion about time.

import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';

describe('readers of long texts', () => {
  it('finish even if the text is a megabyte of hostile input', async () => {
    // The functions run in a separate thread, because one that never returned would block the tests.
    const worker = new Worker(new URL('../support/hostile-reader.ts', import.meta.url), {
      execArgv: ['--conditions=offstage-source'],
    });
    try {
      const unread = await new Promise<readonly string[]>((resolve, reject) => {
        const reading = new Set<string>();
        worker.on('message', ({ begun, ended }: { begun?: string; ended?: string }) => {
          if (begun !== undefined) reading.add(begun);
          if (ended !== undefined) reading.delete(ended);
        });
        worker.once('error', reject);
        worker.once('exit', () => resolve([...reading]));
      });
      expect(unread).toEqual([]);
    } finally {
      await worker.terminate();
    }
  }, 600_000);
});
