// The control flow of a run on an engine, which alternates between turns and waits. It is pure and imports nothing at
// run time. An engine that replays functions (such as Temporal, in its sandbox) therefore bundles only this file, and
// changes to Offstage's machines do not affect recorded histories.
//
// A turn receives the run's journal and one event since the last turn (`news`). It continues until the run ends, waits
// for people, or needs steps that the engine must record first (`RunTurn.steps`), and returns the entries that it has
// added to the journal. Each such step is therefore one entry in the engine's history: everything before it is recorded
// first, and the next turn reads its outcome.
//
// Invariants
//   RUN-FLOW-1. A turn starts with the journal of the last recorded turn, and with one event (`news`).
//   RUN-FLOW-2. People see a question only after the turn that asked it is recorded.
//   RUN-FLOW-3. The calls to the engine depend only on the engine's earlier results.
//   RUN-FLOW-4. A child run starts once, after the turn that requests it has been recorded. Its outcome is reported to
//       the run once. A child that is no longer needed is cancelled, unless the run has ended and abandons its
//       children.
//   RUN-FLOW-5. A step that a turn leaves to the engine starts once for each request, after that turn has been
//       recorded. Its end is reported to the run once. A step that is no longer needed is asked to stop.
//   RUN-FLOW-6. A message is passed to every turn until a turn has read it. An `interrupt` breaks off the running turn.
//       Unless it is cancelled, a run does not end while it has an unread message that arrived before its last turn was
//       recorded. Instead, that turn, which makes one model call, runs again.

import type { Job, JobEnd, JobFailure } from './jobs.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import type { JournalEntry } from './journal.ts';

/** The order with which a program starts a run. Plain JSON. */
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
   * A digest of `config` and `task`, which lets a program detect that the id already belongs to a different run.
   * @defaultValue none: the program cannot detect that
   */
  readonly digest?: string;
  /** The user on whose behalf the run works, as confirmed by the program. @defaultValue none */
  readonly by?: string;
  /** The requesting program's span, which becomes the parent of the run's jobs and steps. @defaultValue none */
  readonly trace?: TraceContext;
  /** The limits of a child run. @defaultValue none: a program requested the run */
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
  /** Whether the child is cancelled or abandoned when the run that waits for it ends. */
  readonly onParentClose: 'cancel' | 'abandon';
}

/** A program's answer to a question (`given`), or to a subagent's request (`content`); null if there is no answer. */
export interface RunAnswer {
  /** The question that it answers. */
  readonly requestId: string;
  /** The answer, as an option or an approval. */
  readonly given?: object | null;
  /** The answer, as text. */
  readonly content?: string | null;
  /** `given` and `content`, packed by `packedEngine`. @defaultValue none */
  readonly packed?: string;
}

/** A program's message to the run. */
export interface RunMessage {
  /** The id, unique in the run. A message that is sent again with the same id is read only once. */
  readonly id: string;
  /** The text for the run. */
  readonly content: string;
  /**
   * When the run reads it: before its next step (`steer`), when it would otherwise end (`queue`), or immediately,
   * breaking off the running step (`interrupt`).
   */
  readonly mode: 'queue' | 'steer' | 'interrupt';
  /** The user who sent the message, as confirmed by the program. @defaultValue none */
  readonly by?: string;
  /** `content` and `by`, packed by `packedEngine`; `content` is then empty. @defaultValue none */
  readonly packed?: string;
}

/** A message that the engine has accepted and stored for the run. */
export interface TakenMessage extends RunMessage {
  /** The message's number. Numbers ascend within the run, from 1, possibly with gaps. */
  readonly nth: number;
}

/** A step that a turn leaves to the engine. `once`: the engine must not start it again. */
export interface RunStep extends Pick<Job, 'key' | 'name' | 'once' | 'trace'> {
  /**
   * Whether the step is a job with `once` on another engine that remembers how the job ended, so that repeating the
   * request is safe.
   * @defaultValue false
   */
  readonly isKept?: boolean;
  /**
   * The content of the step, in the same form as in a job. @defaultValue none: the step is running, or the next turn
   * runs it
   */
  readonly body?: string;
  /** The failure of a step that the engine must not start. @defaultValue none: the step starts */
  readonly refused?: JobFailure;
}

/** The end of a step that the engine ran. */
export interface RunStepEnd {
  readonly key: string;
  readonly end: JobEnd;
}

/** The entries of a run's journal, or their text as packed by `packedHandler`. */
export type RunEntries = readonly JournalEntry[] | string;

/** The event with which a turn starts. */
export type RunNews =
  | { readonly type: 'begun' }
  /** The last turn left one step for this turn to run. */
  | { readonly type: 'next'; readonly step: RunStep }
  /** Steps that the engine ran have ended. */
  | { readonly type: 'ended'; readonly ends: readonly RunStepEnd[] }
  | { readonly type: 'answered'; readonly answer: RunAnswer }
  /** A time that the run was waiting for has come. */
  | { readonly type: 'due' }
  /** A child has ended. Null if the engine lost the child. */
  | { readonly type: 'child'; readonly id: string; readonly outcome: object | null }
  /** Messages have arrived since the previous turn. */
  | { readonly type: 'messages' }
  | { readonly type: 'cancelled'; readonly reason: string };

/** A question or request that is waiting for a person's answer. */
export interface RunWait {
  /** The id to use in the answer. */
  readonly requestId: string;
  /** The expected kind of answer. */
  readonly kind: 'question' | 'input';
  /** The question or request, as a program's handler receives it; or `{ packed }`. */
  readonly asked: object;
  /** When it was first asked, in milliseconds since 1970. */
  readonly askedAt: number;
}

/**
 * A turn that an engine passes to a worker. It contains the run's order, its journal, and the event since the last
 * turn.
 */
export interface RunTurn {
  /** The order of the run. */
  readonly order: RunOrder;
  /** The turn's number, counted from 1. */
  readonly number: number;
  /** The run's journal, or its beginning if `since` has later entries; empty in the first turn. */
  readonly journal: RunEntries;
  /** The entries that later turns added to `journal`. @defaultValue none */
  readonly since?: readonly RunEntries[];
  /** The questions that are waiting for an answer. */
  readonly waiting: readonly RunWait[];
  /** The event that this turn handles. */
  readonly news: RunNews;
  /** The messages that no model call has read yet, in the order of arrival. @defaultValue none */
  readonly messages?: readonly TakenMessage[];
  /**
   * The steps that the turn may run itself: at most one, because the engine records each step before the next one
   * starts.
   */
  readonly steps: 'one' | 'none';
  /** The keys of the steps that the engine is running. @defaultValue none */
  readonly underWay?: readonly string[];
  /** The id of the previous turn's end (`RunTurnEnd.mark`). @defaultValue none */
  readonly mark?: string;
}

/**
 * The end of a turn, which the engine records. It contains the new journal entries and everything that the run is
 * waiting for.
 */
export interface RunTurnEnd {
  /** When the turn ended, in milliseconds since 1970. */
  readonly at: number;
  /** The run's journal; empty once the run has ended. */
  readonly journal: RunEntries;
  /** Whether `journal` contains only the entries that this turn added. @defaultValue false: all entries */
  readonly isMore?: boolean;
  /** The id of this end, which is different for each attempt at the turn. @defaultValue none */
  readonly mark?: string;
  /** The steps that the run is waiting for. If a step has no body, the next turn runs it. @defaultValue none */
  readonly steps?: readonly RunStep[];
  /**
   * Whether the worker was unable to run this turn and did nothing. The engine then does not try again. @defaultValue
   * the turn has run
   */
  readonly missing?: 'another worker';
  /** The questions that are waiting for an answer. */
  readonly waiting: readonly RunWait[];
  /** The numbers of the messages that a model call has read. @defaultValue none */
  readonly read?: readonly number[];
  /** The children that the run is waiting for. @defaultValue none */
  readonly children?: readonly RunChild[];
  /** When the run continues even without news, in milliseconds since 1970; null if it only waits for news. */
  readonly wakeAt: number | null;
  /** The outcome, or `{ packed }`. Null if the run has not ended. */
  readonly outcome: object | null;
}

/** The state of a run, for programs. */
export interface RunView {
  /** The number of the view, which increases with each view. */
  readonly turn: number;
  /** The digest of the run's order. @defaultValue the order had none */
  readonly digest?: string;
  /** The questions that are waiting for an answer. */
  readonly waiting: readonly RunWait[];
  /** The ids of the children that the run is waiting for. Their questions are in their own views. @defaultValue none */
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
  /** How the run ended; null if the run has not ended. */
  readonly outcome: object | null;
}

/** The functions of an engine that the flow uses. Every call is durable, so a replay receives the recorded result. */
export interface RunDriver {
  /** Which steps a turn runs itself. @defaultValue 'one' */
  readonly steps?: RunTurn['steps'];
  /**
   * Runs a turn. If the run is cancelled during the turn, the cancellation is passed on to the turn. Resolves with null
   * if an `interrupt` broke the turn off.
   */
  turn(turn: RunTurn): Promise<RunTurnEnd | null>;
  /** Returns the messages that arrived since the last call. @defaultValue the engine accepts none */
  messages?(): readonly TakenMessage[];
  /** Makes this view of the run available to programs. */
  show(view: RunView): void | Promise<void>;
  /**
   * Waits for the first of these: an answer to one of the requests, the end of one of the children, the ends of steps,
   * messages, a cancellation, or `due` after `dueInMs` (null for never).
   */
  news(
    requestIds: readonly string[],
    dueInMs: number | null,
    childIds: readonly string[],
  ): Promise<RunNews>;
  /** Begins a child. */
  begin(child: RunChild): void | Promise<void>;
  /** Cancels a running child whose outcome is no longer needed. */
  stop(childId: string, reason: string): void | Promise<void>;
  /** Starts a step that has a body or a refusal. */
  beginStep(step: RunStep): void;
  /** Asks a step to stop. The end of the step is then no longer reported. */
  stopStep(key: string): void;
  /**
   * Returns whether the engine's history has room for only a few more steps. If so, no step starts until all running
   * steps have ended and the history can be restarted. @defaultValue there is room
   */
  isFull?(): boolean;
}

/** The point at which the flow starts: before the first turn, or where a restarted history continues. */
export interface RunStart {
  readonly turn: RunTurn;
  readonly view: RunView | null;
}

/**
 * The maximum number of ids of read messages in a view. A program that was interrupted while sending a message checks
 * whether its id is among them.
 */
const MAX_READ = 25;
const STOPPED = 'the run that it worked for no longer waits for it';

/** Returns the first turn of a run. */
export function firstTurn(order: RunOrder, steps: RunTurn['steps'] = 'one'): RunTurn {
  return { order, number: 1, journal: [], waiting: [], news: { type: 'begun' }, steps };
}

/**
 * Runs the flow on an engine, and returns the final view of the run. `from`: the point at which a restarted history
 * continues.
 */
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
    // A run from an earlier version has no digest, so its replay must produce the same views as before.
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

/** Returns the turn to run after a turn was broken off. It starts no step. */
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
 * Returns whether the run's questions, requests or children have changed, so that programs need a new view. An accepted
 * answer or a child's end is shown in the next view.
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
