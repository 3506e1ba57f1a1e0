// Converts a session to UI messages of the AI SDK: the transcript, one message per task with its questions, and data
// parts for deliveries.
//
// Owns:     the form of the messages and their chunks.
// Does not: know which messages a screen has (`chat-feed.ts`).
//
// Invariants
//   CHAT-MESSAGES-1. A view always belongs to the message with the same id, and a later message replaces an earlier
//       one.
//   CHAT-MESSAGES-2. All content is text or data: nothing from a session becomes markup, a link or a tool call of the
//       page.

import type { UIMessage, UIMessageChunk } from 'ai';
import type {
  AnswerReceipt,
  DeliveryView,
  QuestionView,
  SessionState,
  SubagentView,
  TranscriptItem,
} from '../actors/contracts/session-views.ts';

/** A question or an approval in a message. */
export interface ChatQuestion extends QuestionView {
  /** The receipt for an answer that was given through this transport, or null. */
  readonly receipt: AnswerReceipt | 'pending' | null;
}

/** The data parts of a session's messages: `data-subagent`, `data-question` and so on. */
// This is a type instead of an interface because it must match the record that the AI SDK expects.
export type SessionDataParts = {
  /** A task. The parts of its subagents follow in the same message. */
  subagent: SubagentView;
  /** A subagent's question or approval, inside the message of its task. */
  question: ChatQuestion;
  /** A result or notice that could not be spoken. */
  delivery: DeliveryView;
  /** User input from a source other than this chat: speech, or another tab. */
  transcript: TranscriptItem;
};

/** The metadata of a session's message in a chat. */
export interface SessionMessageMetadata {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The user interrupted this message: `text` contains only what the user heard. */
  readonly interrupted?: boolean;
  /** For a user's message: the identity that the app vouched for. */
  readonly by?: string;
  /** The results that the message reports. */
  readonly deliveryIds?: readonly string[];
}

/** The messages of `useChat` for a session: `useChat<SessionMessage>`. */
export type SessionMessage = UIMessage<SessionMessageMetadata, SessionDataParts>;

export type SessionChunk = UIMessageChunk<SessionMessageMetadata, SessionDataParts>;

type DataPart = {
  [Name in keyof SessionDataParts]: {
    readonly type: `data-${Name}`;
    readonly id: string;
    readonly data: SessionDataParts[Name];
  };
}[keyof SessionDataParts];

/** A message that has not been sent to a screen yet. */
export interface ChatMessage {
  readonly id: string;
  /** A user message is complete: `text` is its whole text. */
  readonly isOfUser: boolean;
  readonly metadata: SessionMessageMetadata;
  readonly text: string | null;
  /** False while the text may still grow. */
  readonly isFinal: boolean;
  readonly parts: readonly DataPart[];
  /** The views from which the message is made. The message is unchanged while they are the same objects as before. */
  readonly sources: readonly unknown[];
  /** The deliveries and questions to report as shown once a screen has received the message. */
  readonly shows: { readonly deliveries: readonly string[]; readonly questions: readonly string[] };
}

/** A chat's answers, by question id. */
export type Receipts = ReadonlyMap<string, Exclude<ChatQuestion['receipt'], null>>;

/** Returns a session's messages, ordered by time. */
export function chatMessages(state: SessionState, receipts: Receipts): readonly ChatMessage[] {
  const { transcript, deliveries } = state;
  const told = new Set(transcript.flatMap(deliveriesOf));
  return [
    ...transcript.filter(({ text, filler }) => text !== '' && !filler).map(spoken),
    ...tasks(state, receipts),
    ...deliveries
      .filter(({ card, kind, deliveryId }) => card && kind !== 'question' && !told.has(deliveryId))
      .map(cardOf),
  ].toSorted((a, b) => a.metadata.at - b.metadata.at);
}

function spoken(item: TranscriptItem): ChatMessage {
  const { id, role, by, text, at, final, interrupted } = item;
  const deliveryIds = deliveriesOf(item);
  return {
    id,
    isOfUser: role === 'user',
    text,
    isFinal: final,
    metadata: {
      at,
      ...(by !== undefined && { by }),
      ...(interrupted && { interrupted }),
      ...(deliveryIds.length > 0 && { deliveryIds }),
    },
    parts: role === 'user' ? [{ type: 'data-transcript', id, data: item }] : [],
    sources: [item],
    shows: { deliveries: deliveryIds, questions: [] },
  };
}

function deliveriesOf({ deliveryId, deliveryIds = [] }: TranscriptItem): readonly string[] {
  return [...new Set([...(deliveryId === undefined ? [] : [deliveryId]), ...deliveryIds])];
}

/** Returns one message per subagent of the lead agent. Each message includes all subagents under it. */
function tasks({ subagents, questions }: SessionState, receipts: Receipts): readonly ChatMessage[] {
  const byId = new Map(subagents.map((view) => [view.id, view]));
  const rootOf = (id: string): string => {
    let root = id;
    // If an ended parent has been dropped from the state, its subagent becomes a separate task.
    for (let view = byId.get(id); view; view = byId.get(view.parentId ?? '')) root = view.id;
    return root;
  };
  const members = Map.groupBy(subagents, ({ id }) => rootOf(id));
  const asked = Map.groupBy(questions, ({ subagentId }) => rootOf(subagentId));
  return [...new Set([...members.keys(), ...asked.keys()])].map((id) => {
    const working = members.get(id) ?? [];
    const asking = asked.get(id) ?? [];
    const answered = asking.map(({ requestId }) => receipts.get(requestId) ?? null);
    return {
      id,
      isOfUser: false,
      text: null,
      isFinal: true,
      metadata: { at: byId.get(id)?.startedAt ?? asking[0]?.askedAt ?? 0 },
      parts: [
        ...working.map((data) => ({ type: 'data-subagent' as const, id: data.id, data })),
        ...asking.map((view, index) => ({
          type: 'data-question' as const,
          id: view.requestId,
          data: { ...view, receipt: answered[index] ?? null },
        })),
      ],
      sources: [...working, ...asking, ...answered],
      shows: {
        deliveries: [],
        questions: asking
          .filter(({ state }) => state === 'presenting')
          .map(({ requestId }) => requestId),
      },
    };
  });
}

function cardOf(data: DeliveryView): ChatMessage {
  const { deliveryId: id, text, at, state } = data;
  const isOver = ['delivered', 'dismissed', 'dropped'].includes(state);
  return {
    id,
    isOfUser: false,
    text,
    isFinal: true,
    metadata: { at, deliveryIds: [id] },
    parts: [{ type: 'data-delivery', id, data }],
    sources: [data],
    shows: { deliveries: isOver ? [] : [id], questions: [] },
  };
}

/** Returns whether two messages look the same on a screen. */
export function isSameMessage(one: ChatMessage, other: ChatMessage): boolean {
  return (
    (one.sources.length === other.sources.length &&
      one.sources.every((source, index) => source === other.sources[index])) ||
    // After a reconnect, all views are new objects.
    (one.isFinal === other.isFinal &&
      one.text === other.text &&
      JSON.stringify([one.metadata, one.parts]) === JSON.stringify([other.metadata, other.parts]))
  );
}

/** The id of the message's only text. */
export const TEXT_ID = 'text';

/** Returns the chunks of a whole message. A text that is not final stays open. */
export function chunksOf(message: ChatMessage): readonly SessionChunk[] {
  const { id, text, parts, isFinal, isOfUser, metadata } = message;
  return [
    { type: 'start', messageId: id, messageMetadata: metadata },
    ...(text === null || isOfUser
      ? []
      : ([
          { type: 'text-start', id: TEXT_ID },
          { type: 'text-delta', id: TEXT_ID, delta: text },
          ...(isFinal ? [{ type: 'text-end', id: TEXT_ID } as const] : []),
        ] as const)),
    ...parts,
  ];
}

/** Returns the message in the form that `useChat` stores. */
export function messageOfChat(message: ChatMessage): SessionMessage {
  const { id, isOfUser, text, parts, metadata } = message;
  const words = text === null ? [] : [{ type: 'text' as const, text, state: 'done' as const }];
  return {
    id,
    role: isOfUser ? 'user' : 'assistant',
    metadata,
    parts: isOfUser ? words : [...words, ...parts],
  };
}
