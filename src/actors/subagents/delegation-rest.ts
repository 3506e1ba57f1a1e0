// The state of all subagents of a scope as plain JSON, for a scope that is not folded from its first entry.
//
// Does not: read or write a journal (session/lifecycle/snapshots.ts), or restore a subagent (restoration.ts).
//
// Invariants
//   DELEGATION-REST-1. It holds every known subagent, in the order of the births: a parent precedes its
//       children.
//   DELEGATION-REST-2. It holds the usage of forgotten subagents: no crash widens a limit.

import type { ModelMessage } from 'ai';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentRest } from '../subagent/subagent.ts';
import type { SubagentBirth } from '../subagent/subagent-birth.ts';
import type { Gone, RequestRest, SubagentRecord } from './family.ts';
import type { Parts } from './parts.ts';

/** A subagent that has ended, and whose end was reported to its parent. */
export interface EndedRest {
  readonly outcome: Outcome;
  /** Time of the end, in milliseconds since 1970. */
  readonly endedAt: number;
  readonly deliveredAt: number | null;
  readonly step: number;
}

/** A known subagent, live or ended. */
export interface RecordRest {
  readonly id: string;
  /** Time of its admission; milliseconds since 1970. */
  readonly bornAt: number;
  readonly birth: SubagentBirth;
  readonly rest: SubagentRest | EndedRest;
  /** Its open request to the agent that gave it the task. @defaultValue none */
  readonly asked?: RequestRest;
  /** Time at which the result of a live subagent was read; milliseconds since 1970. @defaultValue not read */
  readonly deliveredAt?: number;
}

export interface DelegationRest {
  readonly subagents: readonly RecordRest[];
  readonly gone: readonly Gone[];
  /** The conversations of the instances that a session keeps, by name. */
  readonly histories: Readonly<Record<string, readonly ModelMessage[]>>;
  /** Time that the scope spent in some process, in milliseconds. @defaultValue 0 */
  readonly awakeMs?: number;
}

/**
 * Builds the state of the scope. No subagent may be busy: the state does not hold the content of mailboxes.
 */
export function delegationRest({ family, instances, budgets }: Parts): DelegationRest {
  const isKnown = (id: string | null): boolean => id !== null && family.get(id) !== undefined;
  return {
    subagents: family.all.flatMap((record) => recordRest(record) ?? []),
    gone: family.gone.map((gone) => (isKnown(gone.parentId) ? gone : { ...gone, parentId: null })),
    histories: instances.histories,
    awakeMs: budgets.awakeMs,
  };
}

function recordRest(record: SubagentRecord): RecordRest | null {
  const { id, birth, subagent, outcome, endedAt, deliveredAt, lastStep: step } = record;
  const { startedAt: bornAt } = record.place;
  if (subagent) {
    const asked = askedBy(record);
    return {
      id,
      bornAt,
      birth,
      rest: subagent.rest,
      ...(asked && { asked }),
      ...(deliveredAt !== null && { deliveredAt }),
    };
  }
  if (!outcome || endedAt === null) return null;
  return { id, bornAt, birth, rest: { outcome, endedAt, deliveredAt, step } };
}

function askedBy({ request }: SubagentRecord): RequestRest | null {
  if (!request) return null;
  const { requestId, askedAt, isTold } = request;
  return { requestId, askedAt, isTold };
}
