// The snapshot of the conversation that a subagent receives, taken at the handoff, and the prompts written from it.
// `ContextMode` selects its parts; a snapshot is immutable.
//
// Invariants
//   SUBPROMPT-1. The system prompt contains only text from the app's author and from the runtime. The task, its
//       arguments and the known parts of the conversation are quoted in notes.
//   SUBPROMPT-2. The notes come in this order: first the conversation and the memory, then the task. The system prompt
//       contains the tool's name, so that programs and scripts can recognise the task. Each run of a configuration has
//       a different key for its notes. The key therefore comes last, so that the provider can serve everything before
//       it from its cache in all runs.
//   SUBPROMPT-3. If an earlier version started a run, the run's journal contains the task as plain text, without notes.
//       Its system prompt then quotes the known parts of the conversation, and its notes have no marks.

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
  /** The task as text. @defaultValue `The work of the tool <toolName>` if the runtime builds it */
  readonly description: string;
}

export interface SubagentContextSnapshot {
  readonly task: SubagentTask;
  readonly conversationSummary: string | null;
  /** Oldest first. */
  readonly recentTurns: readonly ConversationTurn[];
  /** Most relevant first. */
  readonly relevantMemoryFacts: readonly MemoryFact[];
  readonly agentInstructions: string;
  /** In mode `fork`: the conversation itself, without calls that are still running; otherwise empty. */
  readonly conversation: readonly ModelMessage[];
}

export interface ContextSnapshotInput {
  /** @defaultValue 'snapshot' */
  readonly mode?: ContextMode;
  readonly task: Omit<SubagentTask, 'description'> & Partial<Pick<SubagentTask, 'description'>>;
  readonly instructions: string;
  readonly conversation: ConversationLog;
  /** The number of recent turns to include. @defaultValue 10 */
  readonly recentTurns?: number;
  /** Writes the conversation's notes for the model in mode `fork`. @defaultValue notes without marks */
  readonly notes?: NoteWriter;
  /** The session's user, for mode `fork`: the authors of all other messages are named. @defaultValue none */
  readonly user?: string | undefined;
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

/** Builds the snapshot with the given facts. */
export function buildContextSnapshot(
  {
    mode = 'snapshot',
    task,
    instructions,
    conversation,
    recentTurns = 10,
    notes,
    user,
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
        ? conversation.toModelMessages({ openCalls: 'omit', user, reader, ...(notes && { notes }) })
        : [],
  };
}

/**
 * Builds the snapshot with the facts from memory that are relevant to the task. Does not query the memory in a mode
 * without facts. Rejects with the memory's error, or with a `ConfigurationError` if the memory does not return an array
 * of facts.
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

/** Checks only the properties that this file uses, because a memory may add others. */
const factsSchema = z.custom<readonly MemoryFact[]>(
  (facts) => z.array(z.looseObject({ text: z.string() })).safeParse(facts).success,
  { error: 'expected an array of facts' },
);

/** The maximum number of characters of each of the user's turns in a memory query. */
const MAX_QUERY_CHARS = 2000;

/** Returns the memory query: the text of the task and the user's latest turns. */
function factQuery({ task, conversation }: ContextSnapshotInput): string {
  const said = conversation.recentTurns(2).filter(({ role }) => role === 'user');
  return [
    task.description ?? '',
    JSON.stringify(Object.values(task.args)),
    ...said.map(({ content }) => clip(content, MAX_QUERY_CHARS)),
  ].join(' ');
}

/** The parts of a snapshot that the app's author wrote. */
interface AuthorsWords extends Pick<SubagentContextSnapshot, 'agentInstructions'> {
  readonly task: Pick<SubagentContextSnapshot['task'], 'toolName'>;
}

/** The conditions under which the subagent works; its system prompt states them. */
export interface WorkTerms {
  /** Absent if the agent has its own stop condition. */
  readonly maxSteps?: number | undefined;
  /** The tool with which the subagent submits its result. Absent if its last message is the result. */
  readonly handsInBy?: string | undefined;
  readonly asksUser: boolean;
  /** Whether any of its tools asks the user for approval. */
  readonly asksApproval: boolean;
  /** Describes the result. Absent if the result is text. */
  readonly shape?: string | undefined;
}

/**
 * Returns the system prompt, with its sections separated by blank lines. `notes` is null for a run that an earlier
 * version started; such a run's prompt quotes `known`.
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
      : [
          `You have ${maxSteps} steps; each of your answers uses one, whether it calls tools or not.`,
        ]),
  ].join(' ');
}

/** Returns the note about the conversation in which the task was given; null if nothing is known about it. */
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
  return note(sentence`The conversation so far, for background only.`, quotes);
}

/** Returns the note that contains the task; it is the last message before the first step. */
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
