// A thing of a session as the page shows it after an entry: its machine, why it waits, its words, what it has used.
//
// Owns:     the ids of things (`subagent sub_1`, `question sub_1.q1`), and what is told of each.
// Does not: read or fold entries (inspected-session.ts). With redaction no words leave (INSPECTED-2).

import type { BudgetLimits } from '../actors/contracts/config.ts';
import {
  asUsage,
  NO_LEAD_USAGE,
  usageBelow,
  usageOfBoth,
  type Usage,
} from '../actors/contracts/usage.ts';
import type { JournalEntry } from '../actors/ports/journal.ts';
import type { Replay, ReplayStep } from '../actors/replay/replay-session.ts';
import type { ReplayView } from '../actors/replay/replay-view.ts';
import { redactNothing, shownValue, type Redact } from '../adapters/inspect/shown-value.ts';
import { whyWaiting, type Wait, type WaitingState } from '../machines/index.ts';
import type { ChartName } from './charts.ts';

/** A thing of the session at an entry. */
export interface ShownSubject {
  readonly n: number;
  readonly at: number;
  readonly id: string;
  readonly chart: ChartName | null;
  /** The value of its machine; null: it has none, or is over. */
  readonly value: unknown;
  readonly context: unknown;
  /** Why it waits; null: it does not. */
  readonly wait: Wait | null;
  /** Everything that waits, at most `MAX_WAITS` of it. */
  readonly waits: readonly Wait[];
  /** The number of all that waits. */
  readonly waiting: number;
  /** A question, a delivery or a call in words; null: it is none of these, or over. */
  readonly detail: unknown;
  /** The latest lines that the model of a subagent has read and written, or those of the conversation. */
  readonly said: readonly SaidLine[];
  /** Of a subagent that has ended. */
  readonly outcome: unknown;
  /** The usage of a subagent's model calls, or of the lead agents', and with that of all below; null of anything else. */
  readonly usage: { readonly own: Usage; readonly whole: Usage } | null;
  /** The limits of a subagent's own budget, or the session's; null: there are none, or it is something else. */
  readonly budget: BudgetLimits | null;
  /** The event of the entry. */
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
  /** Null: the state after the entry is not known. */
  readonly step: ReplayStep | null;
  /** That has taken the step. */
  readonly replay: Replay | undefined;
  readonly id: string;
  readonly redact: Redact;
}

export function subjectOf({ entry, step, replay, id, redact }: Subject): Omit<ShownSubject, 'n'> {
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
  const detail = view && detailOf(view, id);
  const messages = subagent && replay?.messagesOf(subagent.id);
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
    detail: detail ? show(detail, 'context') : null,
    said: shownLines(said, redact),
    budget: (id === 'session' ? view : subagent)?.budget ?? null,
    usage: usageOf(view, id, name),
    outcome: subagent?.outcome ? show(subagent.outcome, 'context') : null,
    event: show(entry.event, 'event'),
  };
}

/** INSPECTED-2. A sentence names those who may answer. */
function hideNames(machines: WaitingState | null, redact: Redact): WaitingState | null {
  if (redact === redactNothing || !machines?.answerableBy) return machines;
  const hidden = [...machines.answerableBy].map(
    ([id, by]) =>
      [id, by.map((name) => String(redact(name, ['context', 'answerableBy'])))] as const,
  );
  return { ...machines, answerableBy: new Map(hidden) };
}

/** Returns the words of a question, a delivery or a call, or the task of a subagent. */
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

function linesIn(view: ReplayView | null): readonly SaidLine[] {
  return (view?.transcript ?? []).slice(-MAX_LINES).map(({ role, text, interrupted }) => ({
    role,
    text: interrupted ? `${text} (broken off)` : text,
  }));
}

type Message = NonNullable<ReturnType<Replay['messagesOf']>>[number];

/** The parts of a message as lines. */
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

/** The latest lines that have room. */
function shownLines(lines: readonly SaidLine[], redact: Redact): readonly SaidLine[] {
  const budget = { bytesLeft: MAX_SHOWN_BYTES };
  const shown: SaidLine[] = [];
  for (const { role, text } of lines.slice(-MAX_LINES).toReversed()) {
    if (budget.bytesLeft <= 0) break;
    shown.push({ role, text: String(shownValue(text, 'context', redact, budget)) });
  }
  return shown.toReversed();
}

/** `question sub_1.q1` is the question of this id; `session`, `interaction` and `outbox` are themselves. */
function subjectIn(id: string): Pick<Wait, 'of' | 'id'> {
  const [kind, rest] = partsOf(id);
  if (kind === 'question' || kind === 'delivery' || kind === 'call' || kind === 'subagent')
    return { of: kind, id: rest };
  return { of: 'session', id: '' };
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
  if (subject.of === 'delivery' || id === 'outbox') return ['outbox', machines?.outbox ?? null];
  if (id === 'interaction') return ['interaction', machines?.interaction ?? null];
  // A call has no chart here.
  return id === 'session' ? ['session', machines?.session ?? null] : [null, null];
}
