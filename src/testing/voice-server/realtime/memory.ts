// The memory of a Realtime session as a test sees it, and the cause of its current turn.

import type { ConversationItem, Remembered } from '../../../adapters/local-voice/conversation.ts';
import type { InputItem } from '../../../adapters/local-voice/client-events.ts';
import type { FakeItem, VoiceCause } from '../engine/control.ts';

/** Facts about items that the protocol does not contain. */
export interface ItemNotes {
  /** The user's words, by item. */
  readonly spoken: ReadonlyMap<string, string>;
  /** The items that the model has generated. */
  readonly generated: ReadonlySet<string>;
}

export function fakeItems(items: readonly ConversationItem[], notes: ItemNotes): FakeItem[] {
  return items.flatMap((item) => toFakeItems(item, notes));
}

function toFakeItems({ id, remembered }: ConversationItem, notes: ItemNotes): FakeItem[] {
  switch (remembered.kind) {
    case 'call': {
      const { callId, name, arguments: text } = remembered;
      return [{ kind: 'call', id, callId, name, arguments: text }];
    }
    case 'answer': {
      const { callId, output } = remembered;
      return [{ kind: 'result', id, callId, output, scheduling: null }];
    }
    case 'message': {
      const images = remembered.parts.flatMap((part): FakeItem[] =>
        part.type === 'image'
          ? [{ kind: 'image', id, mediaType: /^data:([^;,]*)/.exec(part.url)?.[1] ?? '' }]
          : [],
      );
      if (images.length === remembered.parts.length && images.length > 0) return images;
      const isSpeech = notes.spoken.has(id) || notes.generated.has(id);
      const via = isSpeech ? 'speech' : 'conversation.item.create';
      const text = notes.spoken.get(id) ?? textOf(remembered);
      return [{ kind: 'message', id, role: remembered.role, text, via }, ...images];
    }
  }
}

/** Derives the cause of a turn from the newest item. */
export function causeOf(items: readonly ConversationItem[], notes: ItemNotes): VoiceCause {
  const item = items.at(-1);
  if (item === undefined) return { type: 'nothing' };
  const spoken = notes.spoken.get(item.id);
  if (spoken !== undefined) return { type: 'utterance', text: spoken };
  return causeOfRemembered(item.remembered, items);
}

function causeOfRemembered(newest: Remembered, items: readonly ConversationItem[]): VoiceCause {
  switch (newest.kind) {
    case 'call':
      return { type: 'nothing' };
    case 'answer': {
      const { callId, output } = newest;
      return { type: 'result', callId, name: nameOfCall(items, callId), output };
    }
    case 'message':
      if (newest.role === 'assistant') return { type: 'nothing' };
      return { type: 'message', role: newest.role, text: textOf(newest) };
  }
}

/** Derives the cause of a response that has its own input from the last item of that input. */
export function causeOfInput(input: readonly InputItem[], items: readonly FakeItem[]): VoiceCause {
  const given = input.at(-1);
  if (given === undefined) return { type: 'nothing' };
  switch (given.type) {
    case 'message': {
      const text = given.content
        .map((part) => ('text' in part ? part.text : 'transcript' in part ? part.transcript : ''))
        .join('');
      return { type: 'message', role: given.role, text };
    }
    case 'function_call_output':
      return { type: 'result', callId: given.call_id, name: '', output: given.output };
    case 'function_call':
      return { type: 'nothing' };
    case 'item_reference': {
      const item = items.find(({ id }) => id === given.id);
      if (item?.kind !== 'message') return { type: 'nothing' };
      return { type: 'message', role: item.role, text: item.text };
    }
  }
}

/** Returns the calls without a result. */
export function openCalls(
  items: readonly ConversationItem[],
): { readonly callId: string; readonly name: string }[] {
  const remembered = items.map((item) => item.remembered);
  const answered = new Set(
    remembered.flatMap((item) => (item.kind === 'answer' ? [item.callId] : [])),
  );
  return remembered.flatMap((item) =>
    item.kind === 'call' && !answered.has(item.callId)
      ? [{ callId: item.callId, name: item.name }]
      : [],
  );
}

function nameOfCall(items: readonly ConversationItem[], callId: string): string {
  for (const { remembered } of items) {
    if (remembered.kind === 'call' && remembered.callId === callId) return remembered.name;
  }
  return '';
}

function textOf(message: Extract<Remembered, { kind: 'message' }>): string {
  return message.parts
    .map((part) => {
      if (part.type === 'text') return part.text;
      return part.type === 'speech' ? part.words.text() : '';
    })
    .join('');
}
