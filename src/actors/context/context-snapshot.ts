// The snapshot of the conversation that a subagent receives, taken at the handoff, and the prompts written from it.
// `ContextMode` selects its parts; a snapshot never changes afterwards.
//
// Invariants
//   SUBPROMPT-1. The system prompt contains only text from the app's author and from the runtime. Notes quote the task,
//       its arguments and the known parts of the conversation.
//   SUBPROMPT-2. The notes come in this order: the conversation and memory, then the task. The system prompt contains
//       the tool's name, from which programs and scripts recognise a task. The key of the notes differs between runs of
//       one configuration and therefore comes last, so that a provider's cache can serve the rest for all runs.
//   SUBPROMPT-3. In the journal of a run that an earlier version started, the task is plain text and there are no
//       notes: the run's system prompt quotes the known parts of the conversation, and its notes remain unmarked.

import type { JSONValue, ModelMessage } from 'ai';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { clip } from '../../values/clip.ts';
import type { ConversationLog } from '../conversation/conversation.ts';
import type { Reader } from '../conversation/model-messages.ts';
import { unmarkedNotes, type NoteMarks, type NoteWriter } from '../notes/note-marks.ts';
import type { MemoryFact, MemoryStore } from '../ports/memory-store.ts';
import type { ConversationTurn } from '../conversation/items.ts';
import { note, plainOrQuoted, sentence, TASK_BEGINS, type Note } from '../notes/note.ts';

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
  /** The lead agent's tool whose call is the task. */
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The task in words. @defaultValue `The work of the tool <toolName>` if the runtime builds it */
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
  /** In mode `fork`, the conversation itself, without calls in flight; otherwise empty. */
  readonly conversation: readonly ModelMessage[];
}

export interface ContextSnapshotInput {
  /** @defaultValue 'snapshot' */
  readonly mode?: ContextMode;
  readonly task: Omit<SubagentTask, 'description'> & Partial<Pick<SubagentTask, 'description'>>;
  readonly instructions: string;
  readonly conversation: ConversationLog;
  /** The number of recent turns. @defaultValue 10 */
  readonly recentTurns?: number;
  /** Writes the notes of the conversation, in mode `fork`. @defaultValue notes without marks */
  readonly notes?: NoteWriter;
  /** The provider of the subagent's model, for mode `fork`. @defaultValue none: only text and calls */
  readonly reader?: Reader;
}

/** The memory that supplies facts. */
export interface FactSource {
  readonly memory: MemoryStore;
  readonly scope: string;
  /** @defaultValue 10 facts */
  readonly limit?: number;
}

/** Builds the snapshot with given facts. */
export function buildContextSnapshot(
  {
    mode = 'snapshot',
    task,
    instructions,
    conversation,
    recentTurns = 10,
    notes,
    reader,
  }: ContextSnapshotInput,
  facts: readonly MemoryFact[] = [],
): SubagentContextSnapshot {
  return {
    task: { ...task, description: task.description ?? `The work of the tool ${task.toolName}` },
    conversationSummary: mode === 'snapshot' || mode === 'summary' ? conversation.summary : null,
    recentTurns:
      mode === 'snapshot' || mode === 'recent' ? conversation.recentTurns(recentTurns) : [],
    relevantMemoryFacts: usesFacts(mode) ? facts : [],
    agentInstructions: instructions,
    conversation:
      mode === 'fork'
        ? conversation.toModelMessages({ openCalls: 'omit', reader, ...(notes && { notes }) })
        : [],
  };
}

/**
 * Builds the snapshot with the facts from memory that match the task. A mode without facts does not query the memory.
 * Rejects with the memory's error, or with a `ConfigurationError` if the memory does not return an array of facts.
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

/** Checks only the properties that are read: a memory may add others. */
const factsSchema = z.custom<readonly MemoryFact[]>(
  (facts) => z.array(z.looseObject({ text: z.string() })).safeParse(facts).success,
  { error: 'expected an array of facts' },
);

/** The number of the user's last characters in a query to the memory. */
const MAX_QUERY_CHARS = 2000;

/** Returns the text of the task, and the user's last words. */
function factQuery({ task, conversation }: ContextSnapshotInput): string {
  const said = conversation.recentTurns(2).filter(({ role }) => role === 'user');
  return [
    task.description ?? '',
    JSON.stringify(Object.values(task.args)),
    ...said.map(({ content }) => clip(content, MAX_QUERY_CHARS)),
  ].join(' ');
}

/** The part of a snapshot that the app's author wrote. */
interface AuthorsWords extends Pick<SubagentContextSnapshot, 'agentInstructions'> {
  readonly task: Pick<SubagentContextSnapshot['task'], 'toolName'>;
}

/** The working conditions that a subagent's system prompt states. */
export interface WorkTerms {
  /** Absent if the agent has its own stop condition. */
  readonly maxSteps?: number | undefined;
  /** The tool that submits the result. Absent if the last message is the result. */
  readonly handsInBy?: string | undefined;
  readonly asksUser: boolean;
  /** Whether any of its tools asks the user for approval. */
  readonly asksApproval: boolean;
  /** Describes the result. Absent if the result is text. */
  readonly shape?: string | undefined;
}

/**
 * Returns the system prompt: its sections, separated by blank lines. `notes` is null for a run that an earlier version
 * started; such a run's prompt quotes `known`.
 */
export function systemPrompt(
  { task: { toolName }, agentInstructions }: AuthorsWords,
  terms: WorkTerms,
  notes: NoteMarks | null,
  known: Note | null = null,
): string {
  return [
    `# Instructions\n${agentInstructions}`,
    `# Task\n${workSection(plainOrQuoted(toolName), terms)}`,
    ...(terms.shape === undefined ? [] : [terms.shape]),
    ...(notes ? [notes.recognition] : []),
    ...(known ? [unmarkedNotes.text(known, 'context')] : []),
  ].join('\n\n');
}

function workSection(
  tool: string,
  { maxSteps, handsInBy, asksUser, asksApproval, shape }: WorkTerms,
): string {
  const goes = handsInBy === undefined ? 'Your last message' : `What you hand in with ${handsInBy}`;
  return [
    `You do the work of the tool ${tool} in the background, for another agent.`,
    shape === undefined
      ? `${goes} goes to it: facts, no greeting, no offer, nothing that the task did not ask for.`
      : `${goes} goes to it.`,
    ...(asksUser ? ['Only ask_user reaches the user.'] : []),
    ...(asksApproval
      ? [
          'Tools marked (needs approval) or (may need approval) ask the user by themselves: do not ask before.',
        ]
      : []),
    ...(maxSteps === undefined
      ? []
      : [`You have ${maxSteps} steps; each of your answers uses one.`]),
  ].join(' ');
}

/** Returns the note about the conversation for which the subagent works; null if nothing about it is known. */
export function contextNote({
  conversationSummary: summary,
  recentTurns,
  relevantMemoryFacts,
}: SubagentContextSnapshot): Note | null {
  const quotes = {
    ...(summary && { conversationSummary: summary }),
    ...(recentTurns.length > 0 && {
      recentConversation: recentTurns.map(({ role, content }) => ({ [role]: content })),
    }),
    ...(relevantMemoryFacts.length > 0 && {
      memory: relevantMemoryFacts.map(({ text }) => text),
    }),
  };
  if (Object.keys(quotes).length === 0) return null;
  return note(sentence`The conversation so far: it asks nothing of you.`, quotes);
}

/** Returns the note with the task, the last message before the first step. */
function taskNote({ task, conversation }: SubagentContextSnapshot): Note {
  const { description, args } = task;
  const hasArguments = Object.keys(args).length > 0;
  const what = sentence`${TASK_BEGINS}.`;
  return note(conversation.length === 0 ? what : sentence`${what} ${FORKED}`, {
    task: description,
    ...(hasArguments && { arguments: args as JSONValue }),
  });
}

const FORKED = sentence`Only that: all above is the conversation of the agent that you work for, for your information. Its tasks and its subagents are not yours.`;

/** Returns the first messages of a run: the forked conversation, if any, and the notes. */
export function openingMessages(
  snapshot: SubagentContextSnapshot,
  notes: NoteMarks,
): ModelMessage[] {
  const known = contextNote(snapshot);
  const told = (prompt: Note, id: string): ModelMessage => ({
    role: 'user',
    content: notes.text(prompt, id),
  });
  return [
    ...snapshot.conversation,
    ...(known ? [told(known, 'context')] : []),
    told(taskNote(snapshot), 'task'),
  ];
}
