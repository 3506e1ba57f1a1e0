// `offstage replay`: prints a recorded session, entry by entry. Needs no keys, no network and no code of the app.

import { writeFileSync } from 'node:fs';
import {
  checkRecording,
  exportRecording,
  forkSession,
  replaySession,
  type Recording,
} from '../../entries/replay.ts';
import { whyWaiting } from '../../machines/why-waiting.ts';
import type { JournalEntry, ScopeSummary } from '../../entries/journal.ts';
import { ConfigurationError, messageOf, OffstageError } from '../../values/errors.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';
import { cell, counted, moment, offset } from './lines.ts';
import { mermaidOf, picture, Story } from './story.ts';
import { createInterface } from 'node:readline/promises';
import {
  isWrongCall,
  notInSource,
  openJournal,
  openSource,
  type Source,
} from '../journal/source.ts';

/** Resolves to true on Enter, and to false on `q`. Null if there is no interactive terminal. */
export type Reader = (() => Promise<boolean>) | null;

/** Waits for Enter on an interactive terminal. */
function enterPressed(): Reader {
  if (!process.stdin.isTTY) return null;
  return async () => {
    const lines = createInterface({ input: process.stdin, output: process.stdout });
    try {
      return !/^q/i.test(await lines.question(''));
    } catch {
      // The terminal was closed.
      return false;
    } finally {
      lines.close();
    }
  };
}

const usage = `offstage replay <file or address> [options]

Tells a recorded session again, entry by entry: when, who, what, and what it changed. The file is a
SQLite journal, or a recording (JSON Lines); postgres://… is a journal in PostgreSQL. Without
--session, the sessions of a journal are listed.

  --session <id>    the session that is told
  --schema <name>   the schema of a journal in PostgreSQL (offstage)
  --at <n>          print the whole session as it was after entry n, and why it waits
  --step            wait for Enter after each entry; q and Enter ends it
  --json            print JSON: a line for each entry, with what it changed
  --check           hold a recording against this version of Offstage; print the first difference
  --mermaid         print who did what to whom as a sequence diagram of Mermaid
  --export <file>   write the session to a file, as a recording
  --fork <id>       copy the session under another id, to go on from there
  --after <n>       … its first n entries
  --into <file>     … into another journal; one of its own is made

Exit status: 0 all is well, 1 an entry would not be accepted today or leads to something else, or the
file is damaged, 2 for a wrong call.
`;

const options = {
  session: { type: 'string' },
  schema: { type: 'string' },
  at: { type: 'string' },
  step: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  mermaid: { type: 'boolean', default: false },
  export: { type: 'string' },
  fork: { type: 'string' },
  after: { type: 'string' },
  into: { type: 'string' },
} as const;

type Values = ReturnType<typeof callOf>['values'];
type Print = (text: string) => void;

export function replayFor(reader: Reader): Command {
  return commandOf({
    name: 'replay',
    summary: 'tell a recorded session again, step through it, fork it',
    usage,
    async run(args, print, complain) {
      try {
        const { path, values } = callOf(args);
        const isWritten = values.fork !== undefined && values.into === undefined;
        const source = await openSource(path, { isWritten, schema: values.schema });
        try {
          return await perform(source, values, { print, reader });
        } finally {
          await source.close();
        }
      } catch (error) {
        if (!(error instanceof OffstageError)) throw error;
        complain(`${error.message}\n`);
        return isWrongCall(error) ? 2 : 1;
      }
    },
  });
}

export const replay: Command = replayFor(enterPressed());

interface Terminal {
  readonly print: Print;
  readonly reader: Reader;
}

async function perform(
  source: Source,
  values: Values,
  { print, reader }: Terminal,
): Promise<number> {
  const { recording, journal, name: path } = source;
  const scope = values.session ?? recording?.scope;
  if (values.check) return check(recording, path, print);
  if (scope === undefined) {
    if (values.at ?? values.fork ?? values.export)
      throw new WrongCall('Expected --session with the id of a session');
    print(listOf(await journal.scopes(), path, values.json));
    return 0;
  }
  if (values.fork !== undefined) return fork(source, scope, values, print);
  const entries = await journal.read({ scope });
  if (entries.length === 0) throw new WrongCall(await unknown(source, scope));
  if (values.export !== undefined) {
    write(values.export, await exportRecording(journal, scope));
    print(`${values.export}: ${counted(entries.length, 'entry', 'entries')} of ${scope}\n`);
    return 0;
  }
  if (values.at !== undefined) return showAt(entries, values, print);
  if (values.mermaid) {
    print(mermaidOf(replaySession(entries)));
    return 0;
  }
  return tell(entries, values, { print, reader });
}

function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600 });
  } catch (cause) {
    throw new ConfigurationError('CANNOT_WRITE', `${path} cannot be written: ${messageOf(cause)}`, {
      cause,
    });
  }
}

async function tell(
  entries: readonly JournalEntry[],
  { json, step: isStepped }: Values,
  { print, reader }: Terminal,
): Promise<number> {
  const [first] = entries;
  const beganAt = first?.at ?? 0;
  const story = new Story(beganAt);
  let refused = 0;
  if (!json) {
    const count = counted(entries.length, 'entry', 'entries');
    print(`${first?.scope ?? ''}, ${moment(beganAt)}, ${count}\n\n${story.heading}`);
    if (isStepped && reader) print('Enter goes on, q and Enter ends.\n');
  }
  for (const step of replaySession(entries)) {
    const { number, entry, isAccepted, setAside, changes } = step;
    if (!isAccepted) refused += 1;
    print(
      json
        ? `${JSON.stringify({ number, ...entry, isAccepted, setAside, changes })}\n`
        : story.tell(step),
    );
    if (isStepped && reader && number < entries.length && !(await reader())) return 0;
  }
  if (!json)
    print(
      refused === 0
        ? '\nThis version of Offstage would accept each of them.\n'
        : `\nThis version of Offstage would not accept ${refused} of them.\n`,
    );
  return refused === 0 ? 0 : 1;
}

function showAt(entries: readonly JournalEntry[], { at, json }: Values, print: Print): number {
  const wanted = numberOf('at', at, entries.length);
  const story = new Story(entries[0]?.at ?? 0);
  for (const step of replaySession(entries)) {
    const told = story.tell(step);
    if (step.number < wanted) continue;
    const { view, machines } = step;
    const waits = machines ? whyWaiting(machines) : [];
    const lines = waits.map(({ of, id, sentence }) => `  ${cell(`${of} ${id}`, 24)} ${sentence}\n`);
    const why = lines.length > 0 ? `\nwaits\n${lines.join('')}` : '';
    print(
      json ? `${JSON.stringify({ ...view, waits }, null, 2)}\n` : `${told}\n${picture(view)}${why}`,
    );
    break;
  }
  return 0;
}

async function fork(
  { journal, recording, name: path }: Source,
  from: string,
  { fork: to = '', after, into }: Values,
  print: Print,
): Promise<number> {
  if (recording && into === undefined)
    throw new WrongCall('Expected --into with a journal: a recording is read-only');
  if (after === undefined) throw new WrongCall('Expected --after with the number of an entry');
  const { length } = await journal.read({ scope: from });
  if (length === 0) throw new WrongCall(`There is no session \`${from}\` in ${path}`);
  const last = numberOf('after', after, length);
  const target = into === undefined ? null : await openJournal(into);
  try {
    await forkSession(journal, { from, after: last, to, ...(target && { into: target }) });
  } finally {
    target?.close();
  }
  print(
    `${to} is ${from} up to entry ${last}: start a session with \`sessionId: '${to}'\` on ${into ?? path}\n`,
  );
  return 0;
}

function check(recording: Recording | null, path: string, print: Print): number {
  if (!recording) throw new WrongCall(`Expected a recording for --check, ${path} is a journal`);
  const difference = checkRecording(recording);
  if (!difference) {
    const count = counted(recording.steps.length, 'entry', 'entries');
    print(`${path}: ${count}, and each leads to what it led to\n`);
    return 0;
  }
  const { number, entry, differences } = difference;
  const { event, actor, unit } = entry;
  print(`${path}, entry ${number} (\`${event.type}\` for ${actor} of ${unit}):\n`);
  for (const text of differences) print(`  ${text}\n`);
  return 1;
}

function listOf(scopes: readonly ScopeSummary[], path: string, json: boolean): string {
  if (json) return `${JSON.stringify(scopes, null, 2)}\n`;
  const rows = scopes.map(
    ({ scope, entries, firstAt, lastAt }) =>
      `  ${cell(scope, 36)} ${String(entries).padStart(8)}   ${moment(firstAt)}   ${offset(lastAt - firstAt)}`,
  );
  const heading = `  ${cell('session', 36)} ${'entries'.padStart(8)}   ${cell('began', 23)}   lasted`;
  return [
    `${path}: ${counted(scopes.length, 'session')}`,
    '',
    ...(rows.length > 0 ? [heading, ...rows, ''] : []),
    ...(rows.length > 0 ? ['--session <id> tells one of them.', ''] : []),
  ].join('\n');
}

async function unknown(source: Source, scope: string): Promise<string> {
  return notInSource(source, await source.journal.scopes(), scope);
}

function numberOf(name: string, text: string | undefined, most: number): number {
  const value = /^\d{1,15}$/.test(text ?? '') ? Number(text) : 0;
  if (value >= 1 && value <= most) return value;
  throw new WrongCall(
    `Expected --${name} to be a whole number from 1 to ${most}, got \`${text ?? ''}\``,
  );
}

function callOf(args: readonly string[]) {
  const { positionals, values } = argumentsOf({ args: [...args], allowPositionals: true, options });
  const [path, ...more] = positionals;
  if (path === undefined || more.length > 0)
    throw new WrongCall(`Expected one file, got ${positionals.length}`);
  const ways = (['at', 'check', 'export', 'fork', 'mermaid', 'step'] as const).filter(
    (way) => values[way],
  );
  if (ways.length > 1) throw new WrongCall(`Expected one of --${ways.join(' and --')}, got both`);
  if (values.fork === undefined && (values.after ?? values.into) !== undefined)
    throw new WrongCall('Expected --fork with --after and --into');
  return { path, values };
}
