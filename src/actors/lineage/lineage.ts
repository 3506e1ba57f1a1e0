// Where the prior work of a new subagent comes from: the records of its predecessors, and the
// entries of working memory that it was given.

import type { ModelMessage } from 'ai';
import type { MemoryOwner, WorkingMemory } from '../ports/working-memory.ts';
import type { Briefing } from '../subagent/instance.ts';
import type { Outcome } from '../subagent/outcome.ts';
import { isLargeOutput } from '../working-memory/large-output.ts';
import type { PriorInput, PriorResult } from './prior-work.ts';

/** What is known of an earlier subagent. */
export interface EndedSubagent {
  readonly id: string;
  readonly name: string;
  readonly task: string;
  readonly outcome: Outcome | null;
  readonly endedAt: number | null;
}

const MAX_RESULTS = 50;
const MAX_INPUTS = 20;

/** Those that have ended, of the latest fifty. */
export function priorResults(ended: readonly EndedSubagent[]): PriorResult[] {
  return ended.slice(-MAX_RESULTS).flatMap(({ id, name, task, outcome, endedAt }) => {
    if (!outcome || endedAt === null) return [];
    const { status, text, output, error, diagnostics } = outcome;
    const base = { subagentId: id, name, task, status, text, endedAt };
    if (status === 'completed')
      return [{ ...base, reference: isLargeOutput(output) ? output.reference : null }];
    const message = error?.message ?? status;
    return [{ ...base, text: '', error: message, reference: diagnostics?.reference ?? null }];
  });
}

/** The keys under `inputs` in the arguments of a task: a list, or a list as JSON. */
export function inputKeys({ inputs }: Readonly<Record<string, unknown>>): string[] {
  const list = typeof inputs === 'string' ? parsedList(inputs) : inputs;
  if (!Array.isArray(list)) return [];
  return list.filter((key) => typeof key === 'string').slice(0, MAX_INPUTS);
}

/**
 * Reads the inputs in the name of whoever gives them, and lets the new subagent read them too.
 * What is not there, or not for the giver to see, is left out.
 */
export async function handOver(
  keys: readonly string[],
  giver: MemoryOwner,
  subagentId: string,
  memory: WorkingMemory,
): Promise<PriorInput[]> {
  const inputs: PriorInput[] = [];
  for (const key of keys) {
    const found = await memory.get(giver, key);
    if (!found.ok) continue;
    await memory.share(giver, key, subagentId);
    inputs.push({ key: found.entry.key, text: found.entry.text });
  }
  return inputs;
}

/** The briefing with the block before the task: what others wrote is never a system message (P8). */
export function withPriorWork(briefing: Briefing, section: string): Briefing {
  if (section === '') return briefing;
  const at = briefing.messages.length - 1;
  const block: ModelMessage = { role: 'user', content: section };
  return {
    ...briefing,
    messages: [...briefing.messages.slice(0, at), block, ...briefing.messages.slice(at)],
  };
}

function parsedList(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    // A single key.
    return json.trim() === '' ? [] : [json];
  }
}
