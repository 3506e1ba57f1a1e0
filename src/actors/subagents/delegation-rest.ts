// What the subagents of a scope have become, as plain JSON: what a scope goes on from that is not
// folded from its first entry.
//
// Does not: read or write a journal (session/lifecycle/snapshots.ts), or put anybody back (restoration.ts).
//
// Invariants
//   DELEGATION-REST-1. Whoever is known is in it, in the order of the births: nobody comes before its parent.
//   DELEGATION-REST-2. Of those that are not known any more, what they used is: no limit is widened by a crash.

import type { ModelMessage } from 'ai';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentRest } from '../subagent/subagent.ts';
import type { SubagentBirth } from '../subagent/subagent-birth.ts';
import type { Gone, RequestRest, SubagentRecord } from './family.ts';
import type { Parts } from './parts.ts';

/** One that has ended, and whose end is known to whom it worked for. */
export interface EndedRest {
  readonly outcome: Outcome;
  /** Times in milliseconds since 1970. */
  readonly endedAt: number;
  readonly deliveredAt: number | null;
  readonly step: number;
}

/** One that is known: it lives, or has ended. */
export interface RecordRest {
  readonly id: string;
  /** When it was admitted; milliseconds since 1970. */
  readonly bornAt: number;
  readonly birth: SubagentBirth;
  readonly rest: SubagentRest | EndedRest;
  /** What it has asked whoever gave it its task. @defaultValue nothing */
  readonly asked?: RequestRest;
  /** One that lives and has had its result looked at; milliseconds since 1970. @defaultValue nobody has */
  readonly deliveredAt?: number;
}

export interface DelegationRest {
  readonly subagents: readonly RecordRest[];
  readonly gone: readonly Gone[];
  /** What was said in the instances that a session keeps, by name. */
  readonly histories: Readonly<Record<string, readonly ModelMessage[]>>;
  /** So long the scope was in some process, in milliseconds. @defaultValue 0 */
  readonly awakeMs?: number;
}

/** Nobody of it may be busy: what waits in a mailbox is in no rest. */
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
