// `offstage sessions`: lists sessions, shows them, and acts in them. A session is either in a journal that no process
// is using, or in a running process, which the command joins as a client.
//
//   SESSIONS-1. Each action has a receipt. The receipt names the identity under which the action is recorded.
//   SESSIONS-2. The command does not touch a session that another process runs. It prints where that process runs.

import { userInfo } from 'node:os';
import type { BudgetLimits } from '../../actors/contracts/config.ts';
import { UnloadedSession } from '../../actors/replay/unloaded-session.ts';
import { nodeEnvironment } from '../../adapters/node/index.ts';
import type { GivenAnswer } from '../../actors/subagent/ask-user.ts';
import { replaySession } from '../../entries/replay.ts';
import { whyWaiting } from '../../machines/why-waiting.ts';
import { codeOf, messageOf, OffstageError } from '../../values/errors.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';
import { isWrongCall, notInSource, openSource, type Source } from '../journal/source.ts';
import { cell, counted, moment, offset } from '../replay/lines.ts';
import { picture } from '../replay/story.ts';
import { RunningSession, type Deed, type Receipt } from './running-session.ts';

const usage = `offstage sessions <verb> --journal <file or address> | --url <address> [options]

  ls                            the sessions of the journal; the session of the process
  show                          one session: questions, subagents, deliveries, transcript, and why each waits
  answer <question>             answers a question: --option, --text, --approve or --deny
  cancel <subagent>             cancels a subagent: --reason
  message <subagent> <text>     writes to a subagent: --mode
  raise <subagent>, raise session
                                raises its budget to new totals: --tokens, --steps, --time-ms, --agents, --cost

  --journal <file>   a SQLite file, or postgres://…: acts in sessions that no process has; the process that
                     continues the session carries it out
  --url <address>    the address of \`serve\` in a running process, as clients use it
  --token <token>    what \`authorize\` of that process asks for; better in OFFSTAGE_TOKEN
  --session <id>     the session; needed with --journal, but for \`ls\`
  --by <identity>    with --journal: under whose name it is recorded (the user of this machine)
  --schema <name>    the schema of a journal in PostgreSQL (offstage)
  --release <n>      the release of the app on a journal in PostgreSQL (0)
  --option <id>      the option that is chosen
  --text <words>     the answer in words
  --approve, --deny  the answer to an approval
  --input <json>     with --approve and --url: the arguments with which the call runs instead
  --lasts <scope>    with --approve: it also covers later calls, in the task or the session; --deny takes it back
  --reason <words>   why it is cancelled
  --tokens <n>, --steps <n>, --time-ms <n>, --agents <n>, --cost <n>
                     the new totals; with --url the process must know the caller as an operator
  --mode <mode>      queue: read after its work; steer: before its next step; interrupt: at once (steer)
  --json             print JSON

Exit status: 0 when it was done, 1 when the session refused it or cannot be reached, 2 for a wrong call.
`;

const options = {
  journal: { type: 'string' },
  url: { type: 'string' },
  token: { type: 'string' },
  session: { type: 'string' },
  by: { type: 'string' },
  schema: { type: 'string' },
  release: { type: 'string' },
  option: { type: 'string' },
  text: { type: 'string' },
  approve: { type: 'boolean', default: false },
  input: { type: 'string' },
  lasts: { type: 'string' },
  deny: { type: 'boolean', default: false },
  reason: { type: 'string' },
  mode: { type: 'string' },
  tokens: { type: 'string' },
  steps: { type: 'string' },
  'time-ms': { type: 'string' },
  agents: { type: 'string' },
  cost: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof wordsOf>['values'];
type Print = (text: string) => void;

export const sessions: Command = commandOf({
  name: 'sessions',
  summary: 'list and show sessions; answer, cancel, write and raise budgets in them',
  usage,
  async run(args, print, complain) {
    try {
      const { verb, values, deed } = callOf(args);
      return values.url === undefined
        ? await inJournal(verb, values, deed, print, complain)
        : await inProcess(verb, values, deed, print, complain);
    } catch (error) {
      if (!(error instanceof OffstageError)) throw error;
      complain(`${error.message}${adviceFor(error)}\n`);
      return isWrongCall(error) ? 2 : 1;
    }
  },
});

/** SESSIONS-2 */
function adviceFor(error: OffstageError): string {
  const code = codeOf(error);
  if (code === 'JOURNAL_IN_USE')
    return '\nAct through that process: --url with the address of its `serve`';
  if (code !== 'SCOPE_IN_USE') return '';
  const { holder } = error as { readonly holder?: { readonly address: string | null } };
  const address = holder?.address ?? 'the address of its `serve`';
  return `\nNothing was written. Act through that process: --url ${address}`;
}

async function inJournal(
  verb: string,
  values: Values,
  deed: Deed | null,
  print: Print,
  complain: Print,
): Promise<number> {
  const { journal: place = '', session: sessionId, schema, release } = values;
  const source = await openSource(place, {
    isWritten: deed !== null,
    schema,
    ...(release !== undefined && { release: Number(release) }),
  });
  try {
    if (verb === 'ls') {
      const scopes = await source.journal.scopes();
      print(values.json ? jsonOf(scopes) : listOf(source, scopes));
      return 0;
    }
    if (sessionId === undefined) throw new WrongCall('Expected --session with the id of a session');
    if (!deed) return await show(source, sessionId, values, print);
    if (source.recording) throw new WrongCall('Expected a journal: a recording is read-only');
    const session = await UnloadedSession.claim(source.journal, sessionId, nodeEnvironment());
    try {
      const receipt = await performed(session, deed, values.by ?? userOfMachine());
      return told(receipt, deed, values.json, print, complain);
    } finally {
      await session.release();
    }
  } finally {
    await source.close();
  }
}

function performed(session: UnloadedSession, deed: Deed, by: string): Promise<Receipt> {
  switch (deed.type) {
    case 'answer':
      return session.answer(deed.requestId, deed.answer, { by });
    case 'cancel':
      return session.cancel(deed.subagentId, deed.reason, { by });
    case 'raise':
      return session.raiseBudget(deed.subagentId, deed.limits, { by });
    case 'message':
      return session.message(deed.subagentId, deed.text, { by, mode: deed.mode });
  }
}

/** The user id of a container may be one that has no name. */
function userOfMachine(): string {
  try {
    return userInfo().username || 'operator';
  } catch {
    return 'operator';
  }
}

async function inProcess(
  verb: string,
  values: Values,
  deed: Deed | null,
  print: Print,
  complain: Print,
): Promise<number> {
  const { url = '', token = process.env['OFFSTAGE_TOKEN'], session: sessionId, json } = values;
  const session = await RunningSession.connect({
    url,
    ...(token && { token }),
    ...(sessionId !== undefined && { session: sessionId }),
  });
  try {
    if (deed) return told(await session.perform(deed), deed, json, print, complain);
    if (verb === 'ls') print(json ? jsonOf([session.summary]) : session.line);
    else print(json ? jsonOf(session.state) : session.picture);
    return 0;
  } finally {
    session.close();
  }
}

async function show(
  source: Source,
  sessionId: string,
  { json }: Values,
  print: Print,
): Promise<number> {
  const { journal } = source;
  const entries = await journal.read({ scope: sessionId });
  if (entries.length === 0)
    throw new WrongCall(notInSource(source, await journal.scopes(), sessionId));
  let last;
  for (const step of replaySession(entries)) last = step;
  if (!last) return 0;
  const { view, machines } = last;
  const waits = machines ? whyWaiting(machines) : [];
  const lines = waits.map(({ of, id, sentence }) => `  ${cell(`${of} ${id}`, 24)} ${sentence}\n`);
  print(
    json
      ? jsonOf({ sessionId, entries: entries.length, ...view, waits })
      : `${picture(view)}${lines.length > 0 ? `\nwaits\n${lines.join('')}` : ''}`,
  );
  return 0;
}

function told(receipt: Receipt, deed: Deed, json: boolean, print: Print, complain: Print): number {
  if (json) print(jsonOf(receipt));
  const of = deed.type === 'answer' ? deed.requestId : (deed.subagentId ?? 'session');
  if (receipt.accepted && !json)
    print(`${of}: ${DONE[deed.type]}${receipt.by === undefined ? '' : ` as ${receipt.by}`}\n`);
  if (!receipt.accepted && !json) complain(`${of}: refused: ${receipt.reason}\n`);
  return receipt.accepted ? 0 : 1;
}

const DONE = {
  answer: 'answered',
  cancel: 'cancelled',
  message: 'written to',
  raise: 'raised',
} as const;

const jsonOf = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

function listOf(
  { name }: Source,
  scopes: Awaited<ReturnType<Source['journal']['scopes']>>,
): string {
  const rows = scopes.map(
    ({ scope, entries, firstAt, lastAt }) =>
      `  ${cell(scope, 36)} ${String(entries).padStart(8)}   ${moment(firstAt)}   ${offset(lastAt - firstAt)}\n`,
  );
  const heading = `  ${cell('session', 36)} ${'entries'.padStart(8)}   ${cell('began', 23)}   lasted\n`;
  return `${name}: ${counted(scopes.length, 'session')}\n${rows.length > 0 ? `\n${heading}${rows.join('')}` : ''}`;
}

const wordsOf = (args: readonly string[]) =>
  argumentsOf({ args: [...args], allowPositionals: true, options });

/** The verbs, with descriptions of their arguments. */
const VERBS: ReadonlyMap<string, readonly string[]> = new Map([
  ['ls', []],
  ['show', []],
  ['answer', ['the id of a question']],
  ['cancel', ['the id of a subagent']],
  ['message', ['the id of a subagent', 'the words']],
  ['raise', ['the id of a subagent, or `session`']],
]);

function callOf(args: readonly string[]) {
  const { positionals, values } = wordsOf(args);
  const [verb = '', ...words] = positionals;
  const wanted = VERBS.get(verb);
  if (!wanted)
    throw new WrongCall(`Expected one of ${[...VERBS.keys()].join(', ')}, got \`${verb}\``);
  if (words.length !== wanted.length || words.some((word) => word.trim() === ''))
    throw new WrongCall(
      `Expected ${wanted.join(' and ') || 'nothing'} after \`${verb}\`, got ${words.map((word) => `\`${word}\``).join(' ') || 'nothing'}`,
    );
  const { journal, url, release, by } = values;
  if ((journal === undefined) === (url === undefined))
    throw new WrongCall(
      `Expected one of --journal and --url, got ${journal === undefined ? 'neither' : 'both'}`,
    );
  if (url !== undefined && by !== undefined)
    throw new WrongCall('Expected no --by with --url: the process knows by the token who it is');
  if (release !== undefined && !/^\d{1,9}$/.test(release))
    throw new WrongCall(`Expected --release to be a whole number, got \`${release}\``);
  return { verb, values, deed: deedOf(verb, words, values) };
}

function deedOf(
  verb: string,
  [id = '', text = '']: readonly string[],
  values: Values,
): Deed | null {
  if (verb === 'answer') return { type: 'answer', requestId: id, answer: answerOf(values) };
  const { reason = 'cancelled on the command line', mode = 'steer' } = values;
  if (verb === 'raise')
    return { type: 'raise', subagentId: id === 'session' ? null : id, limits: limitsOf(values) };
  if (verb === 'cancel') return { type: 'cancel', subagentId: id, reason };
  if (verb !== 'message') return null;
  if (mode !== 'queue' && mode !== 'steer' && mode !== 'interrupt')
    throw new WrongCall(`Expected --mode to be queue, steer or interrupt, got \`${mode}\``);
  return { type: 'message', subagentId: id, text, mode };
}

function limitsOf({ tokens, steps, 'time-ms': timeMs, agents, cost }: Values): BudgetLimits {
  const given = Object.entries({ tokens, steps, timeMs, agents, cost }).flatMap(([name, text]) => {
    if (text === undefined) return [];
    if (!/^\d+(?:\.\d+)?$/.test(text))
      throw new WrongCall(
        `Expected --${name === 'timeMs' ? 'time-ms' : name} to be a number, got \`${text}\``,
      );
    return [[name, Number(text)] as const];
  });
  if (given.length === 0)
    throw new WrongCall(
      'Expected one of --tokens, --steps, --time-ms, --agents and --cost, got none',
    );
  return Object.fromEntries(given);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new WrongCall(`--input is no JSON: ${messageOf(error)}`);
  }
}

function answerOf({ option, text, approve, deny, input, lasts }: Values): GivenAnswer {
  if (lasts !== undefined && lasts !== 'task' && lasts !== 'session')
    throw new WrongCall(`--lasts: expected task or session, got ${lasts}`);
  const given: GivenAnswer[] = [];
  if (option !== undefined) given.push({ optionId: option });
  if (text !== undefined) given.push({ text });
  if (approve)
    given.push({
      approved: true,
      ...(input !== undefined && { input: jsonIn(input) }),
      ...(lasts && { lasts }),
    });
  if (deny) given.push({ approved: false });
  const [answer, ...others] = given;
  if (!answer || others.length > 0)
    throw new WrongCall(
      `Expected one of --option, --text, --approve and --deny, got ${given.length === 0 ? 'none' : given.length}`,
    );
  return answer;
}
