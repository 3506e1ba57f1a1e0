// Where the prior work of a new subagent comes from: the records of its predecessors, and the
// entries of working memory that it was given.
//
// Invariants
//   LIN-1. Every key that a new subagent is told, it can read with the tool that it has: what whoever
//          gives it the task can read is shared with it; any other key, or all of them where it has no
//          such tool, are not named.
//   LIN-2. Inputs that whoever gives the task cannot read are refused, each with keys that are alike:
//          before the subagent is spawned where a tool spawns it, else before its first step.

import type { ModelMessage } from 'ai';
import { ConfigurationError } from '../values/errors.ts';
import { editDistance } from '../language/similarity.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import type { Briefing } from '../actors/subagent/instance.ts';
import type { Outcome } from '../actors/contracts/outcome.ts';
import { head } from '../values/clip.ts';
import { isLargeOutput } from '../memory/large-output.ts';
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
    const { status, text, output, error, diagnostics, notes = [] } = outcome;
    const base = { subagentId: id, name, task, status, text, endedAt, saved: notes };
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
 * @throws {ConfigurationError} `INPUT_NOT_FOUND` where one is not there, or not for the giver to see;
 * nothing is shared then (LIN-2).
 */
export async function handOver(
  keys: readonly string[],
  giver: MemoryOwner,
  subagentId: string,
  memory: WorkingMemory,
): Promise<PriorInput[]> {
  const { inputs, missing } = await lookUp(keys, giver, memory);
  if (missing.length > 0)
    throw new ConfigurationError('INPUT_NOT_FOUND', await notFound(missing, giver, memory));
  for (const { key } of inputs) await memory.share(giver, key, subagentId);
  return inputs;
}

/** Says which of these keys `giver` cannot read, each with keys that are alike (LIN-2). Null: none. */
export async function missingInputs(
  keys: readonly string[],
  giver: MemoryOwner,
  memory: WorkingMemory,
): Promise<string | null> {
  const { missing } = await lookUp(keys, giver, memory);
  return missing.length === 0 ? null : notFound(missing, giver, memory);
}

async function lookUp(
  keys: readonly string[],
  giver: MemoryOwner,
  memory: WorkingMemory,
): Promise<{ readonly inputs: PriorInput[]; readonly missing: readonly string[] }> {
  const inputs: PriorInput[] = [];
  const missing: string[] = [];
  for (const key of keys) {
    const found = await memory.get(giver, key);
    if (found.ok) inputs.push({ key: found.entry.key, text: found.entry.text });
    else missing.push(key);
  }
  return { inputs, missing };
}

const MAX_LISTED = 1000;
const MAX_ALIKE = 3;

async function notFound(
  missing: readonly string[],
  giver: MemoryOwner,
  memory: WorkingMemory,
): Promise<string> {
  const listed = await memory.list(giver, { limit: MAX_LISTED });
  const known = listed.ok ? listed.entries.map(({ key }) => key) : [];
  const each = missing.map((key) => {
    const alike = keysLike(key, known).map((name) => JSON.stringify(name));
    const hint = alike.length === 0 ? '' : `; near matches: ${alike.join(', ')}`;
    return `${JSON.stringify(head(key, MAX_SHOWN_CHARS))}${hint}`;
  });
  return `Expected \`inputs\` to be keys of working memory that can be read. Not found: ${each.join('. ')}. The subagent did not begin`;
}

const MAX_SHOWN_CHARS = 200;

/** The keys that are most like this one, by their last segments; the best first. */
function keysLike(key: string, known: readonly string[]): readonly string[] {
  const name = (path: string): string =>
    head(path.slice(path.lastIndexOf('/') + 1), 64).toLowerCase();
  const wanted = name(key);
  return known
    .map((path) => {
      const own = name(path);
      const isPart = own.includes(wanted) || wanted.includes(own);
      const unlike = editDistance(wanted, own) / Math.max(wanted.length, own.length, 1);
      return { path, unlike: isPart ? Math.min(unlike, 0.25) : unlike };
    })
    .filter(({ unlike }) => unlike <= 0.5)
    .toSorted((a, b) => a.unlike - b.unlike || (a.path < b.path ? -1 : 1))
    .slice(0, MAX_ALIKE)
    .map(({ path }) => path);
}

/**
 * The results with those keys only that the new subagent can read: what the giver can read is shared with
 * it (LIN-1). Without `memory` (or where it has no tool to read it) no key is named.
 */
export async function readable(
  results: readonly PriorResult[],
  giver: MemoryOwner,
  receiver: MemoryOwner,
  memory: WorkingMemory | undefined,
): Promise<PriorResult[]> {
  const subagentId = receiver.path.at(-1) ?? '';
  const canRead = async (key: string): Promise<boolean> => {
    if (!memory) return false;
    if ((await memory.get(receiver, key)).ok) return true;
    // Whoever cannot read it cannot share it.
    await memory.share(giver, key, subagentId);
    return (await memory.get(receiver, key)).ok;
  };
  return Promise.all(
    results.map(async (result) => {
      const { reference = null, saved = [] } = result;
      const keys = await Promise.all(saved.map(async (key) => ((await canRead(key)) ? [key] : [])));
      const isKept = reference !== null && (await canRead(reference));
      return { ...result, reference: isKept ? reference : null, saved: keys.flat() };
    }),
  );
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
