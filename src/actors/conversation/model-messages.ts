// Converts the conversation for models: to the messages of a text model (AI SDK), and to the items that a
// voice transport replays after a reconnect.
//
// Invariants
//   MODEL-MESSAGES-1. Every tool call is followed by its result before any other message: the SDK refuses a history
//       with a missing result. A running call is answered by a placeholder, or is omitted.
//   MODEL-MESSAGES-2. A failed call keeps its error.
//   MODEL-MESSAGES-3. Unfinished speech is omitted.
//   MODEL-MESSAGES-4. A call's arguments are always an object, even if the model wrote none.
//   MODEL-MESSAGES-5. The user's words and all results appear unchanged, except that the session's secret note key is
//       removed from them.
//   MODEL-MESSAGES-6. The text and calls of one response are in one message. If the response is sent to the provider
//       that wrote it, the provider's reasoning, signatures and ids are included in their original order. Any other
//       provider receives only the text and the calls.

import type { AssistantContent, ModelMessage } from 'ai';
import type { EchoPart } from '../../values/echo.ts';
import { propertiesOf } from '../../values/json.ts';
import { shortNameOf, unmarkedNotes, type NoteWriter } from '../notes/note-marks.ts';
import { note as noteOf, promptText, sentence, type Note } from '../notes/note.ts';
import {
  isFailed,
  isMessage,
  messageText,
  toolOutputText,
  type ConversationItem,
  type MessageItem,
  type ToolCallItem,
  type ToolResultItem,
} from './items.ts';

export interface ModelMessageOptions {
  /**
   * Writes the notes, with their marks. Its `systemAs` determines the role of notes, because many providers refuse a
   * system message in the middle of a conversation, and the SDK requires `allowSystemInMessages` for it.
   * @defaultValue notes without marks, as user messages
   */
  readonly notes?: NoteWriter;
  /**
   * How calls without a result are handled.
   * @defaultValue 'pending': a placeholder answers them
   */
  readonly openCalls?: 'pending' | 'omit';
  /** The session's user. A note before a message of another identity names its author. @defaultValue none: no such notes */
  readonly user?: string | undefined;
  /** The provider that reads the messages. Its own data is sent back to it. @defaultValue none: only text and calls */
  readonly reader?: Reader | undefined;
}

const defaultPendingText = 'Still running. There is no result yet.';

type ToolPart = Extract<
  Extract<ModelMessage, { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>;

/** Returns the messages for a text model. */
export function toModelMessages(
  items: readonly ConversationItem[],
  preamble: readonly Note[],
  { notes = unmarkedNotes, openCalls = 'pending', user, reader }: ModelMessageOptions = {},
): ModelMessage[] {
  const results = new Map<string, ToolResultItem>();
  for (const item of items) if (item.role === 'tool_result') results.set(item.callId, item);

  const messages: ModelMessage[] = [];
  let said: (MessageItem | ToolCallItem)[] = [];
  let calls: ToolCallItem[] = [];

  const note = (id: string, one: Note): void => {
    for (const { role, text } of notes.messages(one, id)) messages.push({ role, content: text });
  };
  /** Notes that earlier versions stored. */
  const oldNote = (text: string): void => {
    messages.push(
      notes.systemAs === 'system'
        ? { role: 'system', content: text }
        : { role: 'user', content: asNote(text) },
    );
  };
  const endStep = (): void => {
    const content = contentOf(said, reader);
    if (content.length > 0) messages.push({ role: 'assistant', content });
    if (calls.length > 0) {
      messages.push({
        role: 'tool',
        content: calls.map((call) => toolPart(call, results.get(call.callId), notes)),
      });
    }
    said = [];
    calls = [];
  };

  for (const one of preamble) note(preambleId(one), one);
  for (const item of items) {
    if (item.role === 'tool_call') {
      if (openCalls === 'omit' && !results.has(item.callId)) continue;
      calls.push(item);
      said.push(item);
    } else if (item.role === 'tool_result') {
      // A result is added at the same time as its call, so a result for one of these calls ends the model's step.
      if (calls.some(({ callId }) => callId === item.callId)) endStep();
    } else if (item.role === 'transfer') {
      endStep();
      note(item.id, transferNote(item));
    } else if (isMessage(item) && !item.partial && (item.text.trim() !== '' || item.echo)) {
      // Text that follows another response's call belongs to the next step.
      const isOfStep = calls.every(({ responseId }) => responseId === item.id);
      if (item.role !== 'assistant' || !isOfStep) endStep();
      if (item.note) note(item.id, item.note);
      else if (item.role === 'assistant') said.push(item);
      else if (item.role === 'user') {
        if (user !== undefined && item.by !== undefined && item.by !== user)
          note(`${item.id}.by`, noteOf(WRITTEN_BY, { by: item.by }));
        messages.push({ role: 'user', content: notes.guard(messageText(item)) });
      } else oldNote(messageText(item));
    }
  }
  endStep();
  return messages;
}

type AssistantPart = Exclude<AssistantContent, string>[number];

/** The provider that reads the messages, and the current time. */
export interface Reader {
  /** The provider's name, as `providerOf` returns it. */
  readonly provider: string;
  readonly now: number;
}

/** Returns the parts of the responses as their provider wrote them (MODEL-MESSAGES-6). */
function contentOf(
  said: readonly (MessageItem | ToolCallItem)[],
  reader: Reader | undefined,
): AssistantPart[] {
  const responses = Map.groupBy(said, (item) =>
    isMessage(item) ? item.id : (item.responseId ?? item.id),
  );
  return [...responses.values()].flatMap((items) =>
    responseOf(items, reader !== undefined && isEchoed(items, reader)),
  );
}

function responseOf(
  items: readonly (MessageItem | ToolCallItem)[],
  echoes: boolean,
): AssistantPart[] {
  const message = items.find(isMessage);
  const text = message ? messageText(message) : '';
  const partsOf = ({ echo }: MessageItem | ToolCallItem) => (echoes ? (echo?.parts ?? []) : []);
  const spoken = items.flatMap(partsOf).filter((part) => part.type === 'text');
  const last = spoken.at(-1);
  const parts: AssistantPart[] = [];
  const say = (from: number, to: number | undefined, own?: OfProvider): void => {
    const words = text.slice(from, to);
    // Some providers refuse white space before a call, even if they wrote it themselves.
    if (words.trim() !== '' || own) parts.push({ type: 'text', text: words, ...own });
  };
  const echo = (part: EchoPart, call: ToolCallItem | null): void => {
    // If the text was cut, the marker is appended to its last part.
    if (part.type === 'text') say(part.from, part === last ? undefined : part.to, ownOf(part));
    else if (part.type !== 'tool-call') parts.push(part);
    else if (call) parts.push({ ...callPart(call), ...ownOf(part) });
  };
  for (const item of items) {
    // The text before the provider's first text part.
    if (isMessage(item)) say(0, spoken[0]?.from);
    else if (partsOf(item).length === 0) parts.push(callPart(item));
    else for (const part of partsOf(item)) echo(part, item);
  }
  if (message) for (const part of partsOf(message)) echo(part, null);
  return parts;
}

type OfProvider = Pick<EchoPart, 'providerOptions'>;

function ownOf({ providerOptions }: OfProvider): OfProvider | undefined {
  return providerOptions && { providerOptions };
}

function callPart({ callId: toolCallId, toolName, args }: ToolCallItem) {
  return { type: 'tool-call' as const, toolCallId, toolName, input: propertiesOf(args) };
}

/** How long an item can be referred to by its id: providers delete stored responses after a few weeks. */
const REFERENCE_MS = 86_400_000;

/**
 * Returns whether the provider's own data for this response is sent back to it. If the provider stores the response (as
 * OpenAI does with `store`), its item ids are used for only a day. They are not used if the response was cut off.
 * Otherwise, the response is sent without the provider's data.
 */
function isEchoed(
  items: readonly (MessageItem | ToolCallItem)[],
  { provider, now }: Reader,
): boolean {
  const echoes = items.flatMap(({ echo }) => echo ?? []);
  if (echoes.length === 0 || echoes.some((echo) => echo.provider !== provider)) return false;
  const refers = echoes
    .flatMap(({ parts }) => parts)
    .some(({ providerOptions = {} }) =>
      Object.values(providerOptions).some((own) => typeof own['itemId'] === 'string'),
    );
  const message = items.find(isMessage);
  const last = items.findLast((item) => item.role === 'tool_call');
  const isWhole = message ? message.echo !== undefined : last?.isFollowed !== true;
  return !refers || (isWhole && items.every(({ at }) => now - at < REFERENCE_MS));
}

/** Notes that earlier versions stored. */
function asNote(text: string): string {
  return text.startsWith('[SYSTEM') ? text : `[SYSTEM: ${text}]`;
}

const WRITTEN_BY = sentence`The next message that is not a note is from another participant, the quoted "by", and not from the session's user.`;

const TAKE_OVER = sentence` You are the quoted "to": reply to the user's last words, and say nothing of the handover. Running work reports by itself.`;

/** Returns the note about a change of the lead agent. `act`: the instruction for the agent that takes the lead. */
export function transferNote({ from, to }: { from: string; to: string }, act = TAKE_OVER): Note {
  return noteOf(sentence`The conversation was handed from one agent to another.${act}`, {
    from,
    to,
  });
}

/**
 * Returns the notes at the beginning of a conversation: the summary, and the number of items that were dropped without
 * a summary.
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

/** Returns the id of one of these first notes; the id depends on the text of the note. */
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
      /** The note; absent for a message, or a note from an earlier version. */
      readonly note?: Note;
    }
  | {
      readonly type: 'tool_call';
      readonly callId: string;
      readonly toolName: string;
      /** The arguments, as the JSON text of an object. */
      readonly arguments: string;
      readonly open: boolean;
    }
  | {
      readonly type: 'tool_result';
      readonly callId: string;
      readonly output: string;
      readonly isError: boolean;
    };

/**
 * Returns the conversation for a voice transport after a reconnect: messages, tool calls and their outputs, including
 * errors. A running call stays open: its output follows later under the same id.
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
      // If an utterance was unfinished, the new connection receives the words that were recognised so far.
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
        arguments: JSON.stringify(propertiesOf(item.args)),
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
