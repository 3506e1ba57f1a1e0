// The Cloudflare example from "Sub-Agent Execution" (Helix Agents) as a runnable program: the results come in the order
// of the calls, a failure is `{ error }`, and workerd is killed in between.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { moment, tellServer } from '../support/homes/stage.ts';
import { bundle, start } from './support/workerd.js';

const folder = mkdtempSync(join(tmpdir(), 'offstage-helix-'));
const worker = join(folder, 'helix.mjs');

beforeAll(() => bundle('helix-worker.js', worker));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  'resumes the run through its alarm after a kill, without repeating finished sub-agents',
  { tags: ['H7'] },
  async () => {
    const begun: string[] = [];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const told = await tellServer(async (what) => {
      begun.push(what);
      if (what === 'summarizer-one') await held;
    });
    const env = { TELL_URL: told.url };
    const objects = join(folder, 'objects');
    let running = await start(worker, objects, env);
    onTestFinished(async () => {
      await running.kill();
      told.close();
    });
    const asked = fetch(running.url).catch((error: unknown) => error);
    const has = async (what: string, times = 1): Promise<void> => {
      while (begun.filter((each) => each === what).length < times) await moment();
    };
    await has('summarizer-one');
    for (const words of ['about two', 'Max steps exceeded'])
      while ((await (await fetch(new URL(`?kept=${words}`, running.url))).text()) === '0')
        await moment();
    await running.kill();
    expect(await asked).toBeInstanceOf(Error);
    running = await start(worker, objects, env);
    // No client connects: the alarm has recreated the object.
    await has('summarizer-one', 2);
    release();
    const outcome = (await (await fetch(running.url)).json()) as { status: string; text: string };
    expect(outcome.status).toBe('completed');
    expect(JSON.parse(outcome.text)).toEqual([
      { summary: 'about one', keyPoints: ['one'] },
      { summary: 'about two', keyPoints: ['two'] },
      expect.objectContaining({ error: expect.stringContaining('Max steps exceeded') as string }),
    ]);
    expect(begun.toSorted()).toEqual([
      'analyzer',
      'parent',
      'parent',
      'summarizer-one',
      'summarizer-one',
      'summarizer-two',
    ]);
    // The outcome is stored, so the next request starts no work.
    const before = begun.length;
    await running.kill();
    running = await start(worker, objects, env);
    expect(await (await fetch(running.url)).json()).toEqual(outcome);
    expect(begun).toHaveLength(before);
  },
);
