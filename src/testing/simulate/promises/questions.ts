// P2: at most one question owns the user's words, in the order of asking. P3: an answer was given by the user
// to that question while it was put, and reaches its asker unchanged.

import type { QuestionView } from '../../../actors/contracts/session-views.ts';
import { plain } from '../../conformance/words.ts';
import type { LogEntry, RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

const PUT: ReadonlySet<string> = new Set(['presenting', 'open', 'parked']);
const SAYS_YES = /^(yes|Yes)\b/;

interface Asked {
  view: QuestionView;
  /** The user's words, typed texts and clicks while it was put. */
  readonly tried: string[];
  accepted: number;
}

export function* questions({ log }: RunRecord): Iterable<Broken> {
  const book = new Map<string, Asked>();
  const order: string[] = [];
  for (const entry of log) {
    if (entry.kind === 'event' && entry.event.type === 'question.changed')
      yield* changed(book, order, entry.event.question);
    else yield* tried(book, entry);
  }
  yield* reachTheirAskers(book, log);
}

function* changed(book: Map<string, Asked>, order: string[], view: QuestionView): Iterable<Broken> {
  const { requestId, state } = view;
  const known = book.get(requestId);
  const before = known?.view.state ?? 'queued';
  if (!known) order.push(requestId);
  const asked = known ?? { view, tried: [], accepted: 0 };
  asked.view = view;
  book.set(requestId, asked);
  if (isOver(before) && before !== state)
    yield { promise: 'P2', what: `${requestId} was ${before}, and then ${state}` };
  if (PUT.has(state) && !PUT.has(before)) {
    const others = order.filter((id) => id !== requestId && PUT.has(stateOf(book, id)));
    if (others.length > 0)
      yield { promise: 'P2', what: `${requestId} was put while ${others.join()} had the floor` };
    const first = order.find((id) => id === requestId || stateOf(book, id) === 'queued');
    if (first !== requestId)
      yield { promise: 'P2', what: `${requestId} was put before ${first}, which was asked before` };
  }
  if (state === 'answered' && before !== 'answered') yield* answered(asked);
}

function* answered({ view, tried: words }: Asked): Iterable<Broken> {
  const { requestId, answer, kind } = view;
  if (!words.some((one) => means(one, view)))
    yield {
      promise: 'P3',
      what: `the ${kind} ${requestId} was answered with ${JSON.stringify(answer)}; the user had said to it only: ${words.map((one) => JSON.stringify(one)).join(', ') || 'nothing'}`,
    };
}

function means(words: string, { answer, kind, options }: QuestionView): boolean {
  if (answer === null) return false;
  if (kind === 'approval') return SAYS_YES.test(words) === SAYS_YES.test(answer);
  const said = plain(words);
  const option = options.find(({ label }) => label === answer);
  return said === plain(answer) || (option !== undefined && said.includes(plain(answer)));
}

/** Records an entry that may be an answer. */
function* tried(book: Map<string, Asked>, entry: LogEntry): Iterable<Broken> {
  if (entry.kind === 'said') {
    // Spoken words settle later: they count for every question that is put until then.
    for (const asked of book.values()) if (!isOver(asked.view.state)) asked.tried.push(entry.words);
  } else if (entry.kind === 'clicked') {
    const asked = book.get(entry.requestId);
    if (asked && !isOver(asked.view.state)) asked.tried.push(inWords(asked.view, entry));
  } else if (entry.kind === 'receipt' && entry.receipt.accepted) {
    const asked = book.get(entry.requestId);
    if (!asked) return;
    asked.accepted += 1;
    const { answer, state } = asked.view;
    const words = inWords(asked.view, entry);
    if (asked.accepted > 1)
      yield { promise: 'P3', what: `${entry.requestId} accepted ${asked.accepted} answers` };
    else if (state !== 'answered' || plain(answer ?? '') !== plain(words))
      yield {
        promise: 'P3',
        what: `${entry.requestId} accepted ${JSON.stringify(words)}, and is ${state} with ${JSON.stringify(answer)}`,
      };
  }
}

function inWords(
  { options }: QuestionView,
  { answer }: Extract<LogEntry, { kind: 'clicked' | 'receipt' }>,
): string {
  if (answer.approved !== undefined) return answer.approved ? 'Yes' : 'No';
  const label = options.find(({ id }) => id === answer.optionId)?.label;
  return label ?? answer.text ?? '';
}

/** Checks that the asker's ledger holds the given answer. */
function* reachTheirAskers(
  book: ReadonlyMap<string, Asked>,
  log: readonly LogEntry[],
): Iterable<Broken> {
  const outcomes = new Map(
    log.flatMap((entry) =>
      entry.kind === 'event' && entry.event.type === 'subagent.changed'
        ? [[entry.event.subagent.id, entry.event.subagent.outcome] as const]
        : [],
    ),
  );
  for (const { view } of book.values()) {
    const outcome = outcomes.get(view.subagentId);
    if (!outcome || view.kind !== 'question') continue;
    for (const { toolName, input, status, output } of outcome.toolLedger) {
      if (toolName !== 'ask_user' || status !== 'ok') continue;
      if ((input as { question?: unknown }).question !== view.question) continue;
      const { userResponse } = (output ?? {}) as { userResponse?: string };
      const same = [...book.values()].filter(
        (asked) =>
          asked.view.question === view.question && asked.view.subagentId === view.subagentId,
      );
      if (!same.some((asked) => asked.view.answer === userResponse))
        yield {
          promise: 'P3',
          what: `${view.subagentId} read ${JSON.stringify(userResponse)} for ${view.requestId}, which was answered with ${JSON.stringify(view.answer)}`,
        };
    }
  }
}

function stateOf(book: ReadonlyMap<string, Asked>, requestId: string): string {
  return book.get(requestId)?.view.state ?? 'queued';
}

function isOver(state: string): boolean {
  return !PUT.has(state) && state !== 'queued';
}
