// Converts an item of a client to one of the conversation: in the form for the client, and in the form for
// the model.

import type { InputItem } from './client-schemas.ts';
import type { ConversationItem, Remembered, RememberedPart } from './conversation.ts';
import type { WireItem } from './wire-events.ts';

type GivenItem = Exclude<InputItem, { type: 'item_reference' }>;
type GivenMessage = Extract<GivenItem, { type: 'message' }>;
type GivenPart = GivenMessage['content'][number];

export interface NewItemTools {
  readonly newId: (prefix: string) => string;
  readonly decode: (base64: string) => Int16Array;
  /** Returns the words in a sound; never rejects. */
  readonly hear: (samples: Int16Array) => Promise<string>;
}

export function toConversationItem(given: GivenItem, tools: NewItemTools): ConversationItem {
  const id = given.id ?? tools.newId('item');
  const fields = { id, status: 'completed' as const };
  switch (given.type) {
    case 'message':
      return toMessage(given, fields, tools);
    case 'function_call': {
      const callId = given.call_id ?? tools.newId('call');
      const { name, arguments: text } = given;
      return {
        id,
        wire: { ...fields, type: 'function_call', call_id: callId, name, arguments: text },
        remembered: { kind: 'call', callId, name, arguments: text },
        sound: [],
      };
    }
    case 'function_call_output': {
      const { call_id: callId, output } = given;
      return {
        id,
        wire: { ...fields, type: 'function_call_output', call_id: callId, output },
        remembered: { kind: 'answer', callId, output },
        sound: [],
      };
    }
  }
}

function toMessage(
  given: GivenMessage,
  fields: { readonly id: string; readonly status: 'completed' },
  { decode, hear }: NewItemTools,
): ConversationItem {
  const sound: Int16Array[] = [];
  const parts = given.content.map((part: GivenPart): RememberedPart => {
    if (part.type === 'input_image') return { type: 'image', url: part.image_url };
    if (part.type === 'output_audio') return { type: 'text', text: part.transcript };
    if (part.type !== 'input_audio') return { type: 'text', text: part.text };
    const samples = decode(part.audio);
    sound.push(samples);
    return { type: 'sound', words: hear(samples) };
  });
  const remembered: Remembered = { kind: 'message', role: given.role, parts };
  return { id: fields.id, wire: wireMessage(given, fields), remembered, sound };
}

/** Sound is shown only when it is retrieved. */
function wireMessage(
  given: GivenMessage,
  fields: { readonly id: string; readonly status: 'completed' },
): WireItem {
  switch (given.role) {
    case 'system':
      return { ...fields, type: 'message', role: 'system', content: given.content };
    case 'assistant':
      return { ...fields, type: 'message', role: 'assistant', content: given.content };
    case 'user':
      return {
        ...fields,
        type: 'message',
        role: 'user',
        content: given.content.map((part) =>
          part.type === 'input_audio'
            ? { type: 'input_audio' as const, transcript: part.transcript ?? null }
            : part,
        ),
      };
  }
}
