// Prints a recorded session: one line per entry, followed by its changes (`Story`), the whole state at one moment
// (`picture`), or the session as a Mermaid sequence diagram (`mermaidOf`).
//
//   MERMAID-1. No text from a session can end its line or label in a diagram, or be interpreted as Mermaid syntax.

import type { JournalEntry } from '../../entries/journal.ts';
import type { ReplayStep, ReplayView } from '../../entries/replay.ts';
import {
  asUsage,
  usageBelow,
  usageOfBoth,
  type Usage,
  type UsageView,
} from '../../actors/contracts/usage.ts';
import { cell, COLUMNS, filled, fitted, offset, counted, moment } from './lines.ts';

const NUMBER = 6;
const TIME = 12;
const WHO = 24;
const WHAT = COLUMNS - NUMBER - TIME - WHO - 3;
/** Changes are indented below the columns `who` and `what`. */
const INDENT = NUMBER + TIME + 3;

/** The facts that an entry's line already shows. */
const TOLD = /^(?:user|assistant|system|tool_call) /;

export class Story {
  /** The subagents' names, by id. */
  readonly #names = new Map<string, string>();
  readonly #beganAt: number;

  constructor(beganAt: number) {
    this.#beganAt = beganAt;
  }

  get heading(): string {
    return `${line('entry', 'time', 'who', 'what, and what it changed')}\n${'─'.repeat(COLUMNS)}\n`;
  }

  tell({ number, entry, isAccepted, setAside, changes }: ReplayStep): string {
    if (entry.event.type === 'subagent.spawned')
      this.#names.set(entry.unit, fieldsOf(entry).name ?? '');
    const at = offset(entry.at - this.#beganAt);
    const { event } = entry;
    const detail = detailOf(entry);
    const what = detail === '' ? event.type : `${event.type} ${detail}`;
    const changed = Object.entries(changes)
      .filter(([name, value]) => value === null || !TOLD.test(name))
      .map(([name, value]) => `${name}: ${value ?? 'no more'}`);
    const below = filled(changed, ' · ', COLUMNS - INDENT - 2).map((text) => `→ ${text}`);
    if (setAside !== null) below.unshift(`✗ quarantined: ${setAside}`);
    else if (!isAccepted) below.unshift('✗ this version of Offstage would not accept it here');
    return [
      line(String(number), at, this.#whoOf(entry), what),
      ...below.map((text) => `${' '.repeat(INDENT)}${text}`),
      '',
    ].join('\n');
  }

  #whoOf({ unit, scope, actor }: JournalEntry): string {
    if (unit === scope) return actor.replace(':', ' ');
    if (unit.startsWith(`${scope}/`)) return unit.slice(scope.length + 1).replace(':', ' ');
    return `${this.#names.get(unit) ?? ''} ${unit}`.trim();
  }
}

function line(number: string, time: string, who: string, what: string): string {
  const cells = [number.padStart(NUMBER - 1), time.padStart(TIME), cell(who, WHO)];
  return ` ${cells.join(' ')} ${fitted(what, WHAT)}`.trimEnd();
}

/** The fields that describe an event best. */
interface Fields {
  readonly name?: string;
  readonly text?: string;
  readonly question?: string;
  readonly arguments?: string;
  readonly options?: readonly { readonly label: string }[];
  readonly answer?: { readonly userResponse?: string } | null;
  readonly response?: {
    readonly text?: string;
    readonly calls?: readonly { readonly toolName: string; readonly input: unknown }[];
  };
  readonly outcome?: {
    readonly status: string;
    readonly text?: string;
    readonly output?: unknown;
    readonly error?: { readonly message: string };
  };
  readonly task?: { readonly args: unknown; readonly description?: string };
  readonly parentId?: string | null;
  readonly event?: { readonly type?: string; readonly data?: unknown };
  readonly error?: { readonly message: string } | null;
  readonly reason?: string;
  readonly to?: string;
  readonly key?: string;
  readonly value?: string | null;
  readonly output?: unknown;
  readonly optionId?: string;
  readonly approved?: boolean;
  readonly input?: unknown;
}

function fieldsOf({ event }: JournalEntry): Fields {
  return event as Fields;
}

/** Describes an entry in a few words. */
function detailOf(entry: JournalEntry): string {
  const fields = fieldsOf(entry);
  const { name, text, question, response, outcome, task, error, answer, event } = fields;
  if (task) return `${name ?? ''} ${json(task.args)}`;
  if (response) {
    const calls = (response.calls ?? []).map(({ toolName, input }) => `${toolName} ${json(input)}`);
    return [quoted(response.text), ...calls].filter((part) => part !== '').join('  ');
  }
  if (outcome) {
    const said = outcome.error?.message ?? outcome.text ?? json(outcome.output);
    return `${outcome.status}: ${said}`;
  }
  if (question !== undefined) {
    const labels = (fields.options ?? []).map(({ label }) => label);
    return `${quoted(question)}${labels.length > 0 ? ` (${labels.join(', ')})` : ''}`;
  }
  if (fields.arguments !== undefined) return `${name ?? ''} ${fields.arguments}`;
  if (answer?.userResponse !== undefined) return quoted(answer.userResponse);
  if (text !== undefined) return quoted(text);
  if (error) return error.message;
  if (event) return `${event.type ?? ''} ${json(event.data)}`;
  if (fields.output !== undefined) return json(fields.output);
  const { optionId, approved, reason, to, key, value, input } = fields;
  if (optionId !== undefined) return `option ${optionId}`;
  if (approved !== undefined) return approved ? 'approved' : 'denied';
  if (key !== undefined) return `${key}: ${value ?? 'no more'}`;
  return reason ?? to ?? (input === undefined ? '' : json(input));
}

function quoted(text: string | undefined): string {
  return text === undefined || text === '' ? '' : `“${text}”`;
}

function json(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}

const NAME = 24;

const STATE = 20;

const ROLE = 12;

/** Returns rows with the usage of a conversation. Returns no rows if the usage is unknown. */
export function usageRows({ lead, subagents, total }: UsageView): readonly string[] {
  if (total.totalTokens === 0 && total.cost === undefined) return [];
  const words = ({ totalTokens, cost }: Usage): string =>
    `${counted(totalTokens, 'token')}${cost === undefined ? '' : `, cost ${Number(cost.toPrecision(6))}`}`;
  return [
    row('usage', 'lead agent', words(asUsage(lead))),
    row('', 'subagents', words(subagents)),
    row('', 'together', words(total)),
  ];
}

/** Prints the whole state of a session at one moment. */
export function picture(view: ReplayView): string {
  const { connection, client, floor, agent, owner, questions, calls, outbox, subagents } = view;
  const { current, pending, reserved } = outbox;
  const said = [...(current ? [current] : []), ...pending];
  const used = usageOfBoth(view.leadUsage, usageBelow(subagents, null));
  const isOwner = owner === null ? 'the lead agent’s' : `the answer to ${owner}`;
  return [
    `At ${moment(view.at)}`,
    '',
    row('connection', connection, `the client is ${client}`),
    row('floor', floor, `what the user says is ${isOwner}`),
    row('agent', agent ?? 'nobody', 'leads'),
    ...usageRows(used),
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

/** Longer labels would make a diagram unreadable. */
const MAX_LABEL_CHARS = 60;

/** Returns the source of a diagram that shows, in order, who spoke, called, asked, answered and reported. */
export function mermaidOf(steps: Iterable<ReplayStep>): string {
  const lines: string[] = [];
  const subagents: string[] = [];
  const known = new Map<string, string>();
  /** The last state of each question and subagent: a fact is repeated when another part of it changes. */
  const states = new Map<string, string>();
  const subagent = (id: string): string => {
    const name = known.get(id) ?? `s${known.size + 1}`;
    known.set(id, name);
    return name;
  };
  for (const { entry, changes, setAside } of steps) {
    const event = fieldsOf(entry);
    if (entry.event.type === 'subagent.spawned' && setAside === null) {
      const name = subagent(entry.unit);
      subagents.push(`  participant ${name} as ${labelOf(`${event.name ?? ''} ${entry.unit}`)}`);
      const parent = event.parentId ? subagent(event.parentId) : 'lead';
      lines.push(`  ${parent}->>${name}: ${labelOf(event.task?.description ?? 'spawned')}`);
    }
    for (const [fact, value] of Object.entries(changes)) {
      const space = fact.indexOf(' ');
      const [what, id] = [fact.slice(0, space), fact.slice(space + 1)];
      if (value === null) continue;
      if (what === 'user') lines.push(`  user->>lead: ${labelOf(value)}`);
      if (what === 'assistant') lines.push(`  lead->>user: ${labelOf(value)}`);
      if (what === 'tool_call') lines.push(`  lead->>lead: ${labelOf(value)}`);
      if (what === 'question') {
        const [state = '', ...answer] = value.split(': ');
        if (states.get(fact) === state) continue;
        const isNew = !states.has(fact);
        states.set(fact, state);
        const asker = known.get(id.slice(0, id.lastIndexOf('.'))) ?? 'lead';
        if (isNew) lines.push(`  ${asker}->>user: ${labelOf(`asks ${id}`)}`);
        if (state === 'answered') lines.push(`  user->>${asker}: ${labelOf(answer.join(': '))}`);
        else if (!isNew) lines.push(`  Note over user: ${labelOf(`${id} ${state}`)}`);
      }
      if (what === 'subagent') {
        const state = /\b(completed|failed|cancelled)\b/.exec(value)?.[1];
        if (state === undefined || states.get(fact) === state) continue;
        states.set(fact, state);
        const said = value.includes(': ') ? value.slice(value.indexOf(': ') + 2) : state;
        lines.push(`  ${subagent(id)}-->>lead: ${labelOf(`${state}: ${said}`)}`);
      }
    }
  }
  return [
    'sequenceDiagram',
    '  actor user',
    '  participant lead as lead agent',
    ...subagents,
    ...lines,
    '',
  ].join('\n');
}

/** MERMAID-1. Entity codes are how Mermaid escapes its syntax characters. */
function labelOf(text: string): string {
  const letters = Array.from(text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim());
  const cut =
    letters.length > MAX_LABEL_CHARS ? [...letters.slice(0, MAX_LABEL_CHARS - 1), '…'] : letters;
  const shown = cut.map((letter) =>
    /[#;:<>"'`%{}()[\]\\&]/.test(letter) ? `#${letter.codePointAt(0)};` : letter,
  );
  // A bare `end` would close a block that was never opened.
  return (
    shown
      .join('')
      .replace(
        /\bend\b/gi,
        (word) => `${word.slice(0, 1)}#${word.codePointAt(1)};${word.slice(2)}`,
      ) || '…'
  );
}
