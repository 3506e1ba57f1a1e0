// P1: one ending. An accepted subagent ends once, and its work is in its outcome.

import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

export function* endings({ log, effects }: RunRecord): Iterable<Broken> {
  const broken = (what: string): Broken => ({ promise: 'P1', what });
  const ended = new Map<string, { readonly state: string; readonly outcome: string }>();
  const seen = new Set<string>();
  const ledgers = new Map<string, ReadonlyMap<string, string>>();
  for (const { event } of eventsOf(log, 'subagent.changed')) {
    const { id, state, outcome } = event.subagent;
    // The activity of a cancelled subagent is found when it ends, and reported but not kept.
    const told = JSON.stringify({ ...outcome, diagnostics: null });
    const before = ended.get(id);
    // It is not accepted yet: its birth is about to be kept.
    if (state !== 'spawning') seen.add(id);
    if (before && before.state !== state)
      yield broken(`${id} was ${before.state}, and then ${state}`);
    else if (before && before.outcome !== told)
      yield broken(`the outcome of ${id} was ${before.outcome}, and then ${told}`);
    if (!ENDED.has(state)) continue;
    ended.set(id, { state, outcome: told });
    if (!outcome) yield broken(`${id} ended as ${state} without an outcome`);
    else
      ledgers.set(
        id,
        new Map(outcome.toolLedger.map(({ callId, status }) => [callId, status] as const)),
      );
  }
  for (const id of seen) if (!ended.has(id)) yield broken(`${id} never ended`);
  for (const { subagentId, callId, tool, status } of effects) {
    const ledger = subagentId === null ? undefined : ledgers.get(subagentId);
    const entry = ledger?.get(callId);
    if (ledger && (entry === undefined || entry === 'not_run' || entry === 'denied'))
      yield broken(
        `${subagentId} ran ${tool} (${callId}, which ${status}); its ledger says ${entry ?? 'nothing'}`,
      );
  }
}
