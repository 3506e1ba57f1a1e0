// Prints a recorded session: one line for each entry, and below it the changes.
import type { JournalEntry } from '../../entries/journal.ts';
import type { ReplayStep } from '../../entries/replay.ts';
import { cell, COLUMNS, filled, fitted, offset } from './lines.ts';

const NUMBER = 6;
const TIME = 12;
const WHO = 24;
const WHAT = COLUMNS - NUMBER - TIME - WHO - 3;
/** Changes are indented below the columns `who` and `what`. */
const INDENT = NUMBER + TIME + 3;

/** Facts that the line of an entry contains already. */
const TOLD = /^(?:user|assistant|system|tool_call) /;

export class Story {
  /** The names of the subagents, by their ids. */
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
    if (setAside !== null) below.unshift(`✗ set aside: ${setAside}`);
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

/** The fields of an event that describe it best. */
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
  readonly task?: { readonly args: unknown };
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
