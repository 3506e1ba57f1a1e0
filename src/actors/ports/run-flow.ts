// The flow of a run that an engine keeps: turns, and waits between them. It is pure and imports nothing, so that an engine
// that replays functions (Temporal, in its sandbox) bundles it alone, and so that a new version of Offstage's machines
// changes no recorded history.
//
// A turn takes the journal of the run and one piece of news, and goes on until the run has ended, waits for people, or wants
// steps that the engine has to record first (`RunTurn.steps`): it returns the entries that it has added to the journal. So a
// step is one entry of the engine's own history: what was done before it is recorded, and its end comes with the turn that
// reads it.
//
// Invariants
//   RUN-FLOW-1. A turn begins with the journal of the last turn that was recorded, and with one piece of news.
//   RUN-FLOW-2. People see a question only after the turn that asked it was recorded.
//   RUN-FLOW-3. The calls to the engine depend on what it returned, and on nothing else.
//   RUN-FLOW-4. A child run is begun once, after the turn that wants it was recorded, and its outcome is news once. A child
//       that is no longer wanted is cancelled, unless the run has ended and its children are abandoned.
//   RUN-FLOW-5. A step that a turn leaves to the engine is begun after that turn was recorded, once for each time that it is
//       wanted, and its end is news once. A step that is no longer wanted is told to stop.
//   RUN-FLOW-6. A message is given to every turn until one has read it. An `interrupt` breaks off the turn under way, and a run that is not cancelled does not end with a message that came before its last turn was recorded: that turn
//       is done again, its one model call included.

import type { Job, JobEnd, JobFailure } from './jobs.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import type { JournalEntry } from './journal.ts';

/** The run as it was asked for. Plain JSON. */
export interface RunOrder {
  readonly id: string;
  /** The name of the configuration, which the worker has. */
  readonly config: string;
  readonly task: {
    readonly description: string;
    readonly toolName: string;
    readonly args: Readonly<Record<string, unknown>>;
  };
  /** A digest of `config` and `task`, by which a program finds that its id stands for another run. @defaultValue it cannot tell */
  readonly digest?: string;
  /** The user that it works for, as the program vouches. @defaultValue none */
  readonly by?: string;
  /** The span of the program that asks for it, which its jobs and steps are below. @defaultValue none */
  readonly trace?: TraceContext;
  /** The bounds of a run that works for another run. @defaultValue none: a program asked for it */
  readonly above?: RunBounds;
  /** `task`, `by` and `above` as `packedEngine` or `packedHandler` wrote them; those fields then say nothing. @defaultValue none */
  readonly packed?: string;
}

/** The bounds of a child run, from the subagents above it. */
export interface RunBounds {
  /** The number of subagents above it. */
  readonly depth: number;
  /** Keys of the calls that the user denied to one of them. */
  readonly denied: readonly string[];
  /** The identities that may answer its questions, unless its configuration says it. @defaultValue any identity */
  readonly answerableBy?: readonly string[];
}

/** A run whose outcome another run waits for. */
export interface RunChild {
  readonly order: RunOrder;
  /** What happens to it when the run that waits for it ends. */
  readonly onParentClose: 'cancel' | 'abandon';
}

/** An answer of a program to a question (`given`), or to a request of a subagent (`content`); null: no answer. */
export interface RunAnswer {
  readonly requestId: string;
  readonly given?: object | null;
  readonly content?: string | null;
  /** Both as `packedEngine` wrote them. @defaultValue none */
  readonly packed?: string;
}

/** A message of a program to the run. */
export interface RunMessage {
  /** Unique in the run: a message that is sent again is read once. */
  readonly id: string;
  readonly content: string;
  /** When it is read: by the next step (`steer`), when the run would have ended, or at once, which breaks off what is under way. */
  readonly mode: 'queue' | 'steer' | 'interrupt';
  /** The user who sent it, for whose identity the program vouches. @defaultValue none */
  readonly by?: string;
  /** `content` and `by` as `packedEngine` wrote them; `content` is empty then. @defaultValue none */
  readonly packed?: string;
}

/** A message that the engine keeps for the run. */
export interface TakenMessage extends RunMessage {
  /** Ascending in the run, from 1; numbers may be left out. */
  readonly nth: number;
}

/** A step that a turn leaves to the engine. `once`: the engine must not begin it again. */
export interface RunStep extends Pick<Job, 'key' | 'name' | 'once' | 'trace'> {
  /** It is a job that must not be repeated, of another engine, which keeps its end: that may be asked for again. @defaultValue false */
  readonly isKept?: boolean;
  /** Its content, as that of a job. @defaultValue none: it is under way, or the next turn does it itself */
  readonly body?: string;
  /** It is not begun: this is its end. @defaultValue it is begun */
  readonly refused?: JobFailure;
}

/** The end of a step that the engine did. */
export interface RunStepEnd {
  readonly key: string;
  readonly end: JobEnd;
}

/** Entries of a run's journal; a text: as `packedHandler` wrote them. */
export type RunEntries = readonly JournalEntry[] | string;

/** What a turn begins with. */
export type RunNews =
  | { readonly type: 'begun' }
  /** The turn is to do the one step that the last one has left to it. */
  | { readonly type: 'next'; readonly step: RunStep }
  /** Steps that the engine did have ended. */
  | { readonly type: 'ended'; readonly ends: readonly RunStepEnd[] }
  | { readonly type: 'answered'; readonly answer: RunAnswer }
  /** A time has come that the run waited for. */
  | { readonly type: 'due' }
  /** A child has ended. Null: the engine lost it. */
  | { readonly type: 'child'; readonly id: string; readonly outcome: object | null }
  /** The turn has messages that the one before had not. */
  | { readonly type: 'messages' }
  | { readonly type: 'cancelled'; readonly reason: string };

/** Something that people answer. */
export interface RunWait {
  readonly requestId: string;
  readonly kind: 'question' | 'input';
  /** The question or request, as a handler of the program receives it; or `{ packed }`. */
  readonly asked: object;
  /** When it was asked first, in milliseconds since 1970. */
  readonly askedAt: number;
}

/** A turn that an engine gives to a worker: the run's order, its journal, and what has happened since the last turn. */
export interface RunTurn {
  readonly order: RunOrder;
  /** Counts from 1. */
  readonly number: number;
  readonly journal: RunEntries;
  /** The entries that later turns have added to the journal. @defaultValue none */
  readonly since?: readonly RunEntries[];
  readonly waiting: readonly RunWait[];
  readonly news: RunNews;
  /** The messages that no model call has read yet, in their order. @defaultValue none */
  readonly messages?: readonly TakenMessage[];
  /** The steps that the turn does itself: one at the most, or none; the engine records between two of them. */
  readonly steps: 'one' | 'none';
  /** The steps that the engine does now, by their keys. @defaultValue none */
  readonly underWay?: readonly string[];
  /** The mark of the last turn's end. @defaultValue none */
  readonly mark?: string;
}

/** The end of a turn, which the engine records: the journal's new entries, and what the run waits for. */
export interface RunTurnEnd {
  /** When the turn ended, in milliseconds since 1970. */
  readonly at: number;
  /** The journal of the run; empty once it has ended. */
  readonly journal: RunEntries;
  /** `journal` is what this turn has added. @defaultValue false: it is all that there is */
  readonly isMore?: boolean;
  /** Names this end: another attempt at the turn has another one. @defaultValue none */
  readonly mark?: string;
  /** The steps that the run waits for now; one without a body is done by the next turn. @defaultValue none */
  readonly steps?: readonly RunStep[];
  /** Nothing was done: this worker cannot do the turn, and the engine makes one attempt. @defaultValue nothing is missing */
  readonly missing?: 'another worker';
  readonly waiting: readonly RunWait[];
  /** The numbers of its messages that a model call reads. @defaultValue none */
  readonly read?: readonly number[];
  /** The children that the run waits for now. @defaultValue none */
  readonly children?: readonly RunChild[];
  /** When the run goes on by itself, in milliseconds since 1970; null: only people make it go on. */
  readonly wakeAt: number | null;
  /** Null: it has not ended. Or `{ packed }`. */
  readonly outcome: object | null;
}

/** The run as programs see it. */
export interface RunView {
  /** Grows with each view of the run. */
  readonly turn: number;
  /** That of its order. @defaultValue the order had none */
  readonly digest?: string;
  readonly waiting: readonly RunWait[];
  /** The ids of the children that it waits for: their questions are in their own views. @defaultValue none */
  readonly children?: readonly string[];
  /**
   * The messages that the run was given: the number of the last one, of those that it has not read, and the ids of the last 25
   * that it has read. @defaultValue none
   */
  readonly messages?: {
    readonly last: number;
    readonly unread: readonly number[];
    readonly read?: readonly string[];
  };
  readonly outcome: object | null;
}

/** What the flow needs of an engine. Every call is durable: at a replay it returns what it returned before. */
export interface RunDriver {
  /** The steps that a turn does itself. @defaultValue 'one' */
  readonly steps?: RunTurn['steps'];
  /** Does a turn. A cancel during the turn reaches it. Null: it was broken off, since an `interrupt` came. */
  turn(turn: RunTurn): Promise<RunTurnEnd | null>;
  /** Returns the messages that have come since it was called last. @defaultValue the engine takes none */
  messages?(): readonly TakenMessage[];
  /** Shows the run to programs. */
  show(view: RunView): void | Promise<void>;
  /**
   * The first answer to one of these, the end of one of these children, the ends of steps, messages, a cancel, or `due` after
   * that time; null: no time is waited for.
   */
  news(
    requestIds: readonly string[],
    dueInMs: number | null,
    childIds: readonly string[],
  ): Promise<RunNews>;
  /** Begins a child. */
  begin(child: RunChild): void | Promise<void>;
  /** Cancels a child that was begun, and whose outcome is no longer waited for. */
  stop(childId: string, reason: string): void | Promise<void>;
  /** Begins a step, which has a body or was refused. */
  beginStep(step: RunStep): void;
  /** Tells a step to stop. Its end is no news any more. */
  stopStep(key: string): void;
  /**
   * The engine's history has room for few more steps, and can be begun anew when none is under way: none is begun before that.
   * @defaultValue there is room
   */
  isFull?(): boolean;
}

/** The run before its first turn, or where a history that is begun anew goes on. */
export interface RunStart {
  readonly turn: RunTurn;
  readonly view: RunView | null;
}

/** Messages whose ids are kept once they are read, for programs whose sending was cut off. */
const MAX_READ = 25;
const STOPPED = 'the run that it worked for no longer waits for it';

/** Returns the first turn of a run. */
export function firstTurn(order: RunOrder, steps: RunTurn['steps'] = 'one'): RunTurn {
  return { order, number: 1, journal: [], waiting: [], news: { type: 'begun' }, steps };
}

/** Plays a run on an engine, and returns its last view. `from`: where a history that is begun anew goes on. */
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
    // The view of a run of an earlier version is replayed as it was.
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
      // A child may take days: nothing waits for it.
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
    // It has ended: there is nothing to stop.
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

/** The run would end in a turn that has not had the newest messages. The one step of such a turn is a model call. */
function isRedone({ news }: RunTurn, { outcome }: RunTurnEnd): boolean {
  const isFinal = news.type === 'cancelled' || (news.type === 'next' && news.step.once);
  return !isFinal && outcome !== null;
}

/** The turn that takes the place of one that was broken off: it begins no step. */
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
 * Tells whether programs have to see the run: it asks or waits for something else than before. That an answer or the end of a
 * child was taken is seen with the next view.
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
