// The records of a scope's subagents: their tree, who can see them, and the views of each record.
//
// Owns:     the records in order of admission, the detection of hung subagents, and how long a result can be read after
//           its subagent has ended.
// Does not: start, stop or wait for a subagent, or run a timer (the host calls the sweep).
//
// Invariants
//   SUBAGENT-REGISTRY-1. A subagent sees itself, its descendants and its workstream. The lead agent and a program see
//       all subagents. A subagent that the requester cannot see is treated as nonexistent.
//   SUBAGENT-REGISTRY-2. A record lists its ancestors, because their records may already have been removed.
//   RETENTION-1. A result is kept until it is delivered, and for `stateRetentionMs` afterwards.
//   RETENTION-2. At most the last `MAX_DELIVERED` delivered results, with at most `MAX_DELIVERED_CHARS`, are kept. New
//       subagents are refused while `MAX_UNDELIVERED` results or `MAX_UNDELIVERED_CHARS` are undelivered. This limits
//       memory without dropping an undelivered result.
//   HEALTH-1. A subagent can be hung only while it is preparing or running, and not while it waits for a slot, an
//       answer or a child. `isHung` is separate from the state, and any activity resets it.
//   TREE-SNAPSHOT-1. A snapshot contains every known subagent in order of admission, so that a parent precedes its children.
//   TREE-SNAPSHOT-2. A snapshot contains the usage of forgotten subagents, grouped by nearest known ancestor, so that a
//       crash does not loosen a limit.

import { withoutUndefined } from '../../values/without-undefined.ts';
import type { ModelMessage } from 'ai';
import type { SubagentDefinition } from '../contracts/config.ts';
import { type Outcome } from '../contracts/outcome.ts';
import { addUsage, NO_USAGE, usageSince, type Usage } from '../contracts/usage.ts';
import type {
  PendingInput,
  ProgressNote,
  Requester,
  SpawnRequest,
  SubagentReport,
} from '../contracts/service-types.ts';
import type { SubagentState, SubagentView } from '../contracts/session-views.ts';
import type { SubagentTask } from '../contracts/task.ts';
import type { SessionLimits } from '../admission/limits.ts';
import type { Clock } from '../ports/environment.ts';
import type { SpawnedEvent } from '../subagent/subagent-events.ts';
import type { Subagent } from '../subagent/subagent.ts';
import type { SubagentUnitSnapshot } from '../subagent/subagent-unit.ts';
import type { ScopePorts } from './scope-ports.ts';

export const MAX_DELIVERED = 1000;
export const MAX_UNDELIVERED = 1000;
/** In UTF-16 code units of JSON. Both limits apply to each snapshot. A snapshot has at most 256 MB. */
export const MAX_DELIVERED_CHARS = 8_000_000;
export const MAX_UNDELIVERED_CHARS = 32_000_000;

/** A subagent's open request to its parent. */
export interface OpenRequest extends PendingInput {
  readonly stopClock: () => void;
  /** Whether the parent has read the request, in a report or as a message. */
  isTold: boolean;
  /** Whether a handler in the program answers the request. If so, the request does not end a wait. */
  readonly isHandled: boolean;
}

/** The part of an open request that is stored for the next process. */
type RequestSnapshot = Pick<OpenRequest, 'requestId' | 'askedAt' | 'isTold'>;

/** The totals of forgotten subagents, grouped by nearest known ancestor. */
interface ForgottenSubagents {
  /** The id of that ancestor, or null for the lead agent or the program. */
  readonly parentId: string | null;
  readonly agents: number;
  readonly tokens: number;
  readonly steps: number;
  /** Absent in snapshots from earlier versions. */
  readonly cost?: number;
  /** The whole usage. Absent in snapshots from earlier versions, which contain only `tokens` and `cost`. */
  readonly usage?: Usage;
}

/** The facts about one subagent that are fixed when it is admitted. */
export interface Admission {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  /** The title from the configuration, or null if there is none. */
  readonly title: string | null;
  /** The ancestors, starting with the topmost. The last one is the parent. */
  readonly lineage: readonly string[];
  /** The depth limit for the subagent and its descendants. */
  readonly maxDepth: number;
  /** Tools that neither the subagent nor any of its descendants may use. */
  readonly denied: ReadonlySet<string>;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  readonly idempotencyKey: string | null;
  /** The utterance that led to the subagent or an ancestor, or null if the user did not request the work. */
  readonly request: string | null;
  /** The identity of the speaker, if the app has verified it. */
  readonly requestedBy: string | null;
  /** The ports of the session or program that the subagent and its descendants work for. */
  readonly ports: ScopePorts;
  readonly startedAt: number;
}

/** A subagent whose end has been reported to its parent. */
export interface EndedSnapshot {
  readonly outcome: Outcome;
  /** When the subagent ended, in milliseconds since 1970. */
  readonly endedAt: number;
  readonly deliveredAt: number | null;
  readonly step: number;
}

/** A known subagent, live or ended. */
export interface RecordSnapshot {
  readonly id: string;
  /** When the subagent was admitted, in milliseconds since 1970. */
  readonly bornAt: number;
  readonly birth: SpawnedEvent;
  readonly rest: SubagentUnitSnapshot | EndedSnapshot;
  /** The open request to the parent. @defaultValue none */
  readonly asked?: RequestSnapshot;
  /**
   * When the result was read although the subagent was still live, in milliseconds since 1970. @defaultValue not read
   */
  readonly deliveredAt?: number;
}

export interface SubagentTreeSnapshot {
  readonly subagents: readonly RecordSnapshot[];
  readonly gone: readonly ForgottenSubagents[];
  /** The conversations of the session's instances, by name. */
  readonly histories: Readonly<Record<string, readonly ModelMessage[]>>;
  /** The total time that the scope has been in memory, in all processes together, in milliseconds. @defaultValue 0 */
  readonly awakeMs?: number;
}

const nothingSaid: readonly ProgressNote[] = [];
const nothingUsed = { agents: 0, tokens: 0, steps: 0, cost: 0, usage: NO_USAGE };

export class SubagentRecord {
  readonly admission: Admission;
  /** Null if the subagent has never had children. Most subagents never have any, and an empty set would use memory. */
  children: Set<string> | null = null;
  /** Null once the subagent has ended. */
  subagent: Subagent | null;
  request: OpenRequest | null = null;
  progress: readonly ProgressNote[] = nothingSaid;
  /** The latest progress note, or null if a tool has reported progress since then. */
  said: string | null = null;
  /** The journal entry that records the subagent's admission. */
  readonly spawned: SpawnedEvent;
  /** The open request from an earlier process, or null once it has been asked again. */
  asked: RequestSnapshot | null = null;
  /** The conversation that the subagent continues; cleared once the log contains it. */
  opening: SpawnRequest['messages'];
  lastActiveAt: number;
  isHung = false;
  outcome: Outcome | null = null;
  endedAt: number | null = null;
  /** The length of the record in a snapshot; set when the subagent has ended. */
  keptChars: number | null = null;
  /** The model step during which the subagent ended. */
  lastStep = 0;
  /** The part of the usage that is already included in the scope's total. */
  counted = NO_USAGE;
  /** When the result reached its recipient, or when its recipient was found to have ended. */
  deliveredAt: number | null = null;

  constructor(admission: Admission, subagent: Subagent, spawned: SpawnedEvent) {
    this.admission = admission;
    this.subagent = subagent;
    this.spawned = spawned;
    this.opening = spawned.messages ?? undefined;
    this.lastActiveAt = admission.startedAt;
  }

  get id(): string {
    return this.admission.id;
  }

  get parentId(): string | null {
    return this.admission.lineage.at(-1) ?? null;
  }

  get depth(): number {
    return this.admission.lineage.length + 1;
  }

  get isLive(): boolean {
    return this.subagent !== null;
  }

  /**
   * Returns whether the subagent is a descendant of the requester. Null stands for the lead agent or a program, so
   * every subagent is below it.
   */
  isBelow(requesterId: string | null): boolean {
    return requesterId === null || this.admission.lineage.includes(requesterId);
  }
}

type RegistryLimits = Pick<SessionLimits, 'stateRetentionMs' | 'inactivityTimeoutMs'>;

export class SubagentRegistry {
  readonly #asking = new Set<SubagentRecord>();
  /** The subagents with an open request, grouped by the agent that they ask. */
  readonly #askersOf = new Map<string | null, Set<SubagentRecord>>();
  readonly #clock: Clock;
  readonly #limits: RegistryLimits;
  readonly #records = new Map<string, SubagentRecord>();
  readonly #byKey = new Map<string, SubagentRecord>();
  readonly #forgotten = new Map<string | null, ForgottenSubagents>();
  /** The live subagents that may become hung. */
  readonly #watched = new Set<SubagentRecord>();
  /**
   * The ended subagents whose results have been delivered, ordered by the later of the two times.
   */
  readonly #delivered = new Map<SubagentRecord, number>();
  readonly #undelivered = new Set<SubagentRecord>();
  #deliveredChars = 0;
  #undeliveredChars = 0;
  #liveCount = 0;
  #usage = NO_USAGE;

  constructor(clock: Clock, limits: RegistryLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get liveCount(): number {
    return this.#liveCount;
  }

  /** Subagents with an open request, in the order in which they asked. */
  get asking(): ReadonlySet<SubagentRecord> {
    return this.#asking;
  }

  /**
   * The subagents that are asking this agent (null for the lead agent or the program), in the order in which they
   * asked.
   */
  askersOf(parentId: string | null): readonly SubagentRecord[] {
    return [...(this.#askersOf.get(parentId) ?? [])];
  }

  /** The subagents that are asking another subagent. */
  get askingOthers(): readonly SubagentRecord[] {
    return [...this.#askersOf].flatMap(([parentId, askers]) =>
      parentId === null ? [] : [...askers],
    );
  }

  /** Opens a request from a subagent to its parent. */
  asks(record: SubagentRecord, request: OpenRequest): void {
    const { parentId } = record;
    record.request = request;
    this.#asking.add(record);
    const askers = this.#askersOf.get(parentId) ?? new Set();
    this.#askersOf.set(parentId, askers.add(record));
  }

  /** Closes a subagent's open request. */
  asksNoMore(record: SubagentRecord): void {
    const { parentId } = record;
    record.request = null;
    this.#asking.delete(record);
    const askers = this.#askersOf.get(parentId);
    if (askers?.delete(record) && askers.size === 0) this.#askersOf.delete(parentId);
  }

  /** Adds the totals of subagents that this process or an earlier one has forgotten. */
  remember(gone: ForgottenSubagents): void {
    const isKnown = gone.parentId !== null && this.#records.has(gone.parentId);
    const parentId = isKnown ? gone.parentId : null;
    const before = this.#forgotten.get(parentId) ?? nothingUsed;
    const { agents, tokens, steps, cost = 0 } = before;
    this.#forgotten.set(parentId, {
      parentId,
      agents: agents + gone.agents,
      tokens: tokens + gone.tokens,
      steps: steps + gone.steps,
      cost: cost + (gone.cost ?? 0),
      usage: addUsage(usageOfForgotten(before), usageOfForgotten(gone)),
    });
  }

  /** The usage of all subagents, including forgotten ones. The object is replaced only when the usage changes. */
  get usage(): Usage {
    return this.#usage;
  }

  /** Adds the usage that a subagent has accumulated since it was last counted. */
  count(record: SubagentRecord): void {
    const usage = usageIn(record);
    if (usage.totalTokens === record.counted.totalTokens && usage.cost === record.counted.cost)
      return;
    this.#usage = addUsage(this.#usage, usageSince(usage, record.counted));
    record.counted = usage;
  }

  /** Adds the usage of restored subagents, and of those that an earlier process has forgotten. */
  countRestored(gone: readonly ForgottenSubagents[]): void {
    for (const record of this.#records.values()) this.count(record);
    for (const group of gone) this.#usage = addUsage(this.#usage, usageOfForgotten(group));
  }

  /** All records, oldest first. */
  get all(): readonly SubagentRecord[] {
    return [...this.#records.values()];
  }

  get live(): readonly SubagentRecord[] {
    const live: SubagentRecord[] = [];
    for (const record of this.#records.values()) if (record.isLive) live.push(record);
    return live;
  }

  add(record: SubagentRecord): void {
    const { id, parentId, admission } = record;
    const { idempotencyKey } = admission;
    this.#records.set(id, record);
    this.#liveCount += 1;
    if (idempotencyKey !== null) this.#byKey.set(idempotencyKey, record);
    const parent = parentId === null ? undefined : this.get(parentId);
    if (parent) (parent.children ??= new Set()).add(id);
    if (this.#inactivityTimeoutOf(record) > 0) this.#watched.add(record);
  }

  get(id: string): SubagentRecord | undefined {
    return this.#records.get(id);
  }

  /** Returns the record of the subagent whose request had this key. */
  withKey(key: string | undefined): SubagentRecord | undefined {
    return key === undefined ? undefined : this.#byKey.get(key);
  }

  /** Returns the record of the subagent that the lead agent's call started. */
  ofCall(callId: string): SubagentRecord | undefined {
    // Not indexed: this is needed only when a call is cancelled, and an index would use memory for each record.
    for (const record of this.#records.values())
      if (record.admission.callId === callId && record.parentId === null) return record;
    return undefined;
  }

  /** Returns a record, or undefined if it is unknown or the requester cannot see it. */
  seenBy({ subagentId }: Requester, id: string): SubagentRecord | undefined {
    const record = this.#records.get(id);
    return record && this.#sees(subagentId, record) ? record : undefined;
  }

  allSeenBy({ subagentId }: Requester): readonly SubagentRecord[] {
    return this.all.filter((record) => this.#sees(subagentId, record));
  }

  childrenOf(record: SubagentRecord): readonly SubagentRecord[] {
    return [...(record.children ?? [])].flatMap((id) => this.#records.get(id) ?? []);
  }

  /** Marks a subagent as ended, and releases its objects. */
  ended(record: SubagentRecord, outcome: Outcome, at: number): void {
    record.lastStep = record.subagent?.step ?? 0;
    record.subagent = null;
    record.opening = undefined;
    record.isHung = false;
    record.outcome = outcome;
    record.endedAt = at;
    this.#liveCount -= 1;
    this.#watched.delete(record);
  }

  /** Returns the report. If the reader is an ancestor of the subagent, the report then counts as delivered. */
  read(record: SubagentRecord, { subagentId }: Requester): SubagentReport {
    if (record.request && record.parentId === subagentId) record.request.isTold = true;
    const report = reportOf(record);
    if (!record.isLive && record.isBelow(subagentId)) this.delivered(record);
    return report;
  }

  /**
   * Records that the result has reached its recipient, and notifies the scope. The subagent may still be live.
   */
  delivered(record: SubagentRecord): void {
    const isNew = record.deliveredAt === null;
    this.markDelivered(record, this.#clock.now());
    const { id, parentId, admission } = record;
    if (isNew) admission.ports.tell({ type: 'delivered', id, parentId });
  }

  /**
   * Records that the result has reached its recipient, or that it has none. The subagent may still be live.
   */
  markDelivered(record: SubagentRecord, at: number): void {
    if (record.deliveredAt !== null) return;
    record.deliveredAt = at;
    if (record.isLive) return;
    if (this.#undelivered.delete(record)) this.#undeliveredChars -= charsOf(record);
    this.#retain(record, at);
  }

  /** Stores the result of a subagent that has ended, within the limits of RETENTION-1 and RETENTION-2. */
  keepResult(record: SubagentRecord, at: number): void {
    if (record.deliveredAt !== null) return this.#retain(record, at);
    if (!this.#undelivered.has(record)) this.#undeliveredChars += charsOf(record);
    this.#undelivered.add(record);
  }

  /** Whether new subagents are refused because there are too many undelivered results. */
  get isFull(): boolean {
    return (
      this.#undelivered.size >= MAX_UNDELIVERED || this.#undeliveredChars >= MAX_UNDELIVERED_CHARS
    );
  }

  /** Whether a sweep can change anything, because a live subagent may become hung or a result may be forgotten. */
  get needsSweep(): boolean {
    return this.#watched.size > 0 || this.#delivered.size > 0;
  }

  /** Records activity. Returns whether the subagent was marked as hung before. */
  active(record: SubagentRecord): boolean {
    const wasHung = record.isHung;
    record.lastActiveAt = this.#clock.now();
    record.isHung = false;
    return wasHung;
  }

  /** Marks hung subagents, and returns those that were not marked before. */
  markHung(): readonly SubagentRecord[] {
    const now = this.#clock.now();
    const found: SubagentRecord[] = [];
    for (const record of this.#watched) {
      const { state } = record.subagent ?? {};
      if (record.isHung || (state !== 'spawning' && state !== 'running')) continue;
      if (now - record.lastActiveAt < this.#inactivityTimeoutOf(record)) continue;
      record.isHung = true;
      found.push(record);
    }
    return found;
  }

  /** Forgets results whose retention time is over, and returns how many. */
  forgetDue(): number {
    const now = this.#clock.now();
    let count = 0;
    for (const [record, since] of this.#delivered) {
      if (now - since < this.#limits.stateRetentionMs) break;
      this.#forget(record);
      count += 1;
    }
    return count;
  }

  /** Returns the state of all subagents. None of them may be busy, because a snapshot does not contain mailboxes. */
  toSnapshot(): Pick<SubagentTreeSnapshot, 'subagents' | 'gone'> {
    return {
      subagents: this.all.flatMap((record) => recordSnapshot(record) ?? []),
      gone: [...this.#forgotten.values()],
    };
  }

  #retain(record: SubagentRecord, at: number): void {
    if (!this.#delivered.has(record)) this.#deliveredChars += charsOf(record);
    this.#delivered.set(record, at);
    if (this.#limits.stateRetentionMs === 0) return this.#forget(record);
    // The latest result is stored even if it is too long, because its reader may read it again.
    for (const [oldest] of this.#delivered) {
      const isRoom =
        this.#delivered.size <= MAX_DELIVERED && this.#deliveredChars <= MAX_DELIVERED_CHARS;
      if (isRoom || oldest === record) return;
      this.#forget(oldest);
    }
  }

  #forget(record: SubagentRecord): void {
    if (this.#delivered.delete(record)) this.#deliveredChars -= charsOf(record);
    const { id, parentId, admission, outcome, lastStep } = record;
    const { idempotencyKey } = admission;
    if (!this.#records.delete(id)) return;
    const usage = outcome?.usage ?? NO_USAGE;
    const { totalTokens: tokens, cost = 0 } = usage;
    // The parent may have ended and been forgotten already.
    const heir = admission.lineage.findLast((one) => this.#records.has(one)) ?? null;
    this.remember({ parentId: heir, agents: 1, tokens, steps: lastStep, cost, usage });
    // The usage of the parent's forgotten children is then assigned to the same ancestor.
    const below = this.#forgotten.get(id);
    if (below && this.#forgotten.delete(id)) this.remember({ ...below, parentId: heir });
    if (idempotencyKey !== null) this.#byKey.delete(idempotencyKey);
    if (parentId !== null) this.get(parentId)?.children?.delete(id);
  }

  #sees(requesterId: string | null, record: SubagentRecord): boolean {
    if (record.isBelow(requesterId) || record.id === requesterId) return true;
    const { workstreamId } = record.admission;
    if (workstreamId === null || requesterId === null) return false;
    return this.#records.get(requesterId)?.admission.workstreamId === workstreamId;
  }

  /** Returns the timeout that the author set, even if it is 0, or else the scope's timeout. */
  #inactivityTimeoutOf({ admission }: SubagentRecord): number {
    return admission.definition.source.inactivityTimeoutMs ?? this.#limits.inactivityTimeoutMs;
  }
}

export function reportOf(record: SubagentRecord): SubagentReport {
  const { id, admission, request, outcome, subagent } = record;
  const { summary, error, partial } = outcome ?? {};
  return {
    id,
    name: admission.definition.name,
    task: admission.task.description,
    toolName: admission.task.toolName,
    state: stateOf(record),
    step: subagent?.step ?? record.lastStep,
    hung: record.isHung,
    pendingRequest: request && pendingOf(request),
    progress: notesOf(record),
    depth: record.depth,
    parentId: record.parentId,
    callId: admission.callId,
    workstreamId: admission.workstreamId,
    startedAt: admission.startedAt,
    lastActiveAt: record.lastActiveAt,
    endedAt: record.endedAt,
    ...(outcome?.status === 'completed' ? { result: outcome.output } : {}),
    ...withoutUndefined({ summary, error, partial }),
    outcome,
  };
}

/** Returns the progress notes. The last note may be the current report of a tool. */
function notesOf({
  progress,
  subagent,
  lastActiveAt: at,
}: SubagentRecord): readonly ProgressNote[] {
  const update = subagent?.progress ?? null;
  if (update === null || update === progress.at(-1)?.update) return progress;
  return [...progress, { update, percent: null, at }];
}

/** Copies a request without its internal properties. */
export function pendingOf(request: OpenRequest): PendingInput {
  const { stopClock: _, isTold: __, isHandled: ___, ...pending } = request;
  return pending;
}

function usageIn({ outcome, subagent }: SubagentRecord): Usage {
  return outcome?.usage ?? subagent?.usage ?? NO_USAGE;
}

function usageOfForgotten({
  usage,
  tokens,
  cost = 0,
}: ForgottenSubagents | typeof nothingUsed): Usage {
  return usage ?? { ...NO_USAGE, totalTokens: tokens, ...(cost > 0 && { cost }) };
}

export function viewOf(record: SubagentRecord): SubagentView {
  const { id, admission, parentId, depth, subagent, outcome } = record;
  const { definition, task, title, callId, startedAt } = admission;
  return {
    id,
    name: definition.name,
    parentId,
    depth,
    // The call that a child works on belongs to its parent and not to the lead agent.
    callId: parentId === null ? callId : null,
    toolName: task.toolName,
    task: task.description,
    title: title ?? task.description,
    state: stateOf(record),
    hung: record.isHung,
    step: subagent?.step ?? record.lastStep,
    maxSteps: definition.maxSteps,
    startedAt,
    endedAt: record.endedAt,
    progress: subagent?.progress ?? record.said,
    usage: usageIn(record),
    outcome,
  };
}

function recordSnapshot(record: SubagentRecord): RecordSnapshot | null {
  const { id, spawned: birth, subagent, outcome, endedAt, deliveredAt, lastStep: step } = record;
  const { startedAt: bornAt } = record.admission;
  if (subagent) {
    const asked = askedBy(record);
    return {
      id,
      bornAt,
      birth,
      rest: subagent.toSnapshot(),
      ...(asked && { asked }),
      ...(deliveredAt !== null && { deliveredAt }),
    };
  }
  if (!outcome || endedAt === null) return null;
  return { id, bornAt, birth, rest: { outcome, endedAt, deliveredAt, step } };
}

function charsOf(record: SubagentRecord): number {
  return (record.keptChars ??= JSON.stringify(recordSnapshot(record)).length);
}

function askedBy({ request }: SubagentRecord): RequestSnapshot | null {
  if (!request) return null;
  const { requestId, askedAt, isTold } = request;
  return { requestId, askedAt, isTold };
}

/**
 * Returns the state: `ready` until the subagent starts to run. After the subagent has ended, this is the state in the
 * outcome, but `lost` and `timed_out` are shown as `failed`.
 */
function stateOf({ subagent, outcome }: SubagentRecord): SubagentState {
  // The end is shown only together with the outcome, which may take a moment to process.
  if (subagent) return isOver(subagent.state) ? 'running' : subagent.state;
  const { status } = outcome ?? { status: 'failed' };
  return status === 'completed' || status === 'cancelled' ? status : 'failed';
}

function isOver(state: SubagentState): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled';
}
