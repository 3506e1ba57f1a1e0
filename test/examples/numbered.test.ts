// Every numbered program that needs no key runs as documented and prints what the documents show.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const folder = new URL('../../examples/', import.meta.url);
const programs = readdirSync(folder).filter((name) => /^\d\d-.*\.ts$/.test(name));

interface Expected {
  /** The lines of the predecessors' documents that this example covers. */
  readonly covers: string[];
  /** Printed text which shows that the program did its work. */
  readonly shows: RegExp;
}

/** Keyed by the number of the program. */
const expected: Readonly<Record<string, Expected>> = {
  '01': {
    covers: ['B74'],
    shows: /lead: News: The report is ready: .*"revenue":58210/,
  },
  '02': {
    covers: ['B44', 'B74'],
    shows: /lunch_orderer asks[^]*lead: Done\. Soup or salad\? You chose Salad\./,
  },
  '03': { covers: [], shows: /every property holds/ },
  '04': { covers: [], shows: /waiting_for_input\.asking → ready → running\.thinking → completed/ },
  '05': {
    covers: ['B27', 'B74', 'B75'],
    shows:
      /asks: Fix the auth bug[^]*asks: Rename[^]*coding_2 \(Rename the login page\) has ended[^]*done \(tests: yes\)/,
  },
  '06': {
    covers: ['B34', 'B35'],
    shows:
      /assistant: News: The image is in[^]*hands over to billing[^]*billing: News: The auth bug is fixed\./,
  },
  '07': {
    covers: ['B92', 'BW35'],
    shows:
      /eight: done, after move the meeting to five\n[^]*confirm that: done, after move the meeting to five, move the dinner to eight\nthreads: thread_1, thread_2, calendar; at most 2 at work/,
  },
  '08': {
    covers: ['R1', 'R5', 'R9', 'R35'],
    shows:
      /Subagent spawned with task_id: sub_\S+[^]*Active subagents \(1\):\n- task_id=\S+, elapsed=\d+s[^]*subagent: One page is read and saved\n[^]*News: Qubits got better[^]*Qubits, in 4,000 words/,
  },
  '09': {
    covers: ['H1', 'H6', 'H8', 'H9', 'H10', 'H11'],
    shows:
      /subagent_start summarizer [^]*subagent_end analyzer "The provider is overloaded"[^]*tool: s1 .*"1 of them".*\ntool: s2 .*"2 of them".*\ntool: s3 .*"error":"The provider is overloaded"[^]*s3 analyzer: failed/,
  },
  '10': {
    covers: ['B74', 'B76'],
    shows: /401[^]*News: Order 7 was lost![^]*"accepted":4,"told":3,"silent":1/,
  },
  '11': { covers: ['H13', 'H19', 'HW5', 'HW8'], shows: /^(ok: .*\n){3}$/ },
  '12': {
    covers: ['M1', 'M3', 'M4', 'M5', 'M6', 'M8', 'M9', 'M10', 'M22'],
    shows:
      /"status":"spawning"[^]*"waiting_input","pendingRequest"[^]*"\[50%\] Read 12 files"[^]*"resolvedPending":true[^]*"completed","result":"Three findings \(yes, all of them\)"[^]*"killed":true[^]*"killed":false[^]*ALREADY_TERMINAL[^]*NOT_FOUND/,
  },
  '13': {
    covers: ['B44', 'B46', 'B74', 'B90'],
    shows:
      /\(buttons: Economy, Premium\)[^]*"premium"\} → \{"accepted":true\}[^]*"economy"\} → \{"accepted":false,"reason":"over"\}[^]*News: Your premium ride is booked/,
  },
  '14': {
    covers: [],
    shows:
      /<Connect><Stream url="wss:[^]*assistant: By the way: 42 … \(broken off\)[^]*By the way: 42 sales in Q4\.\n.*heard, at attempt 2[^]*hung up: stopped/,
  },
  '15': {
    covers: [],
    shows:
      /^found: CHARGED ONCE: \d+ charges for \d+ calls\nneeded: .*crash[^]*ok: 100 runs, with crashes, and every charge was made once/,
  },
  '16': {
    covers: [],
    shows:
      /first process: ride_booker asks[^]*SIGKILL[^]*second process: goes on after \d+ entries\n[^]*asks: Window or aisle\?\n[^]*lead: Done\. Booked: window\.\ncharged: \S+\n$/,
  },
  '17': {
    covers: [],
    shows:
      /none is in memory —\nbob: Done: tulips ordered\.\n(?=[^]*ada: Done: nothing)(?=[^]*cleo: Done: nothing)/,
  },
  '18': {
    covers: ['B78'],
    shows: /coder asks: May the agent do this \(edit\): "Add to menu\.txt"[^]*menu\.txt: Soup\n/,
  },
  '19': {
    covers: [],
    shows:
      /client: delegated\nmailer asks: Send a mail, with send_mail[^]*user: Yes\nresult: The mail: "sent to bob"\./,
  },
  '20': {
    covers: [],
    shows:
      /asks: Which Bob\?[^]*asks: .*"Send this mail" \(to: "stein@example\.com",.*\nuser: No\n[^]*sent: nothing\n[^]*user: Yes\n[^]*sent: stein@example\.com: Lunch at noon\?\n$/,
  },
  '21': {
    covers: [],
    shows:
      /^memory: rides asks: Economy or Premium\?\nmemory: (completed, Booked: .*, charges: 1)\nsqlite: rides asks: .*\nsqlite: \1\n(?:(?:restate|temporal)-(?:jobs|runs): left out, it needs the package .*\n){4}$/,
  },
  '22': {
    covers: [],
    shows:
      /lead \(by voice\): May the agent do this \(edit\): "Add to menu\.txt".*\nuser \(by voice\): No\.\n[^]*menu\.txt: is not there\n[^]*user \(by voice\): Yes, go ahead\.\n[^]*lead \(by voice\): Soup is on the menu\.\nmenu\.txt: Soup\n$/,
  },
  '23': {
    covers: [],
    shows: /^CLAUDE IS NOT ASKED ANYTHING\. This program lacks\n- a key of Anthropic/,
  },
  '24': {
    covers: [],
    shows:
      /^(?=[^]*first process: trip-1\/flight asks: Window or aisle\?\n)(?=[^]*first process: booked: The hotel is booked\n)[^]*— SIGKILL —\nsecond process: trip-1\/flight asks: Window or aisle\?\nsecond process: booked: A seat at the window\ncharged: a deposit, a deposit,\n$/,
  },
};

// The first program needs a key: see `first-session.test.ts`.
const cases = programs.slice(1).map((name) => ({ name, ...expected[name.slice(0, 2)] }));

for (const { name, shows, covers } of cases)
  test(`runs ${name}`, { timeout: 90_000, tags: covers ?? [] }, async () => {
    expect(shows, `what ${name} shows, in this test`).toBeDefined();
    // The programs import the package by name, as an app does, and the condition resolves the name to the sources.
    const { stdout, stderr } = await run(
      process.execPath,
      ['--conditions=offstage-source', new URL(name, folder).pathname],
      // No example needs a key, and none may find one here.
      { timeout: 60_000, env: { ...process.env, ANTHROPIC_API_KEY: '' } },
    );
    expect(stderr).toBe('');
    expect(stdout).toMatch(shows as RegExp);
  });

test('lists exactly the examples that exist', () => {
  const listed = readFileSync(new URL('README.md', folder), 'utf8').matchAll(
    /\]\((\d\d-.*?\.ts)\)/g,
  );
  expect([...listed].map(([, name]) => name)).toEqual(programs);
});

test('contains the documentation\'s "after" code in the program that each excerpt names', () => {
  const page = readFileSync(new URL('../docs/coming-from.md', folder), 'utf8');
  const excerpts = [...page.matchAll(/^After, in \[(.*?\.ts)\][^]*?^```ts\n([^]*?)^```$/gm)];
  expect(excerpts).toHaveLength(4);
  for (const [, name = '', code = ''] of excerpts) {
    const lines = readFileSync(new URL(name, folder), 'utf8').split('\n');
    const program = new Set(lines.map((line) => line.trim()));
    const strange = code.split('\n').filter((line) => line && !program.has(line.trim()));
    expect({ name, strange }).toEqual({ name, strange: [] });
  }
});
