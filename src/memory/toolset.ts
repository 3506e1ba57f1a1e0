// Working memory as tools for a lead agent, for subagents and for any AI SDK agent.
//
// Owns:     the schemas of these tools, and their results, which are cut to the size of one answer.
// Does not: decide permissions (the memory does) or who the owner is (the caller does).
//
// Invariants
//   TOOLSET-3. A result has `saved: true` only if the entry was saved. A refusal is `{ saved: false, error }`.
//   TOOLSET-4. The result of a read has at most `pageBytes` of JSON and states how much remains.

import { tool, zodSchema } from 'ai';
import { z } from 'zod';
import type { Toolset } from '../actors/contracts/task.ts';
import { AT_ITS_SESSION, marked } from '../actors/model/tool-flags.ts';
import type {
  MemoryEntryInfo,
  MemoryOwner,
  MemoryRefusal,
  WorkingMemory,
} from '../actors/ports/working-memory.ts';
import { anObject, check, type ChecksOf } from '../values/checks.ts';
import { ConfigurationError } from '../values/errors.ts';
import { callerOf, type Caller } from '../actors/model/caller.ts';
import { THE_LEAD } from '../actors/contracts/service-types.ts';
import { head } from '../values/clip.ts';
import { READS_MEMORY } from './large-output.ts';
import { byteLength } from '../values/json.ts';

/** The name of a working memory tool. */
export type WorkingMemoryTool =
  | 'save_to_working_memory'
  | 'get_from_working_memory'
  | 'delete_from_working_memory'
  | 'list_working_memory'
  | 'search_working_memory';

/** The options of `createWorkingMemoryToolset`. */
export interface WorkingMemoryToolsetOptions {
  /** The memory that the tools read from and write to. */
  readonly memory: WorkingMemory;
  /**
   * The owner of the memory when a call comes from neither a session nor a subagent. In a session or a subagent,
   * Offstage determines the owner.
   */
  readonly owner?: MemoryOwner;
  /** The maximum size of one read, in bytes of JSON in UTF-8. @defaultValue 16384 */
  readonly pageBytes?: number;
}

/** The name and version for a toolset registry. */
export const WORKING_MEMORY_TOOLSET = { name: 'working-memory', version: '0.1.0' } as const;

const DEFAULT_PAGE_BYTES = 16_384;
const MINUTE_MS = 60_000;

const key = z
  .string()
  .describe(
    'A path such as "report/part-1" in your own memory, or the full path of another entry, such as "subagent/<id>/report"',
  );
const filter = {
  prefix: z
    .string()
    .optional()
    .describe('Only keys below this path; full paths such as "subagent/<id>" too'),
  category: z.string().optional().describe('Only categories that begin like this'),
  tags: z.array(z.string()).optional().describe('Only entries that have all of these'),
  limit: z.number().int().min(1).max(100).optional(),
};

const saveInput = z.object({
  key,
  value: z.string().describe('The text to keep'),
  ttlMinutes: z
    .number()
    .positive()
    .optional()
    .describe('How long to keep it, in minutes; some hours if absent'),
  ttl_minutes: z.number().positive().optional().describe('The same as ttlMinutes'),
  category: z.string().optional().describe('Such as "research" or "research/flights"'),
  tags: z.array(z.string()).optional(),
});
const getInput = z.object({
  key,
  offset: z.number().int().min(0).optional().describe('Where to go on, in characters'),
});
const searchInput = z.object({ query: z.string().min(1).describe('Words to look for'), ...filter });

const optionsSchema = z.strictObject({
  memory: anObject('a working memory such as workingMemory()', 'save', 'get'),
  owner: anObject('an owner: { sessionId, path }').optional(),
  pageBytes: z.unknown().optional(),
} satisfies ChecksOf<WorkingMemoryToolsetOptions>);

/**
 * Creates plain AI SDK tools: `save_to_working_memory`, `get_from_working_memory`, `delete_from_working_memory`,
 * `list_working_memory`, `search_working_memory`. An agent saves in its own namespace and reads the entries of other
 * agents by their full path.
 * @throws {ConfigurationError} when `pageBytes` is not a whole number ≥ 1024.
 */
export function createWorkingMemoryToolset(
  options: WorkingMemoryToolsetOptions,
): Toolset<WorkingMemoryTool> {
  check('createWorkingMemoryToolset(options)', optionsSchema, options);
  const { memory, pageBytes = DEFAULT_PAGE_BYTES } = options;
  if (!Number.isInteger(pageBytes) || pageBytes < 1024)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`pageBytes\` to be a whole number ≥ 1024, got \`${String(pageBytes)}\``,
    );
  const ownerOf = (call: unknown): MemoryOwner => {
    const owner = memoryOwnerOf(call) ?? options.owner;
    if (owner) return owner;
    throw new ConfigurationError(
      'NO_MEMORY_OWNER',
      'Outside a session and a subagent, createWorkingMemoryToolset() needs an `owner`',
    );
  };
  return {
    save_to_working_memory: Object.assign(
      tool({
        description:
          'Keep a text for later, and for the other agents of this conversation: notes, large results. ' +
          'Returns { saved: true, key } with the full path, or { saved: false, error }.',
        inputSchema: zodSchema(saveInput),
        // RockBot calls this argument `ttl_minutes`, so models with RockBot's prompts use that name.
        execute: async ({ ttl_minutes: written, ttlMinutes = written, ...entry }, call) => {
          const ttlMs = ttlMinutes === undefined ? undefined : ttlMinutes * MINUTE_MS;
          const answer = await memory.save(ownerOf(call), { ...entry, ttlMs });
          if (!answer.ok) return { saved: false, ...errorOf(answer) };
          const { key: path, bytes, expiresAt, replaced } = answer;
          return { saved: true, key: path, bytes, replaced, expiresAt: isoTime(expiresAt) };
        },
      }),
      { ...AT_ITS_SESSION, effects: ['memory.saved'], idempotent: true },
    ),
    get_from_working_memory: marked(
      tool({
        description:
          'Read a kept text by its key or full path. A long one comes in pages: go on with offset = nextOffset ' +
          'until nextOffset is null. Returns { found: false, error } where there is none.',
        inputSchema: zodSchema(getInput),
        execute: async ({ key: path, offset = 0 }, call) => {
          const answer = await memory.get(ownerOf(call), path);
          if (!answer.ok) return { found: false, ...errorOf(answer) };
          const { key: found, text, expiresAt } = answer.entry;
          const frame = { found: true, key: found, expiresAt: isoTime(expiresAt) };
          return { ...frame, ...pageOf(text, offset, pageBytes, frame) };
        },
      }),
      {
        ...AT_ITS_SESSION,
        [READS_MEMORY]: true as const,
        effects: [],
        idempotent: true,
      },
    ),
    delete_from_working_memory: Object.assign(
      tool({
        description:
          'Delete an entry of your own memory. Returns { deleted: true } or { deleted: false, error }.',
        inputSchema: zodSchema(z.object({ key })),
        execute: async ({ key: path }, call) => {
          const answer = await memory.delete(ownerOf(call), path);
          return answer.ok
            ? { deleted: true, key: answer.key }
            : { deleted: false, ...errorOf(answer) };
        },
      }),
      { ...AT_ITS_SESSION, effects: ['memory.deleted'], idempotent: true },
    ),
    list_working_memory: Object.assign(
      tool({
        description:
          'List what is kept and can be read: your own entries, those of the agents that you work for, ' +
          'and those of the subagents that work for you.',
        inputSchema: zodSchema(z.object(filter)),
        execute: async (query, call) => {
          const answer = await memory.list(ownerOf(call), query);
          if (!answer.ok) return { entries: [], ...errorOf(answer) };
          const entries = fitting(answer.entries.map(shown), pageBytes);
          return { entries, total: answer.total, leftOut: answer.total - entries.length };
        },
      }),
      { ...AT_ITS_SESSION, effects: [], idempotent: true },
    ),
    search_working_memory: Object.assign(
      tool({
        description:
          'Find what is kept by words in it. Returns the best matches with an excerpt; read one with get_from_working_memory.',
        inputSchema: zodSchema(searchInput),
        execute: async (query, call) => {
          const answer = await memory.search(ownerOf(call), query);
          if (!answer.ok) return { matches: [], ...errorOf(answer) };
          const matches = answer.matches.map((match) => ({
            ...shown(match),
            excerpt: match.excerpt,
          }));
          const fit = fitting(matches, pageBytes);
          return { matches: fit, total: answer.total, leftOut: answer.total - fit.length };
        },
      }),
      { ...AT_ITS_SESSION, effects: [], idempotent: true },
    ),
  };
}

function errorOf({ error }: MemoryRefusal) {
  return { error };
}

/** Returns the description of an entry for a model. */
function shown({ key: path, bytes, category, tags, expiresAt }: MemoryEntryInfo) {
  return {
    key: path,
    bytes,
    ...(category === null ? {} : { category }),
    ...(tags.length === 0 ? {} : { tags }),
    expiresAt: isoTime(expiresAt),
  };
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

/** Returns the agent that made this call, which it reads from the options of `execute`; null outside Offstage. */
export function memoryOwnerOf(options: unknown): MemoryOwner | null {
  const caller = callerOf(options as object | undefined);
  return caller ? { sessionId: caller.sessionId, path: pathOf(caller) } : null;
}

/** Returns the path from the lead agent's direct subagent to the caller. While a subagent runs, its ancestors run too. */
function pathOf({ subagentId, parentId, service }: Caller): readonly string[] {
  const path = subagentId === null ? [] : [subagentId];
  for (let id = parentId; id !== null;) {
    path.unshift(id);
    const checked = service.check(id, THE_LEAD);
    id = checked.ok ? checked.report.parentId : null;
  }
  return path;
}

/** Reserved for the fields that accompany a page or a list, in bytes. */
const FRAME_BYTES = 120;

const LEAST_BYTES = 64;

export interface Page {
  readonly text: string;
  readonly offset: number;
  /** The offset of the next page, or null after the last page. */
  readonly nextOffset: number | null;
  readonly totalChars: number;
}

/** Returns the longest text from `offset` that fits in addition to `frame`. */
export function pageOf(text: string, offset: number, pageBytes: number, frame: object): Page {
  const room = Math.max(LEAST_BYTES, pageBytes - FRAME_BYTES - jsonBytes(frame));
  let page = head(text.slice(offset, offset + room), room);
  // JSON escapes lengthen the text by an amount that depends on the characters in it.
  while (jsonBytes(page) > room) page = head(page, Math.floor(page.length / 2));
  const end = offset + page.length;
  return {
    text: page,
    offset,
    nextOffset: end < text.length ? end : null,
    totalChars: text.length,
  };
}

/** Returns as many items as fit, starting with the first. */
export function fitting<T>(items: readonly T[], pageBytes: number): T[] {
  const fit: T[] = [];
  let bytes = FRAME_BYTES;
  for (const item of items) {
    bytes += jsonBytes(item) + 1;
    if (bytes > pageBytes) break;
    fit.push(item);
  }
  return fit;
}

function jsonBytes(value: unknown): number {
  return byteLength(JSON.stringify(value));
}
