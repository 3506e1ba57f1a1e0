// The snapshot of the conversation that a subagent gets, taken at the moment of the handoff. `ContextMode`
// selects its parts; a snapshot never changes afterwards.

import type { ModelMessage } from 'ai';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import type { ConversationLog } from '../conversation/conversation.ts';
import type { ConversationTurn } from '../conversation/turns.ts';
import type { NoteWriter } from '../notes/note-marks.ts';
import type { MemoryFact, MemoryStore } from '../ports/memory-store.ts';

/**
 * | mode       | summary | recent turns | memory facts | whole conversation |
 * |------------|---------|--------------|--------------|--------------------|
 * | `snapshot` | yes     | yes          | yes          |                    |
 * | `summary`  | yes     |              |              |                    |
 * | `recent`   |         | yes          |              |                    |
 * | `fork`     |         |              | yes          | as messages        |
 * | `none`     |         |              |              |                    |
 */
export type ContextMode = 'snapshot' | 'none' | 'summary' | 'recent' | 'fork';

export interface SubagentTask {
  /** The lead agent's tool that was handed off. */
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The task in words. @defaultValue `Execute tool: <toolName>` if the runtime builds it */
  readonly description: string;
}

export interface SubagentContextSnapshot {
  readonly task: SubagentTask;
  readonly conversationSummary: string | null;
  /** Oldest first. */
  readonly recentTurns: readonly ConversationTurn[];
  /** The most relevant first. */
  readonly relevantMemoryFacts: readonly MemoryFact[];
  readonly agentInstructions: string;
  /** In mode `fork` the conversation itself, without calls in flight; otherwise empty. */
  readonly conversation: readonly ModelMessage[];
}

export interface ContextSnapshotInput {
  /** @defaultValue 'snapshot' */
  readonly mode?: ContextMode;
  readonly task: Omit<SubagentTask, 'description'> & Partial<Pick<SubagentTask, 'description'>>;
  readonly instructions: string;
  readonly conversation: ConversationLog;
  /** @defaultValue 10 turns */
  readonly recentTurns?: number;
  /** Writes the notes of the conversation in mode `fork`. @defaultValue notes without marks */
  readonly notes?: NoteWriter;
}

/** The source of facts. */
export interface FactSource {
  readonly memory: MemoryStore;
  readonly scope: string;
  /** @defaultValue 10 facts */
  readonly limit?: number;
}

/** Builds the snapshot with given facts. The mode selects its parts. */
export function buildContextSnapshot(
  {
    mode = 'snapshot',
    task,
    instructions,
    conversation,
    recentTurns = 10,
    notes,
  }: ContextSnapshotInput,
  facts: readonly MemoryFact[] = [],
): SubagentContextSnapshot {
  return {
    task: { ...task, description: task.description ?? `Execute tool: ${task.toolName}` },
    conversationSummary: mode === 'snapshot' || mode === 'summary' ? conversation.summary : null,
    recentTurns:
      mode === 'snapshot' || mode === 'recent' ? conversation.recentTurns(recentTurns) : [],
    relevantMemoryFacts: usesFacts(mode) ? facts : [],
    agentInstructions: instructions,
    conversation:
      mode === 'fork'
        ? conversation.toModelMessages({ openCalls: 'omit', ...(notes && { notes }) })
        : [],
  };
}

/**
 * Builds the snapshot with the facts from memory that match the task. Rejects with the store's error, or with
 * a `ConfigurationError` if the store returns no facts; does not query it in a mode without facts.
 */
export async function assembleContextSnapshot(
  input: ContextSnapshotInput,
  source?: FactSource,
): Promise<SubagentContextSnapshot> {
  if (!source || !usesFacts(input.mode ?? 'snapshot')) return buildContextSnapshot(input);
  const { memory, scope, limit = 10 } = source;
  const facts: unknown = await memory.facts({ scope, limit, query: factQuery(input) });
  return buildContextSnapshot(input, check('memory.facts()', factsSchema, facts));
}

function usesFacts(mode: ContextMode): boolean {
  return mode === 'snapshot' || mode === 'fork';
}

/** Checks only the properties that are read: a store may keep more. */
const factsSchema = z.custom<readonly MemoryFact[]>(
  (facts) => z.array(z.looseObject({ text: z.string() })).safeParse(facts).success,
  { error: 'expected an array of facts' },
);

/** Returns the words of the task and the last words of the user. */
function factQuery({ task, conversation }: ContextSnapshotInput): string {
  const said = conversation.recentTurns(2).filter(({ role }) => role === 'user');
  return [
    task.description ?? '',
    JSON.stringify(Object.values(task.args)),
    ...said.map(({ content }) => content),
  ].join(' ');
}
