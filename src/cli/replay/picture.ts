// Prints the whole state of a session at one moment.
import type { ReplayView } from '../../entries/replay.ts';
import { cell, COLUMNS, counted, fitted, moment } from './lines.ts';

const NAME = 24;
const STATE = 20;
const ROLE = 12;

export function picture(view: ReplayView): string {
  const { connection, client, floor, agent, owner, questions, calls, outbox, subagents } = view;
  const { current, pending, reserved } = outbox;
  const said = [...(current ? [current] : []), ...pending];
  const isOwner = owner === null ? 'the lead agent’s' : `the answer to ${owner}`;
  return [
    `At ${moment(view.at)}`,
    '',
    row('connection', connection, `the client is ${client}`),
    row('floor', floor, `what the user says is ${isOwner}`),
    row('agent', agent ?? 'nobody', 'leads'),
    ...section(
      'questions',
      questions.map(({ requestId, state, subagentName, question }) =>
        row(requestId, state, `${subagentName}: ${question}`),
      ),
    ),
    ...section(
      'calls',
      calls.map(({ callId, name, state, batchId }) =>
        row(callId, state, batchId === null ? name : `${name}, told with ${batchId}`),
      ),
    ),
    ...section(
      `outbox (${counted(reserved, 'place')} kept for results)`,
      said.map(({ deliveryId, kind, state, text }) => row(deliveryId, state, `${kind}: ${text}`)),
    ),
    ...section(
      'subagents',
      subagents.map(({ id, name, state, step, messages, settledCalls, outcome }) => {
        const work = `step ${step}, ${counted(messages, 'message')}, ${counted(settledCalls, 'call')}`;
        const end = outcome ? `: ${outcome.error?.message ?? outcome.text}` : '';
        return row(`${name} ${id}`, state, `${work}${end}`);
      }),
    ),
    ...section(
      'transcript',
      view.transcript.map(({ role, text, interrupted }) => {
        const words = `${text}${interrupted ? ' (broken off)' : ''}`;
        return `${cell(role, ROLE)} ${fitted(words, COLUMNS - ROLE - 3)}`;
      }),
    ),
    '',
  ].join('\n');
}

function section(title: string, rows: readonly string[]): readonly string[] {
  return ['', title, ...(rows.length > 0 ? rows.map((text) => `  ${text}`) : ['  none'])];
}

function row(name: string, state: string, text: string): string {
  const rest = COLUMNS - NAME - STATE - 4;
  return `${cell(name, NAME)} ${cell(state, STATE)} ${fitted(text, rest)}`.trimEnd();
}
