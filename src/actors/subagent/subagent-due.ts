// What is due of a subagent that comes back, from its state alone.
//
// Does not: begin any of it (the subagent does).
import { subagentMachine, type Ending, type SubagentSnapshot } from '../../machines/index.ts';
import { askOf } from '../../machines/subagent-calls.ts';
import { requestIdOf } from '../../machines/subagent-events.ts';
import type { AskInput } from '../../machines/subagent-setup.ts';
import type { Posted } from '../runtime/commit-unit.ts';
import { underWay } from '../runtime/hosting.ts';

export type Due =
  /** Its end is to be told. */
  | { readonly what: 'end'; readonly ending: Ending }
  /** Its question is to be put again, under its old id. */
  | { readonly what: 'ask'; readonly asked: AskInput }
  /** It waits for a slot. */
  | { readonly what: 'slot'; readonly resumed: boolean }
  /** What it was doing is to be begun again. */
  | { readonly what: 'activities'; readonly start: readonly Posted[] }
  /** It had a slot in a process that is gone: deadlines begin at once, its work when it has one here. */
  | { readonly what: 'work'; readonly atOnce: readonly Posted[]; readonly work: readonly Posted[] };

export function dueOf(id: string, snapshot: SubagentSnapshot): Due {
  if (snapshot.status === 'done') return { what: 'end', ending: snapshot.output };
  const { calls, asked, step } = snapshot.context;
  if (snapshot.matches('waiting_for_input')) {
    const { callId = '', kind = 'question' } = askOf(calls) ?? {};
    return { what: 'ask', asked: { id, requestId: requestIdOf(id, asked), callId, kind } };
  }
  if (snapshot.matches('ready')) return { what: 'slot', resumed: step > 0 };
  const start = underWay('subagent', subagentMachine, snapshot);
  if (!snapshot.matches('running')) return { what: 'activities', start };
  const isDeadline = ({ effect }: Posted): boolean => effect.name === 'deadline';
  return {
    what: 'work',
    atOnce: start.filter(isDeadline),
    work: start.filter((due) => !isDeadline(due)),
  };
}
