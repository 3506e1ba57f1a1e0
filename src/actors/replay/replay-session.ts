// Replays a session entry by entry, and shows how its machines react to each one, without the app, models, tools, keys
// or a network. The entries are folded by the same units and records as in a live session.
//
// Owns:     the assignment of entries to units, the successive sessions of one scope, and the views of its units.
// Does not: execute effects, call models or tools, print, or compare.
//
// Invariants
//   REPLAY-SESSION-1. The same entries lead to the same steps, in any process.
//   REPLAY-SESSION-2. The replay holds no more data than the session would, plus the views of ended subagents.
//   REPLAY-SESSION-3. A replay that continues from a checkpoint takes the same steps as a replay from the first entry.
//   REPLAYED-SESSION-1. The replay depends only on the entries, which contain the app's input.
//   REPLAYED-SESSION-2. An actor that has ended is removed after the entry that ended it; a live session removes it
//       when it executes the effects.

import { z } from 'zod';
import {
  floorOf,
  type BatchSnapshot,
  type QuestionSnapshot,
  type ServiceWork,
  type SubagentSnapshot,
  type ClientCallSnapshot,
  type ReachSnapshot,
  type ScheduleSnapshot,
  type ToolCallSnapshot,
  type WaitingState,
  type WorkOf,
} from '../../machines/index.ts';
import type { Waiting } from '../../machines/outbox-setup.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError, OffstageError, isA, messageOf } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import { raisedLimits } from '../contracts/config.ts';
import type { AnsweredQuestion } from '../contracts/records.ts';
import type { AnswerReceipt } from '../contracts/session-views.ts';
import type { ConversationItem } from '../conversation/items.ts';
import { journalCut } from '../ports/journal-error.ts';
import { standsForAll, type JournalEntry } from '../ports/journal.ts';
import { misshapen } from '../runtime/event-shapes.ts';
import { isQuarantine } from '../runtime/quarantine.ts';
import { isUnreadable, unreadable } from '../runtime/upcasters.ts';
import {
  CONTINUES,
  SNAPSHOT,
  SNAPSHOT_FORMS,
  foldSessionEvent,
  forgetWhatIsOver,
  snapshotIn,
} from '../session/lifecycle/session-journal.ts';
import { fateOfAnswer } from '../session/questions/user-words.ts';
import { lastingViews, questionView } from '../session/state/projection.ts';
import { SessionRecords } from '../session/state/session-records.ts';
import {
  SESSION_SHAPES,
  SESSION_VERSION,
  inputsIn,
  isOpening,
  openedWith,
  type SessionInputs,
} from '../session/unit/session-entries.ts';
import { SessionUnit, SNAPSHOTS } from '../session/unit/session-unit.ts';
import { SUBAGENT_SHAPES, SPAWNED } from '../subagent/subagent-events.ts';
import { treeSnapshotIn } from '../subagents/service-ledger.ts';
import { SERVICE_SHAPES, servicePath } from '../services/service.ts';
import type { RecordSnapshot } from '../subagents/subagent-registry.ts';
import { nothingFollows, replayHost, takenEntry, type TakenEntry } from './entry-by-entry.ts';
import { ReplayedService, type KeptService } from './replayed-service.ts';
import { ReplayedSubagent, type KnownSubagent } from './replayed-subagent.ts';
import {
  Facts,
  emptySession,
  itemFact,
  serviceFacts,
  sessionFacts,
  subagentFact,
  type Changes,
  type ReplayDelivery,
  type ReplayItem,
  type ReplaySubagent,
  type ReplayView,
} from './replay-view.ts';

/** The actor that a program's service uses to record that the program received a result. */
const OF_PROGRAM = 'service';

/** One journal entry of a replay, and its effect on the session. */
export interface ReplayStep {
  /** The number of the entry, counted from 1 across the whole replay. */
  readonly number: number;
  /** The entry that led to this state. */
  readonly entry: JournalEntry;
  /** Whether this version of Offstage would accept the entry. The version that wrote the entry accepted it. */
  readonly isAccepted: boolean;
  /** Why the entry is not folded; null if it is folded. Every process skips a quarantined entry. */
  readonly setAside: string | null;
  /** The changed facts by name, such as `question sub_1:1` or `connection`, with their new values. */
  readonly changes: Changes;
  /** The whole session after this entry. Computed on access, so read it before the next step. */
  readonly view: ReplayView;
  /**
   * The machines' states after this entry, for `whyWaiting`; null before the session starts. Computed on access, so
   * read it before the next step.
   */
  readonly machines: WaitingState | null;
}

const entriesSchema = z.custom<Iterable<JournalEntry>>(
  (value) => typeof (value as Partial<Iterable<unknown>> | null)?.[Symbol.iterator] === 'function',
  'expected the entries of a scope',
);

/**
 * Folds the entries of one scope, one per step: `journal.read({ scope })`, from the first entry on.
 *
 * @throws {ConfigurationError} `INVALID_OPTION` if the entries come from several scopes.
 * @throws {OffstageError} at the step where the replay cannot continue: `JOURNAL_CUT`, `JOURNAL_GAP`, `JOURNAL_VERSION` for
 *   entries of another version, `REPLAY_FAILED`.
 */
export function* replaySession(entries: Iterable<JournalEntry>): Generator<ReplayStep, void> {
  check('replaySession', entriesSchema, entries);
  const all = listed(entries);
  const other = all.findIndex((entry) => !isEntry(entry));
  if (other >= 0)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `replaySession: expected the entries of a scope, got ${shown(all[other])} among them`,
    );
  const replay = new Replay(quarantineReasons(all));
  for (const entry of all) yield replay.take(entry);
}

/**
 * Lists the entries. A value that cannot be iterated, such as a transferred typed array, throws only when iteration starts.
 */
function listed(entries: Iterable<JournalEntry>): readonly JournalEntry[] {
  try {
    return [...entries];
  } catch (cause) {
    throw new ConfigurationError(
      'INVALID_OPTION',
      `replaySession: the entries cannot be read: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function isEntry(entry: JournalEntry | null | undefined): boolean {
  try {
    return typeof entry?.event?.type === 'string';
  } catch {
    return false;
  }
}

/** Returns whether a replay may start with this entry, without the earlier entries. */
export const canBegin = (entry: JournalEntry): boolean => isOpening(entry) || standsForAll(entry);

/** Returns the reason for each quarantine, by the unit and the number of the quarantined entry. */
export function quarantineReasons(entries: readonly JournalEntry[]): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  for (const { unit, event } of entries)
    if (isQuarantine(event)) reasons.set(positionOf(unit, event.seq), event.reason);
  return reasons;
}

const positionOf = (unit: string, seq: number): string => `${seq} ${unit}`;

interface Taken {
  readonly isAccepted: boolean;
  readonly setAside: string | null;
  readonly changes: Changes;
}

/** The state of a replay between two entries. */
export interface ReplayCheckpoint {
  /** The number of entries so far. */
  readonly number: number;
  /** JSON of `SessionCheckpoint`. */
  readonly session: string;
  readonly unknown: readonly string[];
  /** Each subagent, stored as JSON if it is live and as a view if it has ended. */
  readonly subagents: readonly (readonly [id: string, kept: string | ReplaySubagent])[];
  readonly services: readonly (readonly [name: string, kept: KeptService])[];
}

/** The session, as an entry that a replay can continue from. */
interface SessionCheckpoint {
  readonly entry: JournalEntry;
  readonly since: Since;
}

/** A replay that accepts entries one by one. */
export class Replay {
  readonly #facts = new Facts();
  /** The subagents. An ended subagent is stored only as a view. */
  readonly #subagents = new Map<string, ReplayedSubagent | ReplaySubagent>();
  readonly #services = new Map<string, ReplayedService>();
  #session: ReplayedSession | null = null;
  /** Subagents without a view, because their first entry cannot be read. */
  readonly #unknown = new Set<string>();
  readonly #quarantined: ReadonlyMap<string, string>;
  #scope: string | null = null;
  #number = 0;

  /** @param quarantined The reasons for the quarantines. */
  constructor(quarantined: ReadonlyMap<string, string>) {
    this.#quarantined = quarantined;
  }

  take(entry: JournalEntry): ReplayStep {
    this.#checkScope(entry);
    this.#number += 1;
    const number = this.#number;
    try {
      const { isAccepted, setAside, changes } = this.#taken(entry);
      const viewOf = (): ReplayView => this.#viewAt(entry.at);
      const machinesOf = (): WaitingState | null => this.#machinesAt(entry.at);
      return {
        number,
        entry,
        isAccepted,
        setAside,
        changes,
        get view() {
          return viewOf();
        },
        get machines() {
          return machinesOf();
        },
      };
    } catch (error) {
      if (isA(error, OffstageError)) throw error;
      const { event, actor, unit } = entry;
      throw new OffstageError(
        'REPLAY_FAILED',
        `Entry ${number} (\`${event.type}\` for ${actor} of ${unit}): ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  #taken(entry: JournalEntry): Taken {
    const { unit, scope, actor } = entry;
    const isOfService = unit.startsWith(`${scope}/`) || (unit === scope && actor === OF_PROGRAM);
    if (isOfService) {
      // The entries before the snapshot are missing.
      const known = this.#number === 1 ? treeSnapshotIn(entry)?.subagents : undefined;
      const isAccepted = this.#takeOfService(entry);
      const changes = { ...this.#know(scope, known), ...this.#serviceChanges() };
      return { isAccepted, setAside: null, changes };
    }
    if (unit === scope) return this.#ofSession(entry);
    return this.#ofSubagent(entry);
  }

  /** A service is not changed by an entry that it cannot fold or that is quarantined. */
  #takeOfService(entry: JournalEntry): boolean {
    const { unit, scope, event } = entry;
    const prefix = servicePath(scope, '');
    if (!unit.startsWith(prefix) || isQuarantine(event)) return true;
    if (this.#reasonOf(entry) !== null || misshapen(event, SERVICE_SHAPES)) return false;
    const name = unit.slice(prefix.length);
    const service = this.#services.get(name) ?? new ReplayedService();
    this.#services.set(name, service);
    return service.take(entry);
  }

  #serviceChanges(): Changes {
    return this.#facts.become('services', serviceFacts(this.#services));
  }

  #ofSession(entry: JournalEntry): Taken {
    let known: Changes = {};
    const isNew = !this.#session || isOpening(entry);
    if (isOpening(entry)) {
      // A new session with the same id starts without the previous session's state.
      this.#facts.clear();
      this.#subagents.clear();
      this.#services.clear();
      this.#session = new ReplayedSession(entry);
    } else if (!this.#session) {
      // The entries before the snapshot are missing.
      this.#session = new ReplayedSession(entry);
      const { delegation, services = {} } = snapshotIn(entry) ?? {};
      for (const [name, rest] of Object.entries(services))
        this.#services.set(name, new ReplayedService(rest));
      known = { ...this.#know(entry.scope, delegation?.subagents), ...this.#serviceChanges() };
    }
    const session = this.#session;
    this.#facts.forget('session', session.forgetWhatIsOver());
    // A snapshot contains the conversation.
    const before = isNew ? null : session.transcript;
    const { isAccepted, setAside } = session.take(entry, this.#reasonOf(entry));
    const { view, batches, transcript } = session;
    const changes = { ...known, ...this.#facts.become('session', sessionFacts(view, batches)) };
    if (transcript === before) return { isAccepted, setAside, changes };
    const said = this.#facts.become('transcript', transcript.map(itemFact));
    return { isAccepted, setAside, changes: { ...changes, ...said } };
  }

  /** Restores the subagents in a snapshot. Returns their facts. */
  #know(scope: string, records: readonly RecordSnapshot[] = []): Changes {
    const changes: Record<string, string | null> = {};
    for (const record of records) {
      const subagent = ReplayedSubagent.known(scope, record);
      this.#subagents.set(record.id, subagent);
      const seen = subagent instanceof ReplayedSubagent ? subagent.view : subagent;
      Object.assign(changes, this.#facts.become(record.id, [subagentFact(seen)]));
    }
    return changes;
  }

  #ofSubagent(entry: JournalEntry): Taken {
    const { unit: id } = entry;
    const unknown = this.#isUnknown(entry);
    if (unknown !== null) return { isAccepted: false, setAside: unknown, changes: {} };
    let subagent = this.#subagents.get(id);
    if (!subagent) this.#subagents.set(id, (subagent = ReplayedSubagent.spawned(entry)));
    if (!(subagent instanceof ReplayedSubagent))
      return { isAccepted: false, setAside: null, changes: {} };
    const { isAccepted, setAside } = subagent.fold(entry, this.#reasonOf(entry));
    const { view } = subagent;
    if (view.outcome) this.#subagents.set(id, view);
    return { isAccepted, setAside, changes: this.#facts.become(id, [subagentFact(view)]) };
  }

  #isUnknown({ unit: id, seq, event }: JournalEntry): string | null {
    if (this.#unknown.has(id)) return 'the first entry of its subagent cannot be read';
    if (this.#subagents.has(id) || seq > 1) return null;
    const reason =
      event.type === SPAWNED
        ? misshapen(event, SUBAGENT_SHAPES)
        : `expected \`${SPAWNED}\` first, got \`${event.type}\``;
    if (reason !== null) this.#unknown.add(id);
    return reason;
  }

  #reasonOf({ unit, seq }: JournalEntry): string | null {
    return this.#quarantined.get(positionOf(unit, seq)) ?? null;
  }

  #viewAt(at: number): ReplayView {
    const subagents = [...this.#subagents.values()].map((subagent) =>
      subagent instanceof ReplayedSubagent ? subagent.view : subagent,
    );
    return { at, ...(this.#session?.view ?? emptySession), subagents };
  }

  #machinesAt(at: number): WaitingState | null {
    if (!this.#session && this.#subagents.size === 0) return null;
    const machines = this.#session?.machines ?? NO_SESSION;
    const subagents = new Map<string, SubagentSnapshot>();
    const work = new Map<string, WorkOf>();
    const answerableBy = new Map<string, readonly string[]>();
    for (const [id, subagent] of this.#subagents) {
      if (!(subagent instanceof ReplayedSubagent) || subagent.view.outcome) continue;
      subagents.set(id, subagent.snapshot);
      work.set(id, subagent.work);
      const { asking } = subagent;
      if (asking) answerableBy.set(...asking);
    }
    for (const [requestId, by] of machines.answerableBy ?? []) answerableBy.set(requestId, by);
    return { at, ...machines, answerableBy, subagents, work, services: this.#servicesAt() };
  }

  #servicesAt(): ReadonlyMap<string, ServiceWork> {
    const workers = new Map<string, string>();
    for (const [id, subagent] of this.#services.size > 0 ? this.#subagents : [])
      if (subagent instanceof ReplayedSubagent && subagent.eventId !== null)
        workers.set(subagent.eventId, id);
    return new Map(
      [...this.#services].flatMap(([name, { snapshot, sources }]) => {
        if (!snapshot) return [];
        const state = snapshot.status === 'active' ? snapshot : null;
        const worker = workers.get(snapshot.context.current?.eventId ?? '') ?? null;
        return [[name, { state, worker, sources }] as const];
      }),
    );
  }

  /**
   * Returns the state before the next entry, from which `from` continues; null if there is no session. The JSON of an
   * unchanged subagent is reused from the previous checkpoint.
   */
  toCheckpoint(): ReplayCheckpoint | null {
    const session = this.#session;
    if (!session) return null;
    return {
      number: this.#number,
      session: session.toCheckpoint(),
      unknown: [...this.#unknown],
      subagents: [...this.#subagents].map(([id, subagent]) => [
        id,
        subagent instanceof ReplayedSubagent ? subagent.toText() : subagent,
      ]),
      services: [...this.#services].flatMap(([name, { kept }]) => (kept ? [[name, kept]] : [])),
    };
  }

  /** Continues from a checkpoint (REPLAY-SESSION-3). */
  static from(
    { number, session, unknown, subagents, services }: ReplayCheckpoint,
    quarantined: ReadonlyMap<string, string>,
  ): Replay {
    const replay = new Replay(quarantined);
    const { entry, since } = JSON.parse(session) as SessionCheckpoint;
    const { scope } = entry;
    replay.#scope = scope;
    replay.#number = number;
    const restored = new ReplayedSession(entry, since);
    replay.#session = restored;
    restored.take(entry, null);
    const { view, batches, transcript } = restored;
    replay.#facts.become('session', sessionFacts(view, batches));
    replay.#facts.become('transcript', transcript.map(itemFact));
    for (const id of unknown) replay.#unknown.add(id);
    for (const [id, kept] of subagents) {
      const subagent =
        typeof kept === 'string'
          ? ReplayedSubagent.known(scope, JSON.parse(kept) as KnownSubagent)
          : kept;
      replay.#subagents.set(id, subagent);
      const seen = subagent instanceof ReplayedSubagent ? subagent.view : subagent;
      replay.#facts.become(id, [subagentFact(seen)]);
    }
    for (const [name, kept] of services) replay.#services.set(name, new ReplayedService(kept));
    replay.#serviceChanges();
    return replay;
  }

  /** Returns the receipt that an answer would receive now; null if there is no session. Changes nothing. */
  receiptOf(given: GivenNow): AnswerReceipt | null {
    return this.#session?.receiptOf(given) ?? null;
  }

  /** The latest questions that have been answered. */
  get answered(): ReplayView['questions'] {
    return this.#session?.answered ?? [];
  }

  /** Returns the ids of the messages that a live subagent has not read; null if it has ended or is unknown. */
  unreadOf(subagentId: string): readonly string[] | null {
    const subagent = this.#subagents.get(subagentId);
    if (!(subagent instanceof ReplayedSubagent) || subagent.view.outcome) return null;
    return subagent.snapshot.context.unread.map(({ messageId }) => messageId);
  }

  /**
   * Returns the messages that a subagent's model will read next or, for an ended subagent, the messages that the model
   * had read and written; null if the subagent is unknown. `entries`: the entries so far, from which an ended subagent
   * is folded again.
   */
  messagesOf(
    subagentId: string,
    entries: readonly JournalEntry[],
  ): ReplayedSubagent['messages'] | null {
    const subagent = this.#subagents.get(subagentId);
    if (subagent instanceof ReplayedSubagent && !subagent.view.outcome) return subagent.messages;
    const [first] = entries;
    if (!subagent || !first) return null;
    const { subagents = [] } = snapshotIn(first)?.delegation ?? treeSnapshotIn(first) ?? {};
    return ReplayedSubagent.messagesIn(
      entries.filter(({ unit }) => unit === subagentId),
      subagents.find(({ id }) => id === subagentId) ?? null,
      (entry) => this.#reasonOf(entry),
    );
  }

  #checkScope({ scope }: JournalEntry): void {
    this.#scope ??= scope;
    if (scope !== this.#scope)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `Expected the entries of one scope, got ${this.#scope} and ${scope}`,
      );
  }
}

type GivenNow = Parameters<typeof fateOfAnswer>[2];

/** The default inputs for a session whose opening entry cannot be read. */
const NOTHING_KNOWN: SessionInputs = {
  session: { maxReconnects: 5, settleTimeoutMs: 5000, closeGraceMs: 5000, detachGraceMs: null },
  outbox: {
    capacity: 200,
    quietMs: 300,
    offerTimeoutMs: 15_000,
    playTimeoutMs: 120_000,
    maxAttempts: 3,
  },
  canInterrupt: true,
};

/** The machines of a program, which has no session. */
const NO_SESSION: Omit<WaitingState, 'at' | 'subagents'> = {
  session: null,
  interaction: null,
  outbox: null,
  questions: new Map(),
};

type Since = Partial<Record<'user' | 'model' | 'playout' | 'client', number>>;

class ReplayedSession {
  readonly #unit: SessionUnit;
  readonly #scope: string;
  #since: Since;
  #isAsleep = false;
  readonly #records: SessionRecords;
  /** Cached, because an entry leaves most items of a conversation unchanged. */
  readonly #shown = new WeakMap<ConversationItem, ReplayItem>();
  #transcript: { of: readonly ConversationItem[]; items: readonly ReplayItem[] } = {
    of: [],
    items: [],
  };
  /** The approvals that ended with the latest entry. */
  #ended: readonly AnsweredQuestion[] = [];

  /**
   * @param first The opening entry, or a snapshot to continue from.
   * @throws {JournalError} `JOURNAL_CUT` if `first` is neither; `JOURNAL_VERSION` if this version cannot read the snapshot.
   */
  constructor(first: JournalEntry, since: Since = {}) {
    this.#since = since;
    this.#scope = first.scope;
    const isSnapshot = first.event.type === SNAPSHOT;
    const snapshot = misshapen(first.event, SESSION_SHAPES) ? null : snapshotIn(first);
    const inputs =
      snapshot?.inputs ??
      inputsIn([first]) ??
      (first.seq === 1 && !isSnapshot ? NOTHING_KNOWN : null);
    if (isUnreadable(first, SNAPSHOT_FORMS)) throw unreadable(first, SNAPSHOT_FORMS);
    if (!inputs) throw journalCut(first);
    const { agentName = '', limits, promptStyle } = inputs.books ?? {};
    const host = replayHost(first.at);
    this.#records = new SessionRecords(agentName, limits, promptStyle);
    this.#unit = new SessionUnit(
      host,
      { id: first.unit, ...inputs },
      {
        ...nothingFollows,
        draft: this.#records.draft,
        fold: (received) => foldSessionEvent(this.#records, this.#unit, received),
      },
    );
    this.#unit.unit.setSequence(first.seq - 1);
    if (!snapshot) {
      this.#unit.begin();
      return;
    }
    this.#unit.restore(snapshot.unit, inputs, first.seq - 1);
    this.#records.restore(snapshot.books);
  }

  /** Folds the entry. `reason`: why a later entry quarantines this entry; null if none does. */
  take(entry: JournalEntry, reason: string | null): TakenEntry {
    const { lasting } = this.#records;
    const taken = takenEntry(this.#unit.unit, entry, reason);
    this.#ended = lasting.filter((one) => !this.#records.lasting.includes(one));
    this.#noteSince(entry.at);
    const { type, isAsleep } = entry.event as {
      readonly type: string;
      readonly isAsleep?: unknown;
    };
    if (type === SNAPSHOT) this.#isAsleep = isAsleep === true;
    else if (CONTINUES.has(type)) this.#isAsleep = false;
    return taken;
  }

  /** Returns a `SessionCheckpoint` as JSON: a snapshot that replaces the latest entry, in the form that a session writes. */
  toCheckpoint(): string {
    const { unit } = this.#unit;
    const event = {
      type: SNAPSHOT,
      versions: SNAPSHOT_FORMS.versions,
      inputs: openedWith(this.#unit.inputs).inputs,
      unit: this.#unit.toSnapshot(),
      books: this.#records.toSnapshot(),
      services: {},
      delegation: { subagents: [], gone: [], histories: {} },
      isAsleep: this.#isAsleep,
    };
    const entry: JournalEntry = {
      scope: this.#scope,
      unit: unit.id,
      seq: unit.seq,
      at: 0,
      actor: SNAPSHOTS,
      definitionVersion: SESSION_VERSION,
      event,
    };
    return JSON.stringify({ entry, since: this.#since } satisfies SessionCheckpoint);
  }

  /** Records when each participant (the user, the model, the playout, the client) entered its current state. */
  #noteSince(at: number): void {
    const { user, model, playout, client } = this.#unit.session.snapshot.value;
    const since = (party: keyof Since, isBusy: boolean): Since =>
      isBusy ? { [party]: this.#since[party] ?? at } : {};
    this.#since = {
      ...since('user', user === 'speaking'),
      ...since('model', model === 'generating'),
      ...since('playout', playout === 'playing'),
      ...since('client', client !== 'attached'),
    };
  }

  receiptOf(given: GivenNow): AnswerReceipt {
    return fateOfAnswer(this.#records, this.#unit, given).receipt;
  }

  get answered(): ReplayView['questions'] {
    return lastingViews(this.#records.answered);
  }

  get machines(): Omit<WaitingState, 'at' | 'subagents'> {
    const { session, interaction, outbox, questions, calls, clientCalls, batches } = this.#unit;
    const answerableBy = new Map<string, readonly string[]>();
    for (const { requestId, answerableBy: by } of this.#records.questions.values())
      if (by) answerableBy.set(requestId, by);
    const { runSlots } = this.#unit.inputs.books ?? {};
    return {
      session: session.snapshot,
      interaction,
      outbox: outbox.snapshot,
      questions: liveIn<QuestionSnapshot>(questions),
      calls: liveIn<ToolCallSnapshot>(calls),
      clientCalls: liveIn<ClientCallSnapshot>(clientCalls),
      schedules: liveIn<ScheduleSnapshot>(this.#unit.schedules),
      ways: liveIn<ReachSnapshot>(this.#unit.ways),
      batches: liveIn<BatchSnapshot>(batches),
      answerableBy,
      isAsleep: this.#isAsleep,
      ...(this.#records.trouble && { lead: this.#records.trouble }),
      since: this.#since,
      ...(runSlots !== undefined && { runSlots }),
    };
  }

  get view(): Omit<ReplayView, 'at' | 'subagents'> {
    const { session } = this.#unit;
    const { budget } = this.#unit.inputs.books ?? {};
    const snapshot = session.snapshot;
    return {
      connection: snapshot.value.connection,
      client: snapshot.matches({ client: 'attached' }) ? 'attached' : 'detached',
      floor: floorOf(snapshot),
      agent: this.#records.agentName,
      owner: this.#unit.owner,
      questions: this.#questions,
      calls: this.#calls,
      outbox: this.#outbox,
      transcript: this.transcript,
      leadUsage: this.#records.usage,
      leadTrouble: this.#records.trouble,
      ...(budget && { budget: raisedLimits(budget, this.#records.facts.raised) }),
    };
  }

  /**
   * Removes the actors that have ended (REPLAYED-SESSION-2); call it before the next entry. Returns the names of their
   * facts, such as `question sub_1:1`.
   */
  forgetWhatIsOver(): readonly string[] {
    const ended = this.#ended.map(({ requestId }) => `question ${requestId}`);
    return [...ended, ...forgetWhatIsOver(this.#records, this.#unit)];
  }

  /** The transcript. The array stays the same object until an item changes. */
  get transcript(): ReplayView['transcript'] {
    const { items: of } = this.#records.conversation;
    if (this.#transcript.of !== of) {
      const items = of.map((item) => {
        const known = this.#shown.get(item) ?? itemOf(item);
        this.#shown.set(item, known);
        return known;
      });
      this.#transcript = { of, items };
    }
    return this.#transcript.items;
  }

  /** The open call batches with their states. */
  get batches(): readonly { readonly batchId: string; readonly state: string }[] {
    const { batches } = this.#unit;
    return batches.ids.map((batchId) => ({
      batchId,
      state: nameOf(batches.stateOf(batchId)?.value),
    }));
  }

  get #questions(): ReplayView['questions'] {
    const { questions, lasting } = this.#records;
    const open = [...questions.values()].flatMap((record) => {
      const state = this.#unit.questions.stateOf(record.requestId);
      return state ? [questionView(record, state)] : [];
    });
    const ended = this.#ended.map((question) => {
      const { lasts: _, ...answer } = question.answer;
      return { ...question, answer };
    });
    const others = [...lasting, ...ended].filter(({ requestId }) => !questions.has(requestId));
    return [...open, ...lastingViews(others)];
  }

  get #calls(): ReplayView['calls'] {
    return this.#unit.calls.ids.map((callId) => ({
      callId,
      name: this.#records.calls.get(callId)?.name ?? '',
      state: nameOf(this.#unit.calls.stateOf(callId)?.value),
      batchId: this.#unit.batchOf(callId),
    }));
  }

  get #outbox(): ReplayView['outbox'] {
    const snapshot = this.#unit.outbox.snapshot;
    const { current, pending, reserved } = snapshot.context;
    const isPlaying = snapshot.matches({ slot: { speaking: 'playing' } });
    return {
      current: current && this.#deliveryOf(current, isPlaying ? 'playing' : 'offered'),
      pending: pending.map((item) => this.#deliveryOf(item, item.resting ? 'resting' : 'pending')),
      reserved,
    };
  }

  #deliveryOf(
    { deliveryId, kind, priority, attempts }: Waiting,
    state: ReplayDelivery['state'],
  ): ReplayDelivery {
    const parts = this.#unit.batches.contextOf(deliveryId)?.parts ?? [deliveryId];
    const text = parts.map((id) => this.#records.delivery(id)?.text ?? '').join('\n');
    return { deliveryId, kind, priority, state, attempts, text };
  }
}

/** Returns a population's members that have not ended, by id. */
function liveIn<S extends { readonly value: unknown; readonly context: unknown }>(
  population: Pick<SessionUnit['questions'], 'ids' | 'stateOf'>,
): ReadonlyMap<string, Pick<S, 'value' | 'context'>> {
  const live = new Map<string, Pick<S, 'value' | 'context'>>();
  for (const id of population.ids) {
    const state = population.stateOf(id);
    if (state && !state.done) live.set(id, { value: state.value, context: state.context });
  }
  return live;
}

/** Returns a state value as text: `{ gathering: 'idle' }` becomes `gathering.idle`. */
function nameOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([state, within]) => `${state}.${nameOf(within)}`)
    .join(' ');
}

function itemOf(item: ConversationItem): ReplayItem {
  const { id, role, at } = item;
  const interrupted = 'interrupted' in item && item.interrupted === true;
  return { id, role, text: wordsOf(item), at, interrupted };
}

function wordsOf(item: ConversationItem): string {
  if (item.role === 'tool_call') return `${item.toolName} ${JSON.stringify(item.args)}`;
  if (item.role === 'transfer') return `${item.from} → ${item.to}`;
  if (item.role !== 'tool_result') return item.text;
  const { output, toolName } = item;
  return `${toolName}: ${output.type === 'value' ? JSON.stringify(output.value) : output.message}`;
}
