// Ten APIs of language models, each used through its official package against a server from this repository. Describes
// only the differences that a suite for all of them must know.

import { createAlibaba } from '@ai-sdk/alibaba';
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createCohere } from '@ai-sdk/cohere';
import { createDeepSeek } from '@ai-sdk/deepseek';
import { createGoogle } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModel } from 'ai';
import type { ProviderApi } from '../../src/testing/index.ts';

export interface Wire {
  /** Without a trailing slash. */
  readonly url: string;
  readonly fetch: typeof globalThis.fetch;
}

export interface Provider {
  readonly name: string;
  /** The API whose rules the server applies to requests. @defaultValue none */
  readonly api?: ProviderApi;
  model(wire: Wire): LanguageModel;
  /** The path for streaming requests. */
  readonly path: string | RegExp;
  /** Returns the part that the model reads from the package's JSON for a tool result. @defaultValue the whole JSON */
  readonly resultIn?: (json: unknown) => unknown;
  /** Corrects lines in which the server differs from the API that it imitates. */
  readonly mend?: (line: string) => string;
  /** The API accepts an earlier answer that consists only of whitespace. @defaultValue false */
  readonly readsBlanks?: boolean;
  /** The server can send the reasoning along with its answers. @defaultValue true */
  readonly reasons?: boolean;
}

const apiKey = 'some-key';

/** Returns the error inside an object. */
function withoutError(json: unknown): unknown {
  return isError(json) ? json.error : json;
}

function isError(json: unknown): json is { readonly error: unknown } {
  return typeof json === 'object' && json !== null && 'error' in json;
}

export const providers: readonly Provider[] = [
  {
    name: 'openai responses',
    api: 'openai-responses',
    path: '/v1/responses',
    model: ({ url, fetch }) => createOpenAI({ baseURL: `${url}/v1`, apiKey, fetch })('gpt-5'),
    resultIn: withoutError,
    // This API's texts have ids and are sent back unchanged.
    readsBlanks: true,
    // The API reports why an answer is incomplete.
    mend: (line) =>
      line.replace(
        '"status":"incomplete"',
        '"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}',
      ),
  },
  {
    name: 'openai-compatible',
    api: 'qwen',
    path: '/v1/chat/completions',
    model: ({ url, fetch }) =>
      createOpenAICompatible({
        name: 'local',
        baseURL: `${url}/v1`,
        apiKey,
        fetch,
        includeUsage: true,
      })('qwen-3'),
  },
  {
    name: 'anthropic',
    api: 'anthropic',
    path: '/v1/messages',
    model: ({ url, fetch }) =>
      createAnthropic({ baseURL: `${url}/v1`, apiKey, fetch })('claude-sonnet-4-5'),
  },
  {
    name: 'google',
    api: 'google',
    path: /^\/v1beta\/models\/gemini-2\.5-flash:/,
    model: ({ url, fetch }) =>
      createGoogle({ baseURL: `${url}/v1beta`, apiKey, fetch })('gemini-2.5-flash'),
    // This API's results are objects, which contain the runtime's results.
    resultIn: (json) =>
      isError(json) ? json.error : (json as { readonly content: unknown }).content,
  },
  {
    name: 'cohere',
    path: '/v2/chat',
    model: ({ url, fetch }) =>
      createCohere({ baseURL: `${url}/v2`, apiKey, fetch })('command-a-03-2025'),
    // The API starts a text with an empty one and puts error messages at the top level.
    mend: (line) =>
      line
        .replace('{"content":{"type":"text"}}', '{"content":{"type":"text","text":""}}')
        .replace(/^\{"error":(\{.*\})\}$/s, '$1'),
    // The server would send the reasoning as text.
    reasons: false,
  },
];

/** More APIs, for which only the rules are tested. In all other respects, each is like one of the APIs above. */
export const ruledProviders: readonly Provider[] = [
  ...providers,
  {
    name: 'openai chat',
    api: 'openai-chat',
    path: '/v1/chat/completions',
    model: ({ url, fetch }) =>
      createOpenAI({ baseURL: `${url}/v1`, apiKey, fetch }).chat('gpt-4.1'),
    resultIn: withoutError,
    // This API does not send its models' reasoning.
    reasons: false,
  },
  {
    name: 'mistral',
    api: 'mistral',
    path: '/v1/chat/completions',
    model: ({ url, fetch }) =>
      createMistral({ baseURL: `${url}/v1`, apiKey, fetch })('mistral-large-latest'),
    reasons: false,
    // The API puts error messages at the top level.
    mend: (line) =>
      line.replace(
        /^\{"error":\{(.*)\}\}$/s,
        '{"object":"error","param":null,"code":null,"type":"invalid_request_error",$1}',
      ),
  },
  {
    name: 'deepseek',
    api: 'deepseek',
    path: '/v1/chat/completions',
    model: ({ url, fetch }) =>
      createDeepSeek({ baseURL: `${url}/v1`, apiKey, fetch })('deepseek-v4-pro'),
  },
  {
    name: 'qwen',
    api: 'qwen',
    path: '/v1/chat/completions',
    model: ({ url, fetch }) => createAlibaba({ baseURL: `${url}/v1`, apiKey, fetch })('qwen3-max'),
  },
  {
    name: 'bedrock',
    api: 'bedrock',
    path: /^\/model\/.*\/converse/,
    model: ({ url, fetch }) =>
      createAmazonBedrock({ baseURL: url, apiKey, region: 'us-east-1', fetch })(
        'anthropic.claude-sonnet-4-6',
      ),
    mend: (line) => line.replace(/^\{"error":(\{.*\})\}$/s, '$1'),
    reasons: false,
  },
];
