// Writes what waits in a session to the journal's desk, and reads the pages of the desk.
//
// Owns:     the rows of the sessions that this process has in memory, and the order of their writes.
// Does not: decide anything about the session: the rows follow from its events.
//
// Invariants
//   SESSION-DESK-1. The rows are never ahead of the journal, because a session emits an event only after the entry that
//       caused the event is stored.
//   SESSION-DESK-2. The rows of a session in memory may be behind the journal. When the session is loaded, its rows are
//       replaced. A crash therefore leaves outdated rows only until a pool continues the session, which it does because
//       the session counts as awake.
//   SESSION-DESK-3. A session leaves memory only after its latest rows are stored, because then no process would
//       replace outdated rows.
//   SESSION-DESK-4. A session has at most `MAX_ROWS` rows of a kind: those that have been waiting longest. Each row
//       states how many more there are.

import { z } from 'zod';
import { check, scopeName, type ChecksOf } from '../../values/checks.ts';
import { clip } from '../../values/clip.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { identity } from '../contracts/identity.ts';
import { isWaiting, type SessionEvent } from '../contracts/session-views.ts';
import type { Desk, DeskQuery, DeskRow } from '../ports/desk.ts';
import type { Journal } from '../ports/journal.ts';

/** Something that waits in a session. */
export interface DeskItem {
  /** The session. */
  readonly sessionId: string;
  /**
   * `approval`, `question`: it waits for an answer. `unheard`: a result or notice that the user has not received.
   * `running`: a subagent that has not ended; it may itself be waiting or sleeping.
   */
  readonly kind: 'approval' | 'question' | 'unheard' | 'running';
  /** The id of the question, the delivery or the subagent, for the session's methods. */
  readonly id: string;
  /** Since when it has been waiting or running, in milliseconds since 1970. */
  readonly since: number;
  /** The text of the question, the heading of the delivery or the title of the work, clipped to 500 characters. */
  readonly title: string;
  /** The subagent that asks, reports or works; null for a notice from the app. */
  readonly subagentId: string | null;
  /** The `name` of the subagent's configuration; null for a delivery. */
  readonly subagentName: string | null;
  /** The deadline for the answer, in milliseconds since 1970; null if there is none, or while it is paused. */
  readonly expiresAt: number | null;
  /** The identities that may answer; absent if any identity may. */
  readonly answerableBy?: readonly string[];
  /** How many further items of this kind the session has, beyond the 50 oldest, which are listed. */
  readonly more: number;
}

/** Selects items of the desk. */
export interface DeskOptions {
  /** @defaultValue all kinds */
  readonly kind?: DeskItem['kind'];
  /** Selects the approvals and questions that this identity may answer. @defaultValue all items */
  readonly answerableBy?: string;
  /** The `next` value of the previous page. @defaultValue from the item that has been waiting longest */
  readonly after?: string;
  /** The maximum number of items on a page, at most 500. @defaultValue 50 */
  readonly limit?: number;
}

/** A page of the desk. */
export interface DeskPage {
  /** The items, in the order of `since`. */
  readonly items: readonly DeskItem[];
  /** The value of `after` for the next page; null on the last page. */
  readonly next: string | null;
}

const KINDS = ['approval', 'question', 'unheard', 'running'] as const;
const ANSWERED: readonly DeskItem['kind'][] = ['approval', 'question'];
const MAX_ROWS = 50;
const MAX_TITLE_CHARS = 500;

const optionsSchema = z.strictObject({
  kind: z.enum(KINDS).optional(),
  answerableBy: identity.optional(),
  after: z.string().max(10_000).optional(),
  limit: z.int().min(1).max(500).optional(),
} satisfies ChecksOf<DeskOptions>);

const cursor = z.tuple([z.number(), scopeName, z.string()]);

/** The content of a row's body. */
type Body = Omit<DeskItem, 'sessionId' | 'since' | 'more'>;

/**
 * Returns a page of the journal's desk.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`; `INVALID_OPTION` if the journal has no desk.
 */
export async function readDesk(journal: Journal, options: DeskOptions): Promise<DeskPage> {
  const where = 'desk(query)';
  const query = check(where, optionsSchema, options, 'INVALID_ARGUMENT');
  const { kind, answerableBy, after, limit = 50 } = query;
  if (!journal.desk)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'desk(query): expected a journal with `desk`, such as sqliteJournal or postgresJournal: this one does not index what waits in its sessions',
    );
  if (answerableBy !== undefined && kind !== undefined && !ANSWERED.includes(kind))
    throw new ConfigurationError(
      'INVALID_ARGUMENT',
      `desk(query): expected \`answerableBy\` with the kind approval or question, got ${kind}`,
    );
  const all = answerableBy === undefined ? KINDS : ANSWERED;
  const found = await journal.desk.find({
    kinds: kind === undefined ? all : [kind],
    ...(answerableBy !== undefined && { answerableBy: [answerableBy] }),
    ...(after !== undefined && { after: placeOf(where, after) }),
    limit: limit + 1,
  });
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  return {
    items: page.map(({ scope: sessionId, since, body }): DeskItem => {
      const content: Body & Pick<DeskItem, 'more'> = JSON.parse(body);
      return { sessionId, since, ...content };
    }),
    next: last ? JSON.stringify([last.since, last.scope, last.id]) : null,
  };
}

/** @throws {ConfigurationError} `INVALID_ARGUMENT` */
function placeOf(where: string, after: string): NonNullable<DeskQuery['after']> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(after);
  } catch {
    parsed = after;
  }
  const [since, scope, id] = check(`${where}.after`, cursor, parsed, 'INVALID_ARGUMENT');
  return { since, scope, id };
}

/** The rows of one session. */
export interface SessionDesk {
  /** Whether the latest rows are stored. */
  isWritten(): boolean;
  /** Follows the session. */
  take(event: SessionEvent): void;
  /** Stores the latest rows. Rejects with the journal's error; a later call tries again. */
  write(): Promise<void>;
}

export function sessionDesk(desk: Desk, scope: string): SessionDesk {
  const open = new Map<string, { readonly since: number; readonly body: Body }>();
  /** Counts the changes. */
  let version = 0;
  /** SESSION-DESK-2. The first write replaces the rows of an earlier process. */
  let written = -1;
  let writing: Promise<void> | null = null;

  const set = (isOpen: boolean, since: number, given: Body): void => {
    const name = `${given.kind} ${given.id}`;
    const body = { ...given, title: clip(given.title, MAX_TITLE_CHARS) };
    const before = open.get(name);
    if (isOpen ? JSON.stringify(before?.body) === JSON.stringify(body) : !before) return;
    if (isOpen) open.set(name, { since: before?.since ?? since, body });
    else open.delete(name);
    version += 1;
  };

  /** SESSION-DESK-4 */
  const rows = (): readonly DeskRow[] => {
    const sorted = [...open].toSorted(([, one], [, other]) => one.since - other.since);
    return KINDS.flatMap((kind) => {
      const ofKind = sorted.filter(([, { body }]) => body.kind === kind);
      const more = Math.max(0, ofKind.length - MAX_ROWS);
      return ofKind.slice(0, MAX_ROWS).map(([id, { since, body }]): DeskRow => ({
        kind,
        id,
        since,
        answerableBy: body.answerableBy ?? null,
        body: JSON.stringify({ ...body, more }),
      }));
    });
  };

  const writeRows = async (): Promise<void> => {
    const latest = version;
    await desk.set(scope, rows());
    written = latest;
  };

  return {
    isWritten: () => written === version,
    take(event) {
      if (event.type === 'question.changed') {
        const {
          requestId: id,
          kind,
          question: title,
          askedAt,
          dueAt,
          answerableBy,
        } = event.question;
        const { subagentId, subagentName, state } = event.question;
        const who = answerableBy && { answerableBy };
        const row = { kind, id, title, subagentId, subagentName, expiresAt: dueAt, ...who };
        set(isWaiting(state), askedAt, row);
      } else if (event.type === 'delivery.changed') {
        const { deliveryId: id, kind, label: title, subagentId, state, at } = event.delivery;
        const isUnheard = state === 'pending' || state === 'offered' || state === 'playing';
        const isContent = kind === 'result' || kind === 'notice';
        const row = { kind: 'unheard', id, title, subagentId, subagentName: null } as const;
        set(isUnheard && isContent, at, { ...row, expiresAt: null });
      } else if (event.type === 'subagent.changed') {
        const { id, name: subagentName, title, startedAt, endedAt } = event.subagent;
        const row = { kind: 'running', id, title, subagentId: id, subagentName } as const;
        set(endedAt === null, startedAt, { ...row, expiresAt: null });
      } else if (event.type === 'session.ended') {
        open.clear();
        version += 1;
      }
    },
    async write() {
      while (written !== version) {
        writing ??= writeRows().finally(() => (writing = null));
        await writing;
      }
    },
  };
}
