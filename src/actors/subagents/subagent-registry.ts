// All subagents of one scope as a forest: their parents, and their visibility.
//
// Owns:     the records, and the order in which they came.
// Does not: start, stop or wait for a subagent, or decide when a record is forgotten.
//
// Invariants
//   SUBAGENT-REGISTRY-1. A subagent sees itself, its descendants and its workstream; the lead agent and a program see
//       all. A subagent that the requester does not see is treated as nonexistent.
//   SUBAGENT-REGISTRY-2. A record knows its ancestors as long as it exists: it does not need their records.

import type { Subagent } from '../subagent/subagent.ts';
import type { SpawnedEvent } from '../subagent/spawned-event.ts';
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

/** The open request of a subagent to the agent that gave it the task. */
export interface OpenRequest extends PendingInput {
  readonly stopClock: () => void;
  /** The parent has read it: in a report, or as a message. */
  isTold: boolean;
  /** A handler of the program answers it: it ends no wait. */
  readonly isHandled: boolean;
}

/** The part of an open request that outlives the process. */
export type RequestSnapshot = Pick<OpenRequest, 'requestId' | 'askedAt' | 'isTold'>;

/** Forgotten subagents that worked for the same parent. */
export interface Gone {
  /** Their parent; null: the lead agent or the program. */
  readonly parentId: string | null;
  readonly agents: number;
  readonly tokens: number;
  readonly steps: number;
}

/** The facts of one subagent that are fixed at its admission. */
export interface Admission {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  /** Its ancestors, the uppermost first; the last one is its parent. */
  readonly lineage: readonly string[];
  /** The greatest depth that is permitted to it and its descendants. */
  readonly maxDepth: number;
  /** Tools that are denied to it and all its descendants. */
  readonly denied: ReadonlySet<string>;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  readonly idempotencyKey: string | null;
  /** The words of the user that led to it, or to an ancestor; null: no user asked. */
  readonly request: string | null;
  /** The user who said them, if the app vouched for the identity. */
  readonly requestedBy: string | null;
  /** The ports of the session or program that it and its descendants work for. */
  readonly ports: ScopePorts;
  readonly startedAt: number;
}

const nothingSaid: readonly ProgressNote[] = [];
const nobody = { agents: 0, tokens: 0, steps: 0 };

export class SubagentRecord {
  readonly admission: Admission;
  /** Null: it never had children. Most subagents have none, and a set costs memory. */
  children: Set<string> | null = null;
  /** Null once it has ended: only the record is kept. */
  subagent: Subagent | null;
  request: OpenRequest | null = null;
  progress: readonly ProgressNote[] = nothingSaid;
  /** The latest progress note, unless one of its tools has reported since. */
  said: string | null = null;
  /** The entry of its admission in the journal. */
  readonly birth: SpawnedEvent;
  /** Its request of a process that is gone, until it is put again. */
  asked: RequestSnapshot | null = null;
  /** The conversation that it continues, until its log holds it. */
  opening: SpawnRequest['messages'];
  lastActiveAt: number;
  isHung = false;
  outcome: Outcome | null = null;
  endedAt: number | null = null;
  /** The model step during which it ended. */
  lastStep = 0;
  /** Time at which its result reached its addressee, or no addressee was left. */
  deliveredAt: number | null = null;

  constructor(admission: Admission, subagent: Subagent, birth: SpawnedEvent) {
    this.admission = admission;
    this.subagent = subagent;
    this.birth = birth;
    this.opening = birth.messages ?? undefined;
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

  /** Tells whether this subagent is below the requester; null (the lead agent, a program) is above all. */
  isBelow(requesterId: string | null): boolean {
    return requesterId === null || this.admission.lineage.includes(requesterId);
  }
}

export class SubagentRegistry {
  readonly #records = new Map<string, SubagentRecord>();
  readonly #byKey = new Map<string, SubagentRecord>();
  readonly #gone = new Map<string | null, Gone>();
  #liveCount = 0;

  get liveCount(): number {
    return this.#liveCount;
  }

  /** The forgotten subagents, with their usage. */
  get gone(): readonly Gone[] {
    return [...this.#gone.values()];
  }

  /** Adds subagents that were forgotten, by this process or another one. */
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

  /** All records, oldest first. */
  get all(): readonly SubagentRecord[] {
    return [...this.#records.values()];
  }

  get live(): readonly SubagentRecord[] {
    return this.all.filter(({ isLive }) => isLive);
  }

  add(record: SubagentRecord): void {
    const { id, parentId, admission } = record;
    const { idempotencyKey } = admission;
    this.#records.set(id, record);
    this.#liveCount += 1;
    if (idempotencyKey !== null) this.#byKey.set(idempotencyKey, record);
    const parent = parentId === null ? undefined : this.get(parentId);
    if (parent) (parent.children ??= new Set()).add(id);
  }

  get(id: string): SubagentRecord | undefined {
    return this.#records.get(id);
  }

  /** Returns the record whose request had this key. */
  withKey(key: string | undefined): SubagentRecord | undefined {
    return key === undefined ? undefined : this.#byKey.get(key);
  }

  /** Returns the record of the subagent that works, or worked, for this call of the lead agent. */
  ofCall(callId: string): SubagentRecord | undefined {
    // Searched only when a call is cancelled, which is rare: an index would cost memory for each record.
    for (const record of this.#records.values())
      if (record.admission.callId === callId && record.parentId === null) return record;
    return undefined;
  }

  /** Returns a record; undefined also for one that the requester does not see. */
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

  /** Marks a subagent as ended and releases the objects that it consisted of. */
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
    const { id, parentId, admission, outcome, lastStep } = record;
    const { idempotencyKey } = admission;
    if (!this.#records.delete(id)) return;
    const tokens = outcome?.usage.totalTokens ?? 0;
    this.remember({ parentId, agents: 1, tokens, steps: lastStep });
    // The usage of its forgotten children counts for its own parent.
    const below = this.#gone.get(id);
    if (below && this.#gone.delete(id)) this.remember({ ...below, parentId });
    if (idempotencyKey !== null) this.#byKey.delete(idempotencyKey);
    if (parentId !== null) this.get(parentId)?.children?.delete(id);
  }

  #sees(requesterId: string | null, record: SubagentRecord): boolean {
    if (record.isBelow(requesterId) || record.id === requesterId) return true;
    const { workstreamId } = record.admission;
    if (workstreamId === null || requesterId === null) return false;
    return this.#records.get(requesterId)?.admission.workstreamId === workstreamId;
  }
}
