// Things that people say about running work, the call that a reader made from the runtime's texts alone, and what the
// reader said about the tool's answer. The test plays every row.

import { expect, test } from 'vitest';
import type { Script } from '../../src/testing/index.ts';
import { say } from '../support/subagent-runs.ts';
import { leadScript, textTalk } from '../support/text-talk.ts';

interface Row {
  readonly says: string;
  /** The arguments of the earlier calls of `research`. */
  readonly tasks: readonly object[];
  /** The tasks that have ended by that time. */
  readonly done?: readonly number[];
  readonly call: {
    readonly action: 'status' | 'stop' | 'tell';
    readonly task?: string;
    readonly words?: string;
  };
  readonly comes: object;
  readonly reply: string;
  /** How the tasks end up. */
  readonly states: readonly string[];
}

const running = ['running', 'running'];
const prices = [{ topic: 'heat pump prices' }, { topic: 'solar panel prices' }];

const rows: readonly Row[] = [
  {
    says: 'How are things?',
    tasks: prices,
    call: { action: 'status' },
    comes: { tasks: [{ status: 'running' }, { status: 'running' }] },
    reply: 'I am still looking into heat pumps and solar panels.',
    states: running,
  },
  {
    says: 'Stop the heat pump one.',
    tasks: prices,
    call: { action: 'stop', task: 'heat pump' },
    comes: { status: 'stopped', task: 'research: topic: "heat pump prices"' },
    reply: 'I have stopped the heat pump research.',
    states: ['cancelled', 'running'],
  },
  {
    says: 'Stop the research.',
    tasks: prices,
    call: { action: 'stop', task: 'research' },
    comes: { status: 'unclear' },
    reply: 'Which one: the heat pumps or the solar panels?',
    states: running,
  },
  {
    says: 'Not on Thursday, on Friday.',
    tasks: [{ appointment: 'dentist on Thursday' }],
    call: { action: 'tell', words: 'Not on Thursday, but on Friday.' },
    comes: { status: 'read' },
    reply: 'Friday it is; I have passed that on.',
    states: ['running'],
  },
  {
    says: 'Include the third quarter as well, in the sales one.',
    tasks: [{ report: 'sales of Q1' }, { report: 'costs of Q1' }],
    call: { action: 'tell', task: 'sales', words: 'Include the third quarter as well.' },
    comes: { status: 'read', task: 'research: report: "sales of Q1"' },
    reply: 'The third quarter goes into the sales report, too.',
    states: running,
  },
  {
    says: 'Put Austria into the heat pump research.',
    tasks: prices,
    done: [0],
    call: { action: 'tell', task: 'heat pump', words: 'Include Austria.' },
    comes: { status: 'completed', result: 'done' },
    reply: 'That one is done already. Shall I look at Austria in a new one?',
    states: ['completed', 'running'],
  },
  {
    says: 'Cancel the trip to Rome.',
    tasks: prices,
    call: { action: 'stop', task: 'trip to Rome' },
    comes: { status: 'unclear' },
    reply: 'I have nothing about Rome: only heat pumps and solar panels. Do you mean one of those?',
    states: running,
  },
  {
    says: 'Deixa lá a bomba de calor.',
    tasks: [{ tema: 'preço da bomba de calor' }, { tema: 'preço de painéis solares' }],
    call: { action: 'stop', task: 'bomba de calor' },
    comes: { status: 'stopped' },
    reply: 'Está bem, parei a pesquisa da bomba de calor.',
    states: ['cancelled', 'running'],
  },
  {
    says: 'Jak idzie ta pompa ciepła?',
    tasks: [{ temat: 'ceny pomp ciepła' }, { temat: 'ceny paneli słonecznych' }],
    call: { action: 'status', task: 'pompa ciepła' },
    comes: { tasks: [{ task: 'research: temat: "ceny pomp ciepła"' }] },
    reply: 'Jeszcze sprawdzam ceny pomp ciepła.',
    states: running,
  },
  {
    says: 'Das mit der Wärmepumpe brauche ich doch nicht.',
    tasks: [{ thema: 'Preise von Wärmepumpen' }, { thema: 'Preise von Solarzellen' }],
    call: { action: 'stop', task: 'Wärmepumpe' },
    comes: { status: 'stopped' },
    reply: 'Gut, ich habe die Suche nach Wärmepumpen beendet.',
    states: ['cancelled', 'running'],
  },
  {
    says: 'Bei den Solarzellen bitte auch Österreich.',
    tasks: [{ thema: 'Preise von Wärmepumpen' }, { thema: 'Preise von Solarzellen' }],
    call: { action: 'tell', task: 'Solarzellen', words: 'Bitte auch die Preise in Österreich.' },
    comes: { status: 'read', task: 'research: thema: "Preise von Solarzellen"' },
    reply: 'Ich habe Österreich dazugegeben.',
    states: running,
  },
  {
    says: 'ヒートポンプの方はもういいです。',
    tasks: [{ topic: 'ヒートポンプの価格' }, { topic: '太陽光パネルの価格' }],
    call: { action: 'stop', task: 'ヒートポンプ' },
    comes: { status: 'stopped', task: 'research: topic: "ヒートポンプの価格"' },
    reply: 'わかりました。ヒートポンプの調査を止めました。',
    states: ['cancelled', 'running'],
  },
];

test.each(rows)('“$says”', async ({ says, tasks, done = [], call, comes, reply, states }) => {
  const lead: Script = (prompt) => {
    const last = prompt.prompt.at(-1);
    if (JSON.stringify(prompt.prompt).includes('"running_task"')) return say(reply);
    if (last?.role !== 'user' || prompt.user !== says) return leadScript(prompt);
    return { calls: [{ name: 'running_task', input: JSON.stringify(call) }] };
  };
  const asked: (() => void)[] = [];
  const script: Script = () =>
    new Promise((resolve) => {
      asked.push(() => resolve(say('done')));
    });
  const it = textTalk({ lead, subagents: { research: { script } } });
  await it.start();
  await it.type(`use ${tasks.map((task) => `research ${JSON.stringify(task)}`).join(' and ')}`);
  for (const at of done) asked[at]?.();
  await it.environment.advance(60_000);
  await it.type(says);
  await it.environment.advance(1500);
  const answer = it.events.findLast((event) => event.type === 'tool.answered');
  expect(answer).toMatchObject({ name: 'running_task', output: comes });
  expect(it.said().at(-1)).toBe(reply);
  expect(it.state().subagents.map(({ state }) => state)).toEqual(states);
  await it.close();
});
