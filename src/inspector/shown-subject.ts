// A subject of the session as the page shows it after an entry: its machine, why it is waiting, its text and its usage.
//
// Owns:     the ids of subjects (`subagent sub_1`, `question sub_1.q1`), and the description of each subject.
// Does not: read or fold entries (`inspected-session.ts`). With redaction, no text is sent (INSPECTED-2).

import type { BudgetLimits } from '../actors/contracts/config.ts';
import {
  asUsage,
  NO_LEAD_USAGE,
  usageBelow,
  usageOfBoth,
  type Usage,
} from '../actors/contracts/usage.ts';
import { mayAnswer } from '../actors/contracts/session-views.ts';
import type { JournalEntry } from '../actors/ports/journal.ts';
import type { Replay, ReplayStep } from '../actors/replay/replay-session.ts';
import type { ReplayView } from '../actors/replay/replay-view.ts';
import { redactNothing, shownValue, type Redact } from '../adapters/inspect/shown-value.ts';
import { whyWaiting, type Wait, type WaitingState } from '../machines/why-waiting.ts';
import type { ChartName } from './charts.ts';

/** A subject of the session, such as a subagent or a question, in its state after an entry. */
export interface ShownSubject {
  readonly n: number;
  readonly at: number;
  readonly id: string;
  readonly chart: ChartName | null;
  /** The value of its machine, or null if it has no machine or has ended. */
  readonly value: unknown;
  readonly context: unknown;
  /** The reason why it is waiting, or null if it is not waiting. */
  readonly wait: Wait | null;
  /** The parts that are waiting, at most `MAX_WAITS` of them. */
  readonly waits: readonly Wait[];
  /** The total number of parts that are waiting. */
  readonly waiting: number;
  /** Whether the viewer may answer the question. Always true for other subjects. */
  readonly mayAnswer: boolean;
  /** The text of a question, delivery or call. Null for any other subject, and after the subject has ended. */
  readonly detail: unknown;
  /**
   * The latest lines that a subagent's model has read and written; they remain after the subagent has ended. For the
   * session, the latest lines of the conversation.
   */
  readonly said: readonly SaidLine[];
  /** A subagent's latest questions with their answers, and all messages to the subagent. */
  readonly exchanged: readonly SaidLine[];
  /** The outcome of a subagent that has ended. */
  readonly outcome: unknown;
  /**
   * The usage by the model calls of a subagent or of the lead agents, both without and with all subagents under it.
   * Null for other subjects.
   */
  readonly usage: { readonly own: Usage; readonly whole: Usage } | null;
  /** The budget limits of a subagent or of the session. Null if there are none, and for other subjects. */
  readonly budget: BudgetLimits | null;
  /** The entry's event. */
  readonly event: unknown;
}

/** A line of a conversation. */
interface SaidLine {
  readonly role: string;
  readonly text: string;
}

const MAX_SHOWN_BYTES = 32_768;
const MAX_WAITS = 50;
const MAX_LINES = 100;

interface Subject {
  readonly entry: JournalEntry;
  /** The entries up to `entry`, starting where a replay can start. */
  readonly entries: readonly JournalEntry[];
  /** Null if the state after this entry is unknown. */
  readonly step: ReplayStep | null;
  /** The replay that has processed the step. */
  readonly replay: Replay | undefined;
  readonly id: string;
  /** The viewer. */
  readonly by: string;
  readonly redact: Redact;
}

export function subjectOf({
  entry,
  entries,
  step,
  replay,
  id,
  by,
  redact,
}: Subject): Omit<ShownSubject, 'n'> {
  const show = (value: unknown, section: string): unknown =>
    shownValue(value, section, redact, { bytesLeft: MAX_SHOWN_BYTES });
  const machines = hideNames(step?.machines ?? null, redact);
  const view = step?.view ?? null;
  const waits = machines ? whyWaiting(machines) : [];
  const [chart, state] = machineOf(machines, id);
  const name = subjectIn(id);
  const wait = waits.find((each) => each.of === name.of && each.id === name.id) ?? null;
  const subagent =
    name.of === 'subagent' ? view?.subagents.find((each) => each.id === name.id) : undefined;
  const isSession = id === 'session';
  const detail = view && (detailOf(view, id) ?? questionIn(entries, name));
  const messages = subagent && replay?.messagesOf(subagent.id, entries);
  const said = messages?.flatMap(linesOf) ?? (isSession ? linesIn(view) : []);
  return {
    at: entry.at,
    id,
    chart,
    value: state?.value ?? null,
    context: state ? show(state.context, 'context') : null,
    wait: name.of === 'session' && !isSession ? null : wait,
    waits: waits.slice(0, MAX_WAITS),
    waiting: waits.length,
    mayAnswer:
      name.of !== 'question' ||
      mayAnswer({ answerableBy: step?.machines?.answerableBy?.get(name.id) }, by),
    detail: detail ? show(detail, 'context') : null,
    said: shownLines(said, redact),
    exchanged: subagent ? shownLines(exchangedIn(entries, subagent.id), redact) : [],
    budget: (id === 'session' ? view : subagent)?.budget ?? null,
    usage: usageOf(view, id, name),
    outcome: subagent?.outcome ? show(subagent.outcome, 'context') : null,
    event: show(entry.event, 'event'),
  };
}

/** INSPECTED-2. The page shows a sentence that names who may answer. */
function hideNames(machines: WaitingState | null, redact: Redact): WaitingState | null {
  if (redact === redactNothing || !machines?.answerableBy) return machines;
  const hidden = [...machines.answerableBy].map(
    ([id, by]) =>
      [id, by.map((name) => String(redact(name, ['context', 'answerableBy'])))] as const,
  );
  return { ...machines, answerableBy: new Map(hidden) };
}

/** Returns the text of a question, a delivery or a call, or the task of a subagent. */
function detailOf({ questions, outbox, calls, subagents }: ReplayView, id: string): unknown {
  const [what, rest] = partsOf(id);
  switch (what) {
    case 'question':
      return questions.find(({ requestId }) => requestId === rest);
    case 'delivery':
      return [outbox.current, ...outbox.pending].find((each) => each?.deliveryId === rest);
    case 'call':
      return calls.find(({ callId }) => callId === rest);
    case 'subagent': {
      const subagent = subagents.find((each) => each.id === rest);
      if (!subagent) return null;
      const { name, parentId, callId, task, state, step } = subagent;
      return { name, parentId, callId, task, state, step };
    }
    default:
      return null;
  }
}

/** The fields of question and message events that are shown in a line. */
interface Told {
  readonly type: string;
  readonly at?: number;
  readonly requestId?: string;
  readonly subagentId?: string;
  readonly question?: string;
  readonly text?: string;
  readonly by?: string;
  readonly mode?: string;
  readonly approved?: boolean;
  readonly answer?: { readonly userResponse?: string };
  readonly action?: { readonly toolName: string; readonly input: unknown };
}

function exchangedIn(entries: readonly JournalEntry[], id: string): readonly SaidLine[] {
  const by = new Map<string, string>();
  return entries.flatMap(({ unit, scope, event }): readonly SaidLine[] => {
    const told = event as Told;
    const { type, requestId = '', question = '', text = '', action } = told;
    if (unit === scope) {
      if (type === 'answer.given' && told.by !== undefined) by.set(requestId, told.by);
      if (type !== 'question.asked' || told.subagentId !== id) return [];
      const input = action ? JSON.stringify(action.input) : '';
      const about = question.includes(input) ? '' : ` (${action?.toolName} ${input})`;
      return [{ role: `asks ${requestId}`, text: `${question}${about}` }];
    }
    if (unit !== id) return [];
    switch (type) {
      case 'subagent.message':
        return [{ role: `message${ofWhom(told.by)}, read ${READ[told.mode ?? ''] ?? ''}`, text }];
      case 'question.answered':
        return [
          { role: `answer to ${requestId}${ofWhom(by.get(requestId))}`, text: answerIn(told) },
        ];
      case 'question.expired':
      case 'question.withdrawn':
        return [{ role: `no answer to ${requestId}`, text: type.slice('question.'.length) }];
      default:
        return [];
    }
  });
}

const READ: Readonly<Record<string, string>> = {
  steer: 'before the next step',
  queue: 'after the work',
  interrupt: 'at once',
};

const ofWhom = (by: string | undefined): string => (by === undefined ? '' : ` of ${by}`);

function answerIn({ approved, answer: { userResponse = '' } = {} }: Told): string {
  const consent = approved === undefined ? '' : approved ? 'approved' : 'refused';
  return [consent, userResponse].filter((part) => part !== '').join(': ');
}

/** Returns the text of a question that has ended, and how it ended. */
function questionIn(
  entries: readonly JournalEntry[],
  { of, id }: Pick<Wait, 'of' | 'id'>,
): unknown {
  if (of !== 'question') return null;
  const at = entries.findLastIndex(
    ({ event }) => event.type === 'question.asked' && (event as Told).requestId === id,
  );
  const asked = entries[at];
  if (!asked) return null;
  const { type: _type, at: askedAt, ...question } = asked.event as Told;
  const [answer, expired] = exchangedIn(entries.slice(at), question.subagentId ?? '').filter(
    ({ role }) => role.endsWith(`answer to ${id}`) || role.startsWith(`answer to ${id} of `),
  );
  return { ...question, askedAt, state: 'over', answer: (answer ?? expired)?.text ?? null };
}

function linesIn(view: ReplayView | null): readonly SaidLine[] {
  return (view?.transcript ?? []).slice(-MAX_LINES).map(({ role, text, interrupted }) => ({
    role,
    text: interrupted ? `${text} (broken off)` : text,
  }));
}

type Message = NonNullable<ReturnType<Replay['messagesOf']>>[number];

/** Returns the parts of a message as lines. */
function linesOf({ role, content }: Message): readonly SaidLine[] {
  if (typeof content === 'string') return [{ role, text: content }];
  return content.map((part) => {
    if (part.type === 'text') return { role, text: part.text };
    if (part.type === 'tool-call')
      return { role, text: `${part.toolName} ${JSON.stringify(part.input)}` };
    if (part.type === 'tool-result')
      return { role, text: `${part.toolName}: ${JSON.stringify(part.output)}` };
    return { role, text: part.type };
  });
}

/** Returns as many of the latest lines as fit. */
function shownLines(lines: readonly SaidLine[], redact: Redact): readonly SaidLine[] {
  const budget = { bytesLeft: MAX_SHOWN_BYTES };
  const shown: SaidLine[] = [];
  for (const { role, text } of lines.slice(-MAX_LINES).toReversed()) {
    if (budget.bytesLeft <= 0) break;
    shown.push({ role, text: String(shownValue(text, 'context', redact, budget)) });
  }
  return shown.toReversed();
}

/**
 * Parses an id: `question sub_1.q1` is the question with this id, while `session`, `interaction` and `outbox` have no
 * id.
 */
function subjectIn(id: string): Pick<Wait, 'of' | 'id'> {
  const [kind, rest] = partsOf(id);
  switch (kind) {
    case 'question':
    case 'delivery':
    case 'call':
    case 'subagent':
    case 'service':
    case 'source':
      return { of: kind, id: rest };
    default:
      return { of: 'session', id: '' };
  }
}

function partsOf(id: string): readonly [kind: string, rest: string] {
  const at = id.indexOf(' ');
  return at < 0 ? [id, ''] : [id.slice(0, at), id.slice(at + 1)];
}

function usageOf(
  view: Pick<ReplayView, 'subagents' | 'leadUsage'> | null,
  thing: string,
  { of, id }: Pick<Wait, 'of' | 'id'>,
): ShownSubject['usage'] {
  const { subagents, leadUsage } = view ?? { subagents: [], leadUsage: NO_LEAD_USAGE };
  if (thing === 'session') {
    const { total } = usageOfBoth(leadUsage, usageBelow(subagents, null));
    return { own: asUsage(leadUsage), whole: total };
  }
  const subagent = of === 'subagent' && subagents.find((each) => each.id === id);
  return subagent ? { own: subagent.usage, whole: usageBelow(subagents, id) } : null;
}

type State = { readonly value: unknown; readonly context: unknown };

function machineOf(
  machines: WaitingState | null,
  id: string,
): readonly [ChartName | null, State | null] {
  const subject = subjectIn(id);
  if (subject.of === 'question') return ['question', machines?.questions.get(subject.id) ?? null];
  if (subject.of === 'subagent') return ['subagent', machines?.subagents.get(subject.id) ?? null];
  if (subject.of === 'service')
    return ['service', machines?.services?.get(subject.id)?.state ?? null];
  if (subject.of === 'source') {
    // The name of a source may contain a slash.
    for (const [service, { sources }] of machines?.services ?? []) {
      const state = subject.id.startsWith(`${service}/`)
        ? sources.get(subject.id.slice(service.length + 1))
        : undefined;
      if (state) return ['source', state];
    }
    return ['source', null];
  }
  if (subject.of === 'delivery' || id === 'outbox') return ['outbox', machines?.outbox ?? null];
  if (id === 'interaction') return ['interaction', machines?.interaction ?? null];
  // The page has no chart for a call.
  return id === 'session' ? ['session', machines?.session ?? null] : [null, null];
}
