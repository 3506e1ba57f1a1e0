// All subagents of one scope as a forest: who belongs to whom, who sees whom.
//
// Owns:     the records, and the order in which they came.
// Does not: start, stop or wait for anybody, or decide what is forgotten when.
//
// Invariants
//   FAMILY-1. A subagent sees itself, its descendants and its workstream; the lead agent and a
//       program see all. What one does not see is as if it were not there.
//   FAMILY-2. Whom a record is below is known as long as the record: it does not need those above.

import type { Subagent } from '../subagent/subagent.ts';
import type { SubagentBirth } from '../subagent/subagent-birth.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { ScopePorts } from './scope-ports.ts';
import type {
  PendingInput,
  ProgressNote,
  Requester,
  SpawnRequest,
} from '../contracts/service-types.ts';
import type { SubagentTask } from '../contracts/task.ts';

/** What it asks of the agent that gave it the task. */
export interface OpenRequest extends PendingInput {
  readonly stopClock: () => void;
  /** The parent has read it: in a report, or as a message. */
  isTold: boolean;
  /** A handler of the program has it: it is not for those who wait. */
  readonly isHandled: boolean;
}

/** What of an open request outlives the process. */
export type RequestRest = Pick<OpenRequest, 'requestId' | 'askedAt' | 'isTold'>;

/** Those that are not known any more, and worked for the same. */
export interface Gone {
  /** Whom they worked for; null: the lead agent or the program. */
  readonly parentId: string | null;
  readonly agents: number;
  readonly tokens: number;
  readonly steps: number;
}

/** What is fixed about one subagent when it is admitted. */
export interface Place {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  /** Those above it, the uppermost first; the last one is its parent. */
  readonly lineage: readonly string[];
  /** How deep it and those below it may be. */
  readonly maxDepth: number;
  /** Tools that neither it nor anybody below it gets. */
  readonly denied: ReadonlySet<string>;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  readonly idempotencyKey: string | null;
  /** What the user had said that led to it, or to those above it; null: nobody asked. */
  readonly request: string | null;
  /** Who that was, where somebody vouched for it. */
  readonly requestedBy: string | null;
  /** Whom it, and those below it, work for. */
  readonly ports: ScopePorts;
  readonly startedAt: number;
}

const nothingSaid: readonly ProgressNote[] = [];
const nobody = { agents: 0, tokens: 0, steps: 0 };

export class SubagentRecord {
  readonly place: Place;
  /** Null: it never had any. Most have none, and a set is not for nothing. */
  children: Set<string> | null = null;
  /** Null once it has ended: a record is all that is kept. */
  subagent: Subagent | null;
  request: OpenRequest | null = null;
  progress: readonly ProgressNote[] = nothingSaid;
  /** The latest note, unless one of its tools has said something since. */
  said: string | null = null;
  /** What the journal has of its admission. */
  readonly birth: SubagentBirth;
  /** What it had asked in a process that is gone, until it is put again. */
  asked: RequestRest | null = null;
  /** The conversation that it goes on from, until it has it. */
  opening: SpawnRequest['messages'];
  lastActiveAt: number;
  isHung = false;
  outcome: Outcome | null = null;
  endedAt: number | null = null;
  /** The model step that it was in when it ended. */
  lastStep = 0;
  /** When its result reached whom it was for, or nobody was left for it. */
  deliveredAt: number | null = null;

  constructor(place: Place, subagent: Subagent, birth: SubagentBirth) {
    this.place = place;
    this.subagent = subagent;
    this.birth = birth;
    this.opening = birth.messages ?? undefined;
    this.lastActiveAt = place.startedAt;
  }

  get id(): string {
    return this.place.id;
  }

  get parentId(): string | null {
    return this.place.lineage.at(-1) ?? null;
  }

  get depth(): number {
    return this.place.lineage.length + 1;
  }

  get isLive(): boolean {
    return this.subagent !== null;
  }

  /** Null (the lead agent, a program) is above everybody. */
  isBelow(requesterId: string | null): boolean {
    return requesterId === null || this.place.lineage.includes(requesterId);
  }
}

export class Family {
  readonly #records = new Map<string, SubagentRecord>();
  readonly #byKey = new Map<string, SubagentRecord>();
  readonly #gone = new Map<string | null, Gone>();
  #liveCount = 0;

  get liveCount(): number {
    return this.#liveCount;
  }

  /** What those were, and used, that were forgotten. */
  get gone(): readonly Gone[] {
    return [...this.#gone.values()];
  }

  /** They were forgotten, by this process or another one. */
  remember(gone: Gone): void {
    const { parentId } = gone;
    const { agents, tokens, steps } = this.#gone.get(parentId) ?? nobody;
    this.#gone.set(parentId, {
      parentId,
      agents: agents + gone.agents,
      tokens: tokens + gone.tokens,
      steps: steps + gone.steps,
    });
  }

  /** Oldest first. */
  get all(): readonly SubagentRecord[] {
    return [...this.#records.values()];
  }

  get live(): readonly SubagentRecord[] {
    return this.all.filter(({ isLive }) => isLive);
  }

  add(record: SubagentRecord): void {
    const { id, parentId, place } = record;
    const { idempotencyKey } = place;
    this.#records.set(id, record);
    this.#liveCount += 1;
    if (idempotencyKey !== null) this.#byKey.set(idempotencyKey, record);
    const parent = parentId === null ? undefined : this.get(parentId);
    if (parent) (parent.children ??= new Set()).add(id);
  }

  get(id: string): SubagentRecord | undefined {
    return this.#records.get(id);
  }

  /** The one whose request had this key. */
  withKey(key: string | undefined): SubagentRecord | undefined {
    return key === undefined ? undefined : this.#byKey.get(key);
  }

  /** The one that works, or worked, for this call of the lead agent. */
  ofCall(callId: string): SubagentRecord | undefined {
    // Looked for when a call is cancelled, which is seldom: an index would cost each of them.
    for (const record of this.#records.values())
      if (record.place.callId === callId && record.parentId === null) return record;
    return undefined;
  }

  /** Undefined also for one that the requester does not see. */
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

  /** It has ended: what it was made of is let go. */
  ended(record: SubagentRecord, outcome: Outcome, at: number): void {
    record.lastStep = record.subagent?.step ?? 0;
    record.subagent = null;
    record.opening = undefined;
    record.isHung = false;
    record.outcome = outcome;
    record.endedAt = at;
    this.#liveCount -= 1;
  }

  forget(record: SubagentRecord): void {
    const { id, parentId, place, outcome, lastStep } = record;
    const { idempotencyKey } = place;
    if (!this.#records.delete(id)) return;
    const tokens = outcome?.usage.totalTokens ?? 0;
    this.remember({ parentId, agents: 1, tokens, steps: lastStep });
    // Whoever was below it counts for those above it.
    const below = this.#gone.get(id);
    if (below && this.#gone.delete(id)) this.remember({ ...below, parentId });
    if (idempotencyKey !== null) this.#byKey.delete(idempotencyKey);
    if (parentId !== null) this.get(parentId)?.children?.delete(id);
  }

  #sees(requesterId: string | null, record: SubagentRecord): boolean {
    if (record.isBelow(requesterId) || record.id === requesterId) return true;
    const { workstreamId } = record.place;
    if (workstreamId === null || requesterId === null) return false;
    return this.#records.get(requesterId)?.place.workstreamId === workstreamId;
  }
}
