// Converts the conversation for models: to the messages of a text model (AI SDK), and to the items that a
// voice transport replays after a reconnect.
//
// Invariants
//   MODEL-MESSAGES-1. Every tool call is followed by its result before any other message: the SDK refuses a
//       history with a missing result. A call in flight gets a placeholder that says so, or is left out.
//   MODEL-MESSAGES-2. A failed call keeps its error.
//   MODEL-MESSAGES-3. Unfinished speech is left out.
//   MODEL-MESSAGES-4. The arguments of a call are an object, whatever the model wrote.
//   MODEL-MESSAGES-5. Words of the user, and results, appear unchanged, except for the key of genuine notes.

import type { ModelMessage } from 'ai';
import { asArguments } from '../../values/json.ts';
import { shortNameOf, unmarkedNotes, type NoteWriter } from '../notes/note-marks.ts';
import { note as noteOf, promptText, sentence, type Note } from '../notes/note.ts';
import {
  isFailed,
  isMessage,
  messageText,
  toolOutputText,
  type ConversationItem,
  type ToolCallItem,
  type ToolResultItem,
} from './items.ts';

export interface ModelMessageOptions {
  /**
   * Writes notes, with their marks. Its `systemAs` determines their role: many providers refuse a system
   * message in mid-conversation, and the SDK requires `allowSystemInMessages` for it.
   * @defaultValue notes without marks, as user messages
   */
  readonly notes?: NoteWriter;
  /**
   * The treatment of calls without a result.
   * @defaultValue 'pending': a placeholder answers them
   */
  readonly openCalls?: 'pending' | 'omit';
}

const defaultPendingText = 'Still running. There is no result yet.';

type ToolPart = Extract<
  Extract<ModelMessage, { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>;

/** Returns the messages of a text model. */
export function toModelMessages(
  items: readonly ConversationItem[],
  preamble: readonly Note[],
  { notes = unmarkedNotes, openCalls = 'pending' }: ModelMessageOptions = {},
): ModelMessage[] {
  const results = new Map<string, ToolResultItem>();
  for (const item of items) if (item.role === 'tool_result') results.set(item.callId, item);

  const messages: ModelMessage[] = [];
  let texts: string[] = [];
  let calls: ToolCallItem[] = [];

  const note = (id: string, said: Note): void => {
    for (const { role, text } of notes.messages(said, id)) messages.push({ role, content: text });
  };
  /** The form of earlier versions. */
  const oldNote = (text: string): void => {
    messages.push(
      notes.systemAs === 'system'
        ? { role: 'system', content: text }
        : { role: 'user', content: asNote(text) },
    );
  };
  const endStep = (): void => {
    if (texts.length + calls.length > 0) {
      messages.push({
        role: 'assistant',
        content: [
          ...texts.map((text) => ({ type: 'text' as const, text })),
          ...calls.map(({ callId, toolName, args }) => ({
            type: 'tool-call' as const,
            toolCallId: callId,
            toolName,
            input: asArguments(args),
          })),
        ],
      });
    }
    if (calls.length > 0) {
      messages.push({
        role: 'tool',
        content: calls.map((call) => toolPart(call, results.get(call.callId), notes)),
      });
    }
    texts = [];
    calls = [];
  };

  for (const said of preamble) note(preambleId(said), said);
  for (const item of items) {
    if (item.role === 'tool_call') {
      if (openCalls === 'omit' && !results.has(item.callId)) continue;
      calls.push(item);
    } else if (item.role === 'tool_result') {
      // The result itself was added after its call; the model's step ended here.
      if (calls.some(({ callId }) => callId === item.callId)) endStep();
    } else if (item.role === 'transfer') {
      endStep();
      note(item.id, transferNote(item));
    } else if (isMessage(item) && !item.partial && item.text.trim() !== '') {
      // Text that follows a call belongs to the next step.
      if (item.role !== 'assistant' || calls.length > 0) endStep();
      if (item.note) note(item.id, item.note);
      else if (item.role === 'assistant') texts.push(messageText(item));
      else if (item.role === 'user')
        messages.push({ role: 'user', content: notes.guard(messageText(item)) });
      else oldNote(messageText(item));
    }
  }
  endStep();
  return messages;
}

/** The form of earlier versions. */
function asNote(text: string): string {
  return text.startsWith('[SYSTEM') ? text : `[SYSTEM: ${text}]`;
}

/** Returns the note about a change of the lead agent. */
export function transferNote({ from, to }: { readonly from: string; readonly to: string }): Note {
  return noteOf(sentence`The conversation was handed from one agent to another.`, { from, to });
}

/**
 * Returns the first notes for a model: the summary, and the number of items that were dropped without one.
 */
export function preambleOf(summary: string | null, evicted: number): readonly Note[] {
  return [
    ...(summary === null
      ? []
      : [
          noteOf(sentence`Context summary: it stands for the conversation before this.`, {
            summary,
          }),
        ]),
    ...(evicted > 0
      ? [noteOf(sentence`${evicted} earlier items of this conversation are not included.`)]
      : []),
  ];
}

/** Returns the id of a preamble note; a different summary has a different id. */
function preambleId(said: Note): string {
  return `preamble_${shortNameOf(promptText(said))}`;
}

function toolPart(
  call: ToolCallItem,
  result: ToolResultItem | undefined,
  notes: NoteWriter,
): ToolPart {
  const { callId: toolCallId, toolName } = call;
  return { type: 'tool-result', toolCallId, toolName, output: outputOf(call, result, notes) };
}

function outputOf(
  call: ToolCallItem,
  result: ToolResultItem | undefined,
  notes: NoteWriter,
): ToolPart['output'] {
  if (!result) return { type: 'text', value: call.pendingText ?? defaultPendingText };
  const { output } = result;
  if (output.type === 'error') return { type: 'error-text', value: notes.guard(output.message) };
  const { value, failed = false } = output;
  if (typeof value === 'string')
    return { type: failed ? 'error-text' : 'text', value: notes.guard(value) };
  return { type: failed ? 'error-json' : 'json', value: notes.guardJson(value) };
}

export type ReplayItem =
  | {
      readonly type: 'message';
      readonly itemId: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /** The note; absent for a message, or a note of an earlier version. */
      readonly note?: Note;
    }
  | {
      readonly type: 'tool_call';
      readonly callId: string;
      readonly toolName: string;
      /** JSON text of an object. */
      readonly arguments: string;
      /** Whether it has no result yet. */
      readonly open: boolean;
    }
  | {
      readonly type: 'tool_result';
      readonly callId: string;
      readonly output: string;
      readonly isError: boolean;
    };

/**
 * Returns the conversation for a voice transport after a reconnect, so that the model continues where it was:
 * messages, tool calls and their outputs (errors too). A call in flight stays open: its answer is still to
 * come, under the same id.
 */
export function toReplay(
  items: readonly ConversationItem[],
  preamble: readonly Note[],
): readonly ReplayItem[] {
  const answered = new Set<string>();
  for (const item of items) if (item.role === 'tool_result') answered.add(item.callId);

  const replay: ReplayItem[] = preamble.map((note) => ({
    type: 'message',
    itemId: preambleId(note),
    role: 'system',
    text: promptText(note),
    note,
  }));
  for (const item of items) {
    if (isMessage(item)) {
      // The new connection can know an unfinished utterance only by the words understood so far.
      if (item.text.trim() === '') continue;
      const { id: itemId, role, note } = item;
      const text = messageText(item);
      replay.push({ type: 'message', itemId, role, text, ...(note && { note }) });
    } else if (item.role === 'transfer') {
      const note = transferNote(item);
      const text = promptText(note);
      replay.push({ type: 'message', itemId: item.id, role: 'system', text, note });
    } else if (item.role === 'tool_call') {
      replay.push({
        type: 'tool_call',
        callId: item.callId,
        toolName: item.toolName,
        arguments: JSON.stringify(asArguments(item.args)),
        open: !answered.has(item.callId),
      });
    } else {
      replay.push({
        type: 'tool_result',
        callId: item.callId,
        output: toolOutputText(item.output),
        isError: isFailed(item.output),
      });
    }
  }
  return replay;
}
