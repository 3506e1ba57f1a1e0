// What the user said to an engine: which stores contain it, and that none does after the deletion.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { forgetRun, type JobError } from '../../../src/entries/jobs.ts';
import { forgetSession } from '../../../src/entries/journal.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { runsConformanceAgents } from '../../suites/runs/index.ts';
import { unzipped } from '../../../src/adapters/temporal/zipped-text.ts';
import type { EngineOptions, LiveEngine, WorkersDo } from './live-engine.ts';
import { moment } from './processes.ts';

/** The words are in the task, in the user's answer, and in a message. */
const WORDS = ['heliotrope-17-kestrel', 'marzipan-41-osprey', 'quicksilver-63-heron'] as const;

/** Plays one run with a subagent on the engine, and one in this process whose steps are jobs. */
async function playBoth(live: LiveEngine) {
  live.bridge.handler = { do: () => Promise.resolve({ done: '' }) };
  const { configs } = runsConformanceAgents(() => Promise.resolve());
  const traveller = configs['traveller'] as NonNullable<(typeof configs)['traveller']>;
  const journal = memoryJournal({ keep: Infinity });
  const environment = nodeEnvironment();
  const jobs = live.jobs();
  const options = { onQuestion: () => ({ text: WORDS[1] }) };
  const task = `Go to ${WORDS[0]} [trip t: charge, ask, guide ask then look_up, look_up]`;
  const runs = [
    runSubagent(traveller, task, {
      ...options,
      runtime: createRuntime({ environment }),
      engine: live.runs(),
      id: 'on the engine',
    }),
    runSubagent(traveller, task, {
      ...options,
      runtime: createRuntime({ environment, journal, jobs }),
      id: 'in process',
    }),
  ];
  for (const { send } of runs) void send(WORDS[2]);
  for (const { result } of runs) expect(await result).toMatchObject({ status: 'completed' });
  return {
    /** Repeats the deletion until the engine has found everything, because its lists may lag behind. */
    async forget(isGone: () => Promise<boolean>) {
      const all = async (): Promise<boolean> => {
        try {
          await forgetRun('on the engine', { engine: live.runs(), jobs });
          await forgetSession('in process', { journal, jobs });
          return true;
        } catch (error) {
          if ((error as Partial<JobError>).retryable !== true) throw error;
          return false;
        }
      };
      while (!(await all()) || !(await isGone())) await moment();
    },
  };
}

const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * Returns the bytes of all files, with the Zstandard frames in them decompressed, because RocksDB compresses its log.
 */
async function bytesOf(directory: string): Promise<string> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  const texts: string[] = [];
  for (const file of names) {
    if (!file.isFile()) continue;
    const bytes = await readFile(join(file.parentPath, file.name));
    texts.push(bytes.toString('latin1'));
    for (let at = bytes.indexOf(ZSTD); at !== -1;) {
      const next = bytes.indexOf(ZSTD, at + 4);
      const frame = bytes.subarray(at, next === -1 ? undefined : next);
      const text = await unpacked(frame);
      if (text !== null) texts.push(text);
      at = next;
    }
  }
  return read(texts.join('\n'));
}

/** Returns a text with the short texts in it decompressed; ignores one that is cut off at a block boundary. */
function read(text: string): string {
  const short = (text.match(/z1:[A-Za-z0-9+/]{8,}=*/gu) ?? []).map((found) => {
    try {
      return unzipped(found);
    } catch {
      return '';
    }
  });
  return [text, ...short].join('\n');
}

/** Decompresses a frame as far as it goes before the next block. */
function unpacked(frame: Buffer): Promise<string | null> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const stream = createZstdDecompress();
    const over = (): void =>
      resolve(parts.length > 0 ? Buffer.concat(parts).toString('latin1') : null);
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', over);
    stream.on('error', over);
    stream.end(frame);
  });
}

export function privacyOnAnEngine(
  name: string,
  open: (handler: WorkersDo, world?: string, options?: EngineOptions) => Promise<LiveEngine>,
): void {
  describe(`${name}: a word from the user`, () => {
    const setUp = async (options: EngineOptions): Promise<LiveEngine> => {
      const live = await open('runs', undefined, options);
      onTestFinished(() => live.close());
      return live;
    };

    test("JOBS-6, RUN-ENGINE-6: appears in the engine's stores but is no longer readable after deletion", async () => {
      const live = await setUp({});
      const { forget } = await playBoth(live);
      const before = read(await live.kept());
      // The files contain the words in plain text, so the test below would find an unencrypted word.
      const raw = live.directory === null ? null : await bytesOf(live.directory);
      if (raw !== null) for (const word of WORDS) expect(raw.includes(word)).toBe(true);
      for (const word of WORDS) expect(before).toContain(word);
      await forget(async () => !read(await live.kept()).includes(WORDS[0]));
      const after = read(await live.kept());
      for (const word of WORDS) expect(after).not.toContain(word);
    });

    test("PACKING-1, PACKED-ENGINE-1: never appears in the engine's tables or files when encrypted", async () => {
      const live = await setUp({ packed: true });
      const { forget } = await playBoth(live);
      const looks = async (): Promise<readonly string[]> => [
        read(await live.kept()),
        live.directory === null ? '' : await bytesOf(live.directory),
      ];
      // The checks cover the place where the engine stores everything.
      for (const text of await looks())
        if (text !== '') expect(text.includes('traveller')).toBe(true);
      for (const text of await looks())
        for (const word of WORDS) expect(text.includes(word)).toBe(false);
      await forget(async () => !read(await live.kept()).includes('traveller'));
      for (const text of await looks())
        for (const word of WORDS) expect(text.includes(word)).toBe(false);
    });
  });
}
