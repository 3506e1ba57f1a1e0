// Converts a prompt to the form that a provider's API requires. This happens right before the model receives the
// prompt, so that conversations and journals do not depend on the model.
//
// Owns:     the requirements of APIs that the provider's AI SDK package does not meet on its own.
// Does not: repair prompts that every API refuses (`providerRules` of `offstage/testing` detects them).

import { hashOf } from '../../values/storable.ts';
import type { Model } from './model.ts';

type Prompt = Parameters<Model['doGenerate']>[0]['prompt'];
type Message = Prompt[number];

/** Returns the model, with prompts converted to the form that its API accepts. */
export function suitedModel(model: Model): Model {
  const suit = suitOf(model);
  if (suit === null) return model;
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (call) => model.doGenerate({ ...call, prompt: suit(call.prompt) }),
    doStream: (call) => model.doStream({ ...call, prompt: suit(call.prompt) }),
  };
}

/** Many providers serve Mistral's models, so the check uses the model's id. */
const mistralIds = /mistral|mixtral|ministral|magistral|devstral|codestral|pixtral/i;

/** Returns how prompts are converted for a model; null if its API has no special requirements. */
function suitOf({ provider, modelId }: Model): ((prompt: Prompt) => Prompt) | null {
  if (provider.startsWith('mistral') || mistralIds.test(modelId)) return forMistral;
  if (/bedrock/i.test(provider)) return forBedrock;
  return null;
}

/**
 * Shortens call ids, and inserts an assistant message between a tool message and a user message. Mistral's errors: "Tool
 * call id was … but must be a-z, A-Z, 0-9, with a length of 9" (https://github.com/zed-industries/zed/issues/53034),
 * "Unexpected role 'user' after role 'tool'" (https://github.com/mistralai/mistral-common/issues/169).
 */
function forMistral(prompt: Prompt): Prompt {
  return prompt.flatMap((message, index) => {
    const suited = withShortIds(message);
    return message.role === 'user' && prompt[index - 1]?.role === 'tool'
      ? [{ role: 'assistant', content: [{ type: 'text', text: '…' }] }, suited]
      : [suited];
  });
}

function withShortIds(message: Message): Message {
  if (message.role === 'assistant')
    return {
      ...message,
      content: message.content.map((part) =>
        part.type === 'tool-call' ? { ...part, toolCallId: shortId(part.toolCallId) } : part,
      ),
    };
  if (message.role !== 'tool') return message;
  return {
    ...message,
    content: message.content.map((part) =>
      part.type === 'tool-result' ? { ...part, toolCallId: shortId(part.toolCallId) } : part,
    ),
  };
}

/** Leaves Mistral's own ids unchanged, and shortens all others. */
function shortId(id: string): string {
  return /^[a-zA-Z0-9]{9}$/.test(id) ? id : hashOf(id).slice(0, 9);
}

/**
 * Puts a user message at the start of the prompt. Bedrock's error: "A conversation must start with a user message"
 * (https://github.com/langgenius/dify/issues/12340).
 */
function forBedrock(prompt: Prompt): Prompt {
  const first = prompt.findIndex(({ role }) => role !== 'system');
  if (first < 0 || prompt[first]?.role === 'user') return prompt;
  return prompt.toSpliced(first, 0, {
    role: 'user',
    content: [{ type: 'text', text: '[The user has not said anything yet.]' }],
  });
}
