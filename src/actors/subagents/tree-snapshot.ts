// The state of all subagents of a scope as plain JSON, for a scope that is not folded from its first entry.
//
// Does not: read or write a journal (session/lifecycle/snapshots.ts), or restore a subagent (restoration.ts).
//
// Invariants
//   TREE-SNAPSHOT-1. It holds every known subagent, in the order of their admission: a parent precedes its
//       children.
//   TREE-SNAPSHOT-2. It holds the usage of forgotten subagents: no crash widens a limit.

import type { ModelMessage } from 'ai';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentUnitSnapshot } from '../subagent/subagent.ts';
import type { SpawnedEvent } from '../subagent/spawned-event.ts';
import type { Gone, RequestSnapshot, SubagentRecord } from './subagent-registry.ts';
import type { Parts } from './parts.ts';

/** A subagent that has ended, and whose end was reported to its parent. */
export interface EndedSnapshot {
  readonly outcome: Outcome;
  /** Time of the end, in milliseconds since 1970. */
  readonly endedAt: number;
  readonly deliveredAt: number | null;
  readonly step: number;
}

/** A known subagent, live or ended. */
export interface RecordSnapshot {
  readonly id: string;
  /** Time of its admission; milliseconds since 1970. */
  readonly bornAt: number;
  readonly birth: SpawnedEvent;
  readonly rest: SubagentUnitSnapshot | EndedSnapshot;
  /** Its open request to the agent that gave it the task. @defaultValue none */
  readonly asked?: RequestSnapshot;
  /** Time at which the result of a live subagent was read; milliseconds since 1970. @defaultValue not read */
  readonly deliveredAt?: number;
}

export interface SubagentTreeSnapshot {
  readonly subagents: readonly RecordSnapshot[];
  readonly gone: readonly Gone[];
  /** The conversations of the instances that a session keeps, by name. */
  readonly histories: Readonly<Record<string, readonly ModelMessage[]>>;
  /** Time that the scope spent in some process, in milliseconds. @defaultValue 0 */
  readonly awakeMs?: number;
}

/**
 * Builds the state of the scope. No subagent may be busy: the state does not hold the content of mailboxes.
 */
export function treeSnapshot({ registry, instances, budgets }: Parts): SubagentTreeSnapshot {
  const isKnown = (id: string | null): boolean => id !== null && registry.get(id) !== undefined;
  return {
    subagents: registry.all.flatMap((record) => recordRest(record) ?? []),
    gone: registry.gone.map((gone) =>
      isKnown(gone.parentId) ? gone : { ...gone, parentId: null },
    ),
    histories: instances.histories,
    awakeMs: budgets.awakeMs,
  };
}

function recordRest(record: SubagentRecord): RecordSnapshot | null {
  const { id, birth, subagent, outcome, endedAt, deliveredAt, lastStep: step } = record;
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

function askedBy({ request }: SubagentRecord): RequestSnapshot | null {
  if (!request) return null;
  const { requestId, askedAt, isTold } = request;
  return { requestId, askedAt, isTold };
}
