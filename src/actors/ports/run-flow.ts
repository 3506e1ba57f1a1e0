// The flow of a run that an engine keeps: turns, and waits between them. It is pure and imports nothing, so that an engine
// that replays functions (Temporal, in its sandbox) bundles it alone, and so that a new version of Offstage's machines
// changes no recorded history.
//
// A turn takes the journal of the run and one piece of news, and goes on until the run has ended or waits for people: it
// returns the journal as it then is. A turn that is repeated after a crash gets the ends of its steps from the engine, by
// their keys.
//
// Invariants
//   RUN-FLOW-1. A turn begins with the journal of the last turn that was recorded, and with one piece of news.
//   RUN-FLOW-2. People see a question only after the turn that asked it was recorded.
//   RUN-FLOW-3. The calls to the engine depend on what it returned, and on nothing else.
//   RUN-FLOW-4. A child run is begun once, after the turn that wants it was recorded, and its outcome is news once. A child
//       that is no longer wanted is cancelled, unless the run has ended and its children are abandoned.

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
  /** The user that it works for, as the program vouches. @defaultValue none */
  readonly by?: string;
  /** The bounds of a run that works for another run. @defaultValue none: a program asked for it */
  readonly above?: RunBounds;
  /** `task`, `by` and `above` as `packedRuns` or `packedRunHandler` wrote them; those fields then say nothing. @defaultValue none */
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
  /** Both as `packedRuns` wrote them. @defaultValue none */
  readonly packed?: string;
}

/** What a turn begins with. */
export type RunNews =
  | { readonly type: 'begun' }
  | { readonly type: 'answered'; readonly answer: RunAnswer }
  /** A time has come that the run waited for. */
  | { readonly type: 'due' }
  /** A child has ended. Null: the engine lost it. */
  | { readonly type: 'child'; readonly id: string; readonly outcome: object | null }
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

export interface RunTurn {
  readonly order: RunOrder;
  /** Counts from 1. */
  readonly number: number;
  /** A text: as `packedRunHandler` wrote it at the end of the last turn. */
  readonly journal: readonly JournalEntry[] | string;
  readonly waiting: readonly RunWait[];
  readonly news: RunNews;
}

export interface RunTurnEnd {
  /** When the turn ended, in milliseconds since 1970. */
  readonly at: number;
  /** The journal of the run; empty once it has ended. */
  readonly journal: readonly JournalEntry[] | string;
  readonly waiting: readonly RunWait[];
  /** The children that the run waits for now. @defaultValue none */
  readonly children?: readonly RunChild[];
  /** When the run goes on by itself, in milliseconds since 1970; null: only people make it go on. */
  readonly wakeAt: number | null;
  /** Null: it has not ended. Or `{ packed }`. */
  readonly outcome: object | null;
}

/** The run as programs see it. */
export interface RunView {
  /** The number of turns that are over. */
  readonly turn: number;
  readonly waiting: readonly RunWait[];
  /** The ids of the children that it waits for: their questions are in their own views. @defaultValue none */
  readonly children?: readonly string[];
  readonly outcome: object | null;
}

/** What the flow needs of an engine. Every call is durable: at a replay it returns what it returned before. */
export interface RunDriver {
  /** Does a turn. A cancel during the turn reaches it. */
  turn(turn: RunTurn): Promise<RunTurnEnd>;
  /** Shows the run to programs. */
  show(view: RunView): void | Promise<void>;
  /**
   * The first answer to one of these, the end of one of these children, a cancel, or `due` after that time; null: no time
   * is waited for.
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
}

const STOPPED = 'the run that it worked for no longer waits for it';

/** Plays a run on an engine, and returns its last view. `from`: the turn with which a history that is begun anew goes on. */
export async function playRun(
  order: RunOrder,
  driver: RunDriver,
  from?: RunTurn,
): Promise<RunView> {
  let turn: RunTurn = from ?? {
    order,
    number: 1,
    journal: [],
    waiting: [],
    news: { type: 'begun' },
  };
  const begun = new Map<string, RunChild>();
  for (;;) {
    const { at, journal, waiting, children = [], wakeAt, outcome } = await driver.turn(turn);
    const wanted = new Set(children.map((child) => child.order.id));
    // RUN-FLOW-4
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
    const childIds = [...begun.keys()];
    const hasChildren = childIds.length > 0;
    const view: RunView = {
      turn: turn.number,
      waiting,
      outcome,
      ...(hasChildren ? { children: childIds } : {}),
    };
    await driver.show(view);
    if (outcome !== null) return view;
    const ids = waiting.map(({ requestId }) => requestId);
    const dueInMs = wakeAt === null ? null : Math.max(0, wakeAt - at);
    const news = await driver.news(ids, dueInMs, childIds);
    // It has ended: there is nothing to stop.
    if (news.type === 'child') begun.delete(news.id);
    turn = { order, number: turn.number + 1, journal, waiting, news };
  }
}
