// Formats a model call as text: exactly what the model receives, in separate blocks. Two calls share their first blocks
// as far as a provider could share its cache for them.

import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider';
import type { FakeItem, VoiceTurn } from '../../src/testing/voice-server/index.ts';

/** The part of a call that a model reads. */
export type ModelInput = Pick<
  LanguageModelV4CallOptions,
  'prompt' | 'tools' | 'toolChoice' | 'responseFormat'
>;

/** Returns the blocks of the call: its tools, the required form of the answer, and each message. */
export function blocksOf({
  prompt,
  tools = [],
  toolChoice,
  responseFormat,
}: ModelInput): readonly string[] {
  const offered = tools.flatMap((tool) =>
    tool.type === 'function'
      ? [`${tool.name}: ${tool.description ?? ''}\n  ${JSON.stringify(tool.inputSchema)}`]
      : [],
  );
  const system = prompt.filter(({ role }, at) => role === 'system' && at === 0);
  const rest = prompt.slice(system.length);
  const shape = responseFormat?.type === 'json' ? responseFormat.schema : undefined;
  const choice = toolChoice === undefined || toolChoice.type === 'auto' ? null : toolChoice;
  return [
    ...system.map(messageText),
    `<<tools>>\n${offered.length === 0 ? '(none)' : offered.join('\n')}`,
    ...(choice === null ? [] : [`<<tool choice>>\n${JSON.stringify(choice)}`]),
    ...(shape === undefined ? [] : [`<<the answer must be JSON>>\n${JSON.stringify(shape)}`]),
    ...rest.map(messageText),
  ];
}

function messageText(message: LanguageModelV4Message): string {
  if (message.role === 'system') return `<<system>>\n${message.content}`;
  const parts = message.content.map((part) => {
    if (part.type === 'text') return part.text;
    if (part.type === 'reasoning') return `(thinking) ${part.text}`;
    if (part.type === 'tool-call')
      return `-> calls ${part.toolName} ${JSON.stringify(part.input)} (${part.toolCallId})`;
    if (part.type !== 'tool-result') return `(${part.type})`;
    const { output } = part;
    const value = 'value' in output ? output.value : output;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `result of ${part.toolName} (${part.toolCallId}): ${text}`;
  });
  return `<<${message.role}>>\n${parts.join('\n')}`;
}

/** Returns what the voice model of a fake server has read at the start of a turn. */
export function inputOfTurn({ cause, instructions, model }: VoiceTurn): ModelInput {
  const { items, tools } = model;
  const heard = items.findLast((item) => item.kind === 'message' && item.role === 'user');
  const isMissing =
    cause.type === 'utterance' &&
    cause.text !== '' &&
    !(heard?.kind === 'message' && heard.text === cause.text);
  return {
    prompt: [
      // A response that has its own instructions does not read the session's instructions.
      { role: 'system', content: instructions ?? model.instructions },
      ...items.flatMap((item) => messageOf(item, items)),
      ...(isMissing
        ? [{ role: 'user' as const, content: [{ type: 'text' as const, text: cause.text }] }]
        : []),
    ],
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      description,
      inputSchema: parameters ?? {},
    })),
  };
}

function messageOf(item: FakeItem, items: readonly FakeItem[]): readonly LanguageModelV4Message[] {
  switch (item.kind) {
    case 'message':
      if (item.text === '') return [];
      return item.role === 'system'
        ? [{ role: 'system', content: item.text }]
        : [{ role: item.role, content: [{ type: 'text', text: item.text }] }];
    case 'call': {
      const { callId: toolCallId, name: toolName } = item;
      const input = JSON.parse(item.arguments || '{}') as unknown;
      return [{ role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, input }] }];
    }
    case 'result': {
      const { callId: toolCallId, output } = item;
      const call = items.find((each) => each.kind === 'call' && each.callId === toolCallId);
      const value = typeof output === 'string' ? output : JSON.stringify(output);
      const toolName = call?.kind === 'call' ? call.name : '';
      const result = { type: 'tool-result', toolCallId, toolName } as const;
      return [{ role: 'tool', content: [{ ...result, output: { type: 'text', value } }] }];
    }
    case 'image':
      return [];
  }
}
