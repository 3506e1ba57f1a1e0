// A busy voice session on a journal that outlives it. Its process is repeatedly killed with SIGKILL and restarted. The
// effects of the tools and the messages that the user heard, taken over all lives, must be those of a single life.
//
// Kills are triggered not by time but by actions of the process, which prints a line for each append to the journal,
// each of the user's moments, and each effect in the world. Half of the kills come immediately after an effect, before
// its entry is written.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import { readWorld, token, tokensIn, wish, type Kind, type Line, type Written } from './world.ts';

/** The maximum number of lines in a life before it is killed. Many lives are short. */
const MAX_LINES = 200;
const DELICATE = ['effect', 'effect', 'heard', 'answered'] as const;
const SEED = Number(process.env['KILL_SEED'] ?? 1);
const source = fileURLToPath(new URL('busy-session.ts', import.meta.url));

type Entry = JournalEntry & { readonly event: Readonly<Record<string, unknown>> };
type Of<What extends Line['what']> = Written & Extract<Line, { what: What }>;

export interface KilledOften {
  readonly kills: number;
  /** Tells the process which journal to use. See `journal.ts`. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns the final entries of the journal. */
  read(folder: string): readonly JournalEntry[] | Promise<readonly JournalEntry[]>;
}

/** Registers the tests for a session that is killed this often. */
export function killedOften({ kills, env, read }: KilledOften): void {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-kill-'));
  const program = join(folder, 'busy-session.mjs');
  const children: ChildProcess[] = [];

  /** Starts a process that loads the code and waits for the command to start. */
  function prepare(life: number) {
    const child = spawn(process.execPath, [program, folder, String(life)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env, NODE_COMPILE_CACHE: join(folder, 'code') },
    });
    children.push(child);
    const lines = createInterface({ input: child.stdout });
    const isReady = once(lines, 'line');
    const isOver = once(child, 'close');
    return { child, lines, isReady, isOver };
  }

  let entries: readonly Entry[];
  let written: readonly Written[];
  const wishes = 4 + kills;

  beforeAll(async () => {
    // Modules that an adapter loads dynamically are also resolved from this folder.
    symlinkSync(
      fileURLToPath(new URL('../../../node_modules', import.meta.url)),
      join(folder, 'node_modules'),
    );
    // Bundles everything into one file, because many processes run it.
    await build({
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: source,
        outDir: folder,
        rollupOptions: { output: { entryFileNames: 'busy-session.mjs' } },
      },
    });
    const chance = chanceOf(SEED, 'kill');
    // The next process gets ready while the current one is alive.
    let next = prepare(1);
    for (let life = 1; life <= kills; life += 1) {
      const { child, lines, isReady, isOver } = next;
      await isReady;
      next = prepare(life + 1);
      const delicate = chance.happens(0.5) ? chance.pick(DELICATE) : null;
      let left = delicate === null ? chance.below(chance.below(MAX_LINES) + 1) : MAX_LINES;
      let happenings = chance.below(3);
      const count = (line = ''): void => {
        if (line === delicate) happenings -= 1;
        if (left === 0 || happenings < 0) child.kill('SIGKILL');
        left -= 1;
      };
      lines.on('line', count);
      child.stdin.write(`${4 + life} 0\n`);
      count();
      const [code, signal] = await isOver;
      if (signal !== 'SIGKILL') throw new Error(`Life ${life} ended by itself: ${String(code)}`);
    }
    await next.isReady;
    next.child.stdin.write(`${wishes} 1\n`);
    const [code] = await next.isOver;
    if (code !== 0) throw new Error(`The last life ended with ${String(code)}`);
    entries = await read(folder);
    written = readWorld(folder);
  }, 600_000);

  afterAll(() => {
    // Kills the processes that a failed test has left behind.
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  const lines = <What extends Line['what']>(what: What): Of<What>[] =>
    written.filter((line): line is Of<What> => line.what === what);
  const events = (type: string): Entry[] => entries.filter(({ event }) => event.type === type);
  const wishesOf = (...kinds: Kind[]): number[] =>
    Array.from({ length: wishes }, (_, index) => wish(index + 1))
      .filter(({ kind }) => kinds.includes(kind))
      .map(({ n }) => n);
  /** Counts the occurrences of each name. */
  const tally = (names: readonly string[]): Record<string, number> => {
    const all: Record<string, number> = {};
    for (const name of names) all[name] = (all[name] ?? 0) + 1;
    return all;
  };
  const each = (names: readonly string[]): Record<string, number> =>
    Object.fromEntries(names.map((name) => [name, 1]));

  /**
   * Returns the deliveries that were heard according to the journal. Each is identified by the last text that was
   * spoken.
   */
  function hearings(): { readonly token: string; readonly at: number }[] {
    let told = '';
    return entries.flatMap(({ event, at }) => {
      if (event.type === 'assistant.said') told = tokensIn(String(event['text']))[0] ?? told;
      return event.type === 'delivery.heard' ? [{ token: told, at }] : [];
    });
  }

  describe(`a process that was killed ${kills} times (KILL_SEED=${SEED})`, () => {
    test('continues from the journal after most kills', () => {
      expect(lines('recovered').length).toBeGreaterThan(kills / 2);
      expect(new Set(lines('effect').map(({ life }) => life)).size).toBeGreaterThan(kills / 4);
      expect(lines('recovered').flatMap(({ lost }) => lost)).toEqual([]);
      expect(lines('error')).toEqual([]);
    });

    test('P1: makes one call for every request and ends every accepted subagent once', () => {
      const called = events('tool.called').map(({ event }) => String(event['arguments']));
      expect(tally(called)).toEqual(
        each(wishesOf('ride', 'sum', 'weather', 'trip', 'pay', 'seat', 'remind').map(argumentsOf)),
      );
      const accepted = events('subagent.accepted').map(({ actor }) => actor);
      expect(accepted).toHaveLength(wishesOf('ride', 'sum', 'trip', 'seat').length);
      const ended = events('subagent.ended').filter(({ actor }) => actor.startsWith('call:'));
      expect(tally(ended.map(({ actor }) => actor))).toEqual(each(accepted));
      const outcomes = ended.map(({ event }) => event['outcome'] as { readonly status: string });
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['completed']));
      const [last] = lines('rested');
      expect(new Set(last?.subagents.map(({ state }) => state))).toEqual(new Set(['completed']));
    });

    test('P4: plays every result and notice to its end and does not repeat any recorded as heard', () => {
      const results = wishesOf('ride', 'sum', 'trip', 'seat').map((n) => token('result', n));
      const notices = events('notice.posted').flatMap(({ event }) =>
        tokensIn(String(event['text'])),
      );
      const news = hearings().filter((heard) => !heard.token.startsWith('<question'));
      expect(tally(news.map((heard) => heard.token))).toEqual(each([...results, ...notices]));
      const heard = new Set(lines('heard').map((line) => line.token));
      expect([...results, ...notices].filter((one) => !heard.has(one))).toEqual([]);
      const again = news.filter(({ token: one, at }) =>
        lines('said').some((line) => line.token === one && line.at > at),
      );
      expect(again).toEqual([]);
    });

    test('P2 P3: matches every question with its own answer', () => {
      const booked = lines('effect').filter(
        ({ tool, input }) => tool === 'book' && /answer/.test(input),
      );
      const answers = booked.map(({ input }) => {
        const { n, answer } = JSON.parse(input) as { n: number; answer: { userResponse: string } };
        return [n, /\d+$/.exec(answer.userResponse)?.[0]] as const;
      });
      expect(answers.filter(([n, answered]) => String(n) !== answered)).toEqual([]);
      expect(new Set(lines('answered').map(({ how }) => how))).toEqual(
        new Set(['voice', 'button']),
      );
    });

    test('P6: does not repeat a tool that must not run twice, and has one effect per key', () => {
      const effects = lines('effect');
      const inputs = new Map<string, Set<string>>();
      for (const { key, tool, input } of effects)
        inputs.set(key, (inputs.get(key) ?? new Set()).add(`${tool} ${input}`));
      expect([...inputs].filter(([, of]) => of.size > 1)).toEqual([]);
      const guarded = effects.filter(({ idempotent }) => !idempotent);
      expect(guarded.length).toBeGreaterThan(kills / 3);
      expect(tally(guarded.map(({ key }) => key))).toEqual(each(guarded.map(({ key }) => key)));
      const doubts = lines('doubt');
      // A payment that was not made must be reported as uncertain. None may be omitted silently.
      const paid = new Set(guarded.flatMap(({ tool, input }) => (tool === 'pay' ? [input] : [])));
      const unpaid = events('tool.called').filter(
        ({ event }) => event['name'] === 'pay' && !paid.has(String(event['arguments'])),
      );
      const inDoubt = new Set(doubts.map(({ key }) => key));
      expect(unpaid.filter(({ event }) => !inDoubt.has(`ses:${String(event['callId'])}`))).toEqual(
        [],
      );
    });
  });
}

function argumentsOf(n: number): string {
  return JSON.stringify({ n });
}
