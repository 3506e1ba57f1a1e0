// Computes from the state of a restored subagent what is due.
//
// Does not: begin any of it (the subagent does).
import { subagentMachine, type Ending, type SubagentSnapshot } from '../../machines/index.ts';
import { requestIdOf, askOf, type AskInput } from '../../machines/subagent-setup.ts';
import type { Posted } from '../runtime/commit-unit.ts';
import { underWay } from '../runtime/hosting.ts';

export type Due =
  /** The end has to be reported. */
  | { readonly what: 'end'; readonly ending: Ending }
  /** The question has to be put again, under its old id. */
  | { readonly what: 'ask'; readonly asked: AskInput }
  /** The subagent waits for a slot. */
  | { readonly what: 'slot'; readonly resumed: boolean }
  /** The activities under way have to begin again. */
  | { readonly what: 'activities'; readonly start: readonly Posted[] }
  /**
   * The subagent had a slot in a process that is gone: deadlines begin at once, its work when it has a slot
   * here.
   */
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
