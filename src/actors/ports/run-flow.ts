// The flow of a run that an engine keeps: turns, with waits between them. It is pure and imports nothing at run time,
// so that an engine that replays functions (Temporal, in its sandbox) bundles only this file, and changes to Offstage's
// machines do not affect recorded histories.
//
// A turn receives the run's journal and one piece of news. It continues until the run ends, waits for people, or wants
// steps that the engine must record first (`RunTurn.steps`), and returns the entries that it has added to the journal.
// A step is therefore one entry of the engine's history: everything before the step is recorded, and the turn that
// reads the step's end follows.
//
// Invariants
//   RUN-FLOW-1. A turn starts with the journal of the last recorded turn, and with one piece of news.
//   RUN-FLOW-2. People see a question only after the turn that asked it is recorded.
//   RUN-FLOW-3. The calls to the engine depend only on the engine's earlier results.
//   RUN-FLOW-4. A child run starts once, after the turn that wants it is recorded, and its outcome is news once. A
//       child that is no longer wanted is cancelled, unless the run has ended and abandons its children.
//   RUN-FLOW-5. A step that a turn leaves to the engine starts after that turn is recorded, once for each request, and
//       its end is news once. A step that is no longer wanted is asked to stop.
//   RUN-FLOW-6. Every turn receives a message until a turn has read it. An `interrupt` breaks off the running turn.
//       Unless it is cancelled, a run does not end while a message from before its last turn's recording is unread:
//       that turn, which has one model call, runs again.

import type { Job, JobEnd, JobFailure } from './jobs.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import type { JournalEntry } from './journal.ts';

/** The order for a run, from a program. Plain JSON. */
export interface RunOrder {
  /** The id of the run. */
  readonly id: string;
  /** The name of the configuration, which the worker resolves. */
  readonly config: string;
  /** The task of the run. */
  readonly task: {
    readonly description: string;
    readonly toolName: string;
    readonly args: Readonly<Record<string, unknown>>;
  };
  /**
   * A digest of `config` and `task`, from which a program detects that the id belongs to another run. @defaultValue
   * none: the program cannot detect that
   */
  readonly digest?: string;
  /** The user for whom the run works, as the program vouches. @defaultValue none */
  readonly by?: string;
  /** The requesting program's span, the parent of the run's jobs and steps. @defaultValue none */
  readonly trace?: TraceContext;
  /** The limits of a run that works for another run. @defaultValue none: a program requested the run */
  readonly above?: RunBounds;
  /**
   * `task`, `by` and `above`, packed by `packedEngine` or `packedHandler`; the plain fields are then ignored.
   * @defaultValue none
   */
  readonly packed?: string;
}

/** A child run's limits, which come from its ancestors. */
export interface RunBounds {
  /** The number of ancestors. */
  readonly depth: number;
  /** Keys of the calls that the user denied to an ancestor. */
  readonly denied: readonly string[];
  /** The identities that may answer the run's questions, unless its configuration names them. @defaultValue any identity */
  readonly answerableBy?: readonly string[];
}

/** A run whose outcome another run waits for. */
export interface RunChild {
  /** The order of the child run. */
  readonly order: RunOrder;
  /** The treatment of the child when the waiting run ends. */
  readonly onParentClose: 'cancel' | 'abandon';
}

/** A program's answer to a question (`given`), or to a subagent's request (`content`); null for no answer. */
export interface RunAnswer {
  /** The question that it answers. */
  readonly requestId: string;
  /** The answer, as an option or consent. */
  readonly given?: object | null;
  /** The answer, in words. */
  readonly content?: string | null;
  /** `given` and `content`, packed by `packedEngine`. @defaultValue none */
  readonly packed?: string;
}

/** A program's message to the run. */
export interface RunMessage {
  /** The id, unique in the run: a message that is sent again is read once. */
  readonly id: string;
  /** The words for the run. */
  readonly content: string;
  /**
   * When the run reads it: before its next step (`steer`), when it would otherwise end (`queue`), or immediately,
   * breaking off the running step (`interrupt`).
   */
  readonly mode: 'queue' | 'steer' | 'interrupt';
  /** The user who sent the message, as the program vouches. @defaultValue none */
  readonly by?: string;
  /** `content` and `by`, packed by `packedEngine`; `content` is then empty. @defaultValue none */
  readonly packed?: string;
}

/** A message that the engine keeps for the run. */
export interface TakenMessage extends RunMessage {
  /** The message's number: ascending in the run, from 1, possibly with gaps. */
  readonly nth: number;
}

/** A step that a turn leaves to the engine. `once`: the engine must not start it again. */
export interface RunStep extends Pick<Job, 'key' | 'name' | 'once' | 'trace'> {
  /**
   * Whether the step is a job with `once` on another engine that keeps its end, so that the request may be repeated.
   * @defaultValue false
   */
  readonly isKept?: boolean;
  /** The content, as in a job. @defaultValue none: the step is running, or the next turn runs it */
  readonly body?: string;
  /** The end of a step that the engine must not start. @defaultValue none: the step starts */
  readonly refused?: JobFailure;
}

/** The end of a step that the engine ran. */
export interface RunStepEnd {
  readonly key: string;
  readonly end: JobEnd;
}

/** Entries of a run's journal; as text: packed by `packedHandler`. */
export type RunEntries = readonly JournalEntry[] | string;

/** The news with which a turn starts. */
export type RunNews =
  | { readonly type: 'begun' }
  /** The turn must run the one step that the last turn left to it. */
  | { readonly type: 'next'; readonly step: RunStep }
  /** Steps that the engine ran have ended. */
  | { readonly type: 'ended'; readonly ends: readonly RunStepEnd[] }
  | { readonly type: 'answered'; readonly answer: RunAnswer }
  /** A time has come for which the run waited. */
  | { readonly type: 'due' }
  /** A child has ended. Null if the engine lost the child. */
  | { readonly type: 'child'; readonly id: string; readonly outcome: object | null }
  /** The turn has messages that the previous turn did not have. */
  | { readonly type: 'messages' }
  | { readonly type: 'cancelled'; readonly reason: string };

/** A question or request that people answer. */
export interface RunWait {
  /** The id that the answer names. */
  readonly requestId: string;
  /** The expected kind of answer. */
  readonly kind: 'question' | 'input';
  /** The question or request, as a program's handler receives it; or `{ packed }`. */
  readonly asked: object;
  /** When it was first asked, in milliseconds since 1970. */
  readonly askedAt: number;
}

/** A turn that an engine gives to a worker: the run's order, its journal, and the news since the last turn. */
export interface RunTurn {
  /** The order of the run. */
  readonly order: RunOrder;
  /** The turn's number, counted from 1. */
  readonly number: number;
  readonly journal: RunEntries;
  /** The entries that later turns added to `journal`. @defaultValue none */
  readonly since?: readonly RunEntries[];
  /** The questions that wait for an answer. */
  readonly waiting: readonly RunWait[];
  readonly news: RunNews;
  /** The messages that no model call has read yet, in order. @defaultValue none */
  readonly messages?: readonly TakenMessage[];
  /** The steps that the turn may run: at most one, or none; the engine records between two steps. */
  readonly steps: 'one' | 'none';
  /** The keys of the steps that the engine is running. @defaultValue none */
  readonly underWay?: readonly string[];
  /** The mark of the previous turn's end. @defaultValue none */
  readonly mark?: string;
}

/** The end of a turn, which the engine records: the journal's new entries, and what the run waits for. */
export interface RunTurnEnd {
  /** When the turn ended, in milliseconds since 1970. */
  readonly at: number;
  /** The run's journal; empty once the run has ended. */
  readonly journal: RunEntries;
  /** Whether `journal` contains only the entries that this turn added. @defaultValue false: all entries */
  readonly isMore?: boolean;
  /** The mark of this end: another attempt at the turn has a different mark. @defaultValue none */
  readonly mark?: string;
  /** The steps for which the run waits; the next turn runs a step without a body. @defaultValue none */
  readonly steps?: readonly RunStep[];
  /**
   * Whether the worker cannot run this turn and has done nothing; the engine makes no second attempt. @defaultValue the
   * turn has run
   */
  readonly missing?: 'another worker';
  /** The questions that wait for an answer. */
  readonly waiting: readonly RunWait[];
  /** The numbers of the messages that a model call has read. @defaultValue none */
  readonly read?: readonly number[];
  /** The children for which the run waits. @defaultValue none */
  readonly children?: readonly RunChild[];
  /** When the run continues without news, in milliseconds since 1970; null if it waits for news. */
  readonly wakeAt: number | null;
  /** The outcome, or `{ packed }`. Null if the run has not ended. */
  readonly outcome: object | null;
}

/** A run as programs see it. */
export interface RunView {
  /** The view's number: later views have greater numbers. */
  readonly turn: number;
  /** The digest of the run's order. @defaultValue the order had none */
  readonly digest?: string;
  /** The questions that wait for an answer. */
  readonly waiting: readonly RunWait[];
  /** The ids of the children for which the run waits; the children's own views contain their questions. @defaultValue none */
  readonly children?: readonly string[];
  /**
   * The run's messages: the number of the last one, the numbers of the unread ones, and the ids of the last 25 that were read.
   * @defaultValue none
   */
  readonly messages?: {
    readonly last: number;
    readonly unread: readonly number[];
    readonly read?: readonly string[];
  };
  /** The end of the run; null if the run has not ended. */
  readonly outcome: object | null;
}

/** The functions of an engine that the flow uses. Every call is durable: in a replay, it returns the recorded result. */
export interface RunDriver {
  /** The steps that a turn runs itself. @defaultValue 'one' */
  readonly steps?: RunTurn['steps'];
  /** Runs a turn. A cancellation during the turn reaches it. Null if an `interrupt` broke it off. */
  turn(turn: RunTurn): Promise<RunTurnEnd | null>;
  /** Returns the messages that arrived since the last call. @defaultValue the engine accepts none */
  messages?(): readonly TakenMessage[];
  /** Shows the run to programs. */
  show(view: RunView): void | Promise<void>;
  /**
   * Waits for the first of: an answer to one of these requests, the end of one of these children, the ends of steps,
   * messages, a cancellation, or `due` after `dueInMs` (null for never).
   */
  news(
    requestIds: readonly string[],
    dueInMs: number | null,
    childIds: readonly string[],
  ): Promise<RunNews>;
  /** Begins a child. */
  begin(child: RunChild): void | Promise<void>;
  /** Cancels a running child whose outcome is no longer wanted. */
  stop(childId: string, reason: string): void | Promise<void>;
  /** Starts a step that has a body or a refusal. */
  beginStep(step: RunStep): void;
  /** Asks a step to stop. Its end is no longer news. */
  stopStep(key: string): void;
  /**
   * Returns whether the engine's history has room for only a few more steps; then no step starts until none is running
   * and the history can start anew. @defaultValue there is room
   */
  isFull?(): boolean;
}

/** The start of the flow: before the first turn, or where a history that starts anew continues. */
export interface RunStart {
  readonly turn: RunTurn;
  readonly view: RunView | null;
}

/** The number of read messages whose ids are kept, for programs whose sending was interrupted. */
const MAX_READ = 25;
const STOPPED = 'the run that it worked for no longer waits for it';

/** Returns the first turn of a run. */
export function firstTurn(order: RunOrder, steps: RunTurn['steps'] = 'one'): RunTurn {
  return { order, number: 1, journal: [], waiting: [], news: { type: 'begun' }, steps };
}

/** Runs the flow on an engine, and returns the run's last view. `from`: where a history that starts anew continues. */
export async function playRun(
  order: RunOrder,
  driver: RunDriver,
  from: RunStart = { turn: firstTurn(order, driver.steps), view: null },
): Promise<RunView> {
  let { turn, view } = from;
  const begun = new Map<string, RunChild>();
  const underWay = new Set<string>();
  let unread = turn.messages ?? [];
  let last = unread.at(-1)?.nth ?? view?.messages?.last ?? 0;
  const taken = (): number => {
    const came = driver.messages?.() ?? [];
    unread = [...unread, ...came];
    last = came.at(-1)?.nth ?? last;
    return came.length;
  };
  for (;;) {
    const end = await driver.turn(turn);
    const hasMail = taken() > 0;
    // RUN-FLOW-6
    if (end === null || (hasMail && isRedone(turn, end))) {
      turn = {
        ...(end === null ? brokenOff(turn) : turn),
        number: turn.number + 1,
        messages: unread,
      };
      continue;
    }
    const { at, waiting, read = [], steps = [], wakeAt, outcome } = end;
    const wasRead = unread.filter(({ nth }) => read.includes(nth)).map(({ id }) => id);
    const readIds = [...(view?.messages?.read ?? []), ...wasRead].slice(-MAX_READ);
    unread = unread.filter(({ nth }) => !read.includes(nth));
    await followChildren(driver, end, begun);
    const childIds = [...begun.keys()];
    // A run from an earlier version has no digest: its replay must produce the same views as before.
    const known = order.digest === undefined || readIds.length === 0 ? {} : { read: readIds };
    const messages = { last, unread: unread.map(({ nth }) => nth), ...known };
    const hasRead: boolean = last > 0 && !isSame(messages, view?.messages);
    const isShown: boolean = hasRead || isNews(end, childIds, view, turn.news);
    const before: number = view?.turn ?? 0;
    view = {
      turn: isShown ? before + 1 : before,
      waiting,
      outcome,
      ...(order.digest && { digest: order.digest }),
      ...(childIds.length > 0 ? { children: childIds } : {}),
      ...(last > 0 ? { messages } : {}),
    };
    if (isShown) await driver.show(view);
    const wanted = new Set(steps.map(({ key }) => key));
    // RUN-FLOW-5
    for (const key of underWay) if (!wanted.has(key) && underWay.delete(key)) driver.stopStep(key);
    if (outcome !== null) return view;
    const [first] = steps;
    let news: RunNews;
    if (first && !underWay.has(first.key) && first.body === undefined && !first.refused)
      news = { type: 'next', step: first };
    else if (hasMail) news = { type: 'messages' };
    else {
      // A child may take days, so steps do not wait for its end.
      const mayBegin = underWay.size === 0 || begun.size > 0 || driver.isFull?.() !== true;
      for (const step of steps) {
        if (!mayBegin || underWay.has(step.key)) continue;
        underWay.add(step.key);
        driver.beginStep(step);
      }
      const ids = waiting.map(({ requestId }) => requestId);
      const dueInMs = wakeAt === null ? null : Math.max(0, wakeAt - at);
      news = await driver.news(ids, dueInMs, childIds);
    }
    // The child has ended, so there is nothing to stop.
    if (news.type === 'child') begun.delete(news.id);
    if (news.type === 'ended') for (const { key } of news.ends) underWay.delete(key);
    taken();
    turn = {
      ...turnAfter(turn, end, news),
      steps: driver.steps ?? 'one',
      ...(unread.length > 0 ? { messages: unread } : {}),
      ...(underWay.size > 0 ? { underWay: [...underWay] } : {}),
    };
  }
}

/** Returns whether the run would end in a turn that lacks the newest messages. Such a turn's only step is a model call. */
function isRedone({ news }: RunTurn, { outcome }: RunTurnEnd): boolean {
  const isFinal = news.type === 'cancelled' || (news.type === 'next' && news.step.once);
  return !isFinal && outcome !== null;
}

/** Returns the turn that replaces a turn that was broken off: it starts no step. */
function brokenOff(turn: RunTurn): RunTurn {
  const { news } = turn;
  if (news.type !== 'next') return { ...turn, steps: 'none' };
  const { key, once } = news.step;
  if (!once) return { ...turn, steps: 'none', news: { type: 'messages' } };
  return { ...turn, steps: 'none', news: { type: 'ended', ends: [{ key, end: { lost: true } }] } };
}

function isSame(messages: RunView['messages'], before: RunView['messages']): boolean {
  return messages?.last === before?.last && messages?.unread.join(' ') === before?.unread.join(' ');
}

/** RUN-FLOW-4 */
async function followChildren(
  driver: RunDriver,
  { children = [], outcome }: RunTurnEnd,
  begun: Map<string, RunChild>,
): Promise<void> {
  const wanted = new Set(children.map((child) => child.order.id));
  for (const child of children) {
    if (begun.has(child.order.id)) continue;
    begun.set(child.order.id, child);
    await driver.begin(child);
  }
  for (const [id, { onParentClose }] of begun) {
    if (wanted.has(id)) continue;
    begun.delete(id);
    if (outcome === null || onParentClose === 'cancel') await driver.stop(id, STOPPED);
  }
}

/**
 * Returns whether programs must see the run because its questions, requests or children changed. An accepted answer or
 * a child's end is shown in the next view.
 */
function isNews(
  { waiting, outcome }: RunTurnEnd,
  childIds: readonly string[],
  before: RunView | null,
  news: RunNews,
): boolean {
  if (outcome !== null) return true;
  const ids = (wait: readonly RunWait[], children: readonly string[] = []): readonly string[] => [
    ...wait.map(({ requestId }) => `request ${requestId}`),
    ...children.map((id) => `child ${id}`),
  ];
  const taken =
    news.type === 'answered'
      ? `request ${news.answer.requestId}`
      : `child ${news.type === 'child' ? news.id : ''}`;
  const expected = ids(before?.waiting ?? [], before?.children).filter((id) => id !== taken);
  return expected.join('\n') !== ids(waiting, childIds).join('\n');
}

function turnAfter(
  { order, number, journal, since = [] }: RunTurn,
  end: RunTurnEnd,
  news: RunNews,
): Omit<RunTurn, 'steps'> {
  const { isMore = false, mark, waiting } = end;
  const later = isMore && end.journal.length > 0 ? [...since, end.journal] : since;
  return {
    order,
    number: number + 1,
    journal: isMore ? journal : end.journal,
    waiting,
    news,
    ...(isMore && later.length > 0 ? { since: later } : {}),
    ...(mark === undefined ? {} : { mark }),
  };
}
