// Collects the prior work for a new subagent: the records of its predecessors, and the entries of working
// memory that it was given.
//
// Invariants
//   LIN-1. The new subagent can read every key that it is told, with the tool that it has: keys that the
//          giver of the task can read are shared with it; other keys, or all of them if it has no such tool,
//          are not named.
//   LIN-2. Inputs that the giver of the task cannot read are refused, each with similar keys: before the
//          subagent is spawned if a tool spawns it, else before its first step.

import type { ModelMessage } from 'ai';
import { ConfigurationError } from '../values/errors.ts';
import { editDistance } from '../language/similarity.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import type { Briefing } from '../actors/subagent/instance.ts';
import type { Outcome } from '../actors/contracts/outcome.ts';
import { head } from '../values/clip.ts';
import { isLargeOutput } from '../memory/large-output.ts';
import type { NoteWriter } from '../actors/notes/note-marks.ts';
import { note, sentence } from '../actors/notes/note.ts';
import type { PriorInput, PriorResult } from './prior-work.ts';

/** The facts about an earlier subagent. */
export interface EndedSubagent {
  readonly id: string;
  readonly name: string;
  readonly task: string;
  readonly outcome: Outcome | null;
  readonly endedAt: number | null;
}

const MAX_RESULTS = 50;
const MAX_INPUTS = 20;

/** Returns the results of the ended subagents among the latest fifty. */
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

/** Returns the keys under `inputs` in the arguments of a task: a list, or a list as JSON. */
export function inputKeys({ inputs }: Readonly<Record<string, unknown>>): string[] {
  const list = typeof inputs === 'string' ? parsedList(inputs) : inputs;
  if (!Array.isArray(list)) return [];
  return list.filter((key) => typeof key === 'string').slice(0, MAX_INPUTS);
}

/**
 * Reads the inputs in the name of their giver, and shares them with the new subagent.
 * @throws {ConfigurationError} `INPUT_NOT_FOUND` if an input does not exist, or the giver may not see it;
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

/**
 * Describes which of these keys `giver` cannot read, each with similar keys (LIN-2); null if it can read all.
 */
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

/** Returns the keys that are most similar to this one, by their last segments; the best first. */
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
 * Returns the results with only those keys that the new subagent can read: keys that the giver can read are
 * shared with it (LIN-1). Without `memory` (or without a tool to read it) no key is named.
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
    // A giver that cannot read a key cannot share it.
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

/**
 * Returns the briefing with the block, quoted, before the task: text of other agents is never a system
 * message (P8).
 */
export function withPriorWork(briefing: Briefing, section: string, notes: NoteWriter): Briefing {
  if (section === '') return briefing;
  const at = briefing.messages.length - 1;
  const told = note(PRIOR_WORK, { priorWork: section });
  const block: ModelMessage = { role: 'user', content: notes.text(told, 'prior work') };
  return {
    ...briefing,
    messages: [...briefing.messages.slice(0, at), block, ...briefing.messages.slice(at)],
  };
}

const PRIOR_WORK = sentence`Earlier work in this conversation is quoted here: build on it instead of doing it again.`;

function parsedList(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    // A single key.
    return json.trim() === '' ? [] : [json];
  }
}
