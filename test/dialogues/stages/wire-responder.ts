// The demo's rules as the voice model of a fake voice server. The model's memory becomes the prompt that a text model
// would get, and the reply that the rules return is spoken and its calls are made. The same code serves every wire.

import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { readConversation } from '../../../examples/voice-demo/rules/conversation.ts';
import { leadReply } from '../../../examples/voice-demo/rules/lead.ts';
import type {
  FakeItem,
  VoiceResponder,
  VoiceCause,
  VoiceStep,
  VoiceTurn,
} from '../../../src/testing/voice-server/index.ts';

/** A typed message on a wire that has no role for it. */
const typed = /^The user writes: ("(?:.*)")$/s;
/** The tools to which the lead model delegates on a wire that declares none. */
const demoTools = ['book_ride', 'book_table', 'generate_report', 'refund_order', 'check_order'];
const THINKING_MS = 150;
/** OpenAI Live separates replies by pauses. */
const LIVE_PAUSE_MS = 1000;

export interface ResponderOptions {
  /** @defaultValue the demo's rules */
  readonly reply?: typeof leadReply;
  /** The app's tools to which the lead model delegates. @defaultValue the demo's */
  readonly tools?: readonly string[];
}

export function wireResponder({
  reply: replyTo = leadReply,
  tools = demoTools,
}: ResponderOptions = {}): VoiceResponder {
  return (turn) => {
    const { cause, instructions, model } = turn;
    const exactly = /Say exactly ("(?:[^"\\]|\\.)*"), and nothing else/.exec(
      instructions ?? '',
    )?.[1];
    if (exactly !== undefined)
      return [{ waitMs: THINKING_MS }, { say: JSON.parse(exactly) as string }];
    const delegations = delegationsOf(turn);
    const prompt: LanguageModelV4Prompt = [
      {
        role: 'system',
        content: [model.instructions, instructions ?? '', told(cause)].join('\n\n'),
      },
      ...inOrder(cause, model.items).flatMap((item) => messageOf(item, model.items, delegations)),
      ...missing(cause, model.items),
    ];
    const names =
      model.wire === 'openai-live'
        ? [...tools, 'running_task', 'settle_question']
        : model.tools.map(({ name }) => name);
    const isUnasked = cause.type === 'utterance' && model.wire !== 'openai-realtime';
    const { text, calls } = replyTo(readConversation(prompt), new Set(names), isUnasked);
    const steps: VoiceStep[] = [
      ...(text === '' ? [] : [{ say: text }]),
      ...calls.map(({ toolName, input }) => ({ call: toolName, arguments: input })),
    ];
    return [{ waitMs: model.wire === 'openai-live' ? LIVE_PAUSE_MS : THINKING_MS }, ...steps];
  };
}

/** A wire without instructions per response sends them as a message. Returns that message without its mark. */
function told(cause: VoiceCause): string {
  return cause.type === 'message' ? cause.text.replace(/^\[note \S+\] /, '') : '';
}

/** Returns the user's message in this turn if the wire has not added it to the memory yet. */
function missing(cause: VoiceCause, items: readonly FakeItem[]): readonly LanguageModelV4Message[] {
  if (cause.type !== 'utterance' || cause.text === '') return [];
  const last = items.findLast((item) => item.kind === 'message' && item.role === 'user');
  if (last?.kind === 'message' && last.text === cause.text) return [];
  return [{ role: 'user', content: [{ type: 'text', text: cause.text }] }];
}

/**
 * A delegation's result arrives while the model is speaking, but the next reply is about it, so this moves the result
 * to the end.
 */
function inOrder(cause: VoiceCause, items: readonly FakeItem[]): readonly FakeItem[] {
  const index = items.findLastIndex(
    (item) => cause.type === 'result' && item.kind === 'message' && item.text === cause.output,
  );
  return index < 0 ? items : [...items.toSpliced(index, 1), ...items.slice(index, index + 1)];
}

/**
 * The names of the tools by the text of their delegation results, because OpenAI Live remembers the results without
 * names.
 */
function delegationsOf({ cause, model }: VoiceTurn): ReadonlyMap<string, string> {
  const causes = [...model.replies.map((reply) => reply.cause), cause];
  return new Map(
    causes.flatMap((each) =>
      each.type === 'result' && typeof each.output === 'string' ? [[each.output, each.name]] : [],
    ),
  );
}

function callOf(callId: string, toolName: string, input: unknown): LanguageModelV4Message {
  return {
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: callId, toolName, input }],
  };
}

function resultOf(callId: string, toolName: string, value: string): LanguageModelV4Message {
  const output = { type: 'text', value } as const;
  return {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: callId, toolName, output }],
  };
}

function messageOf(
  item: FakeItem,
  items: readonly FakeItem[],
  delegations: ReadonlyMap<string, string>,
): readonly LanguageModelV4Message[] {
  switch (item.kind) {
    case 'message': {
      if (item.text === '') return [];
      const tool = delegations.get(item.text);
      if (tool !== undefined)
        return [callOf(item.id, tool, {}), resultOf(item.id, tool, item.text)];
      if (item.role === 'system') return [{ role: 'system', content: item.text }];
      const words = typed.exec(item.text)?.[1];
      const text = words === undefined ? item.text : (JSON.parse(words) as string);
      const role = words === undefined && item.role === 'assistant' ? 'assistant' : 'user';
      return [{ role, content: [{ type: 'text', text }] }];
    }
    case 'call':
      return [callOf(item.callId, item.name, JSON.parse(item.arguments || '{}') as unknown)];
    case 'result': {
      const { callId, output } = item;
      const call = items.find((each) => each.kind === 'call' && each.callId === callId);
      const value = typeof output === 'string' ? output : JSON.stringify(output);
      return [resultOf(callId, call?.kind === 'call' ? call.name : '', value)];
    }
    case 'image':
      return [];
  }
}
