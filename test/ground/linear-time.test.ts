// No text stops the process: everything that reads long texts reads a megabyte of hostile ones. A reader whose work grows
// with the square of the length takes days for it. No duration is asserted.

import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';

describe('readers of long texts', () => {
  it('end on a megabyte of hostile text', async () => {
    // A thread of its own: one that does not end would stop the tests, too.
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
