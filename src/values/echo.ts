// What a provider has to get back with the words and calls of a response: the model's reasoning, and the ids and
// signatures of the parts. Thinking models refuse a history in which a call stands without them.
//
// Owns:     the form in which they are kept, and how they are read off a stream of the AI SDK.
// Does not: keep the words and the calls themselves.
//
// Invariants
//   PROVIDER-ECHO-1. A part is kept as the provider wrote it, in the order of the response. What is no JSON is not kept.
//   PROVIDER-ECHO-2. A response whose parts carry nothing of their provider has no echo.

import type {
  AssistantContent,
  LanguageModel,
  ProviderMetadata,
  TextStreamPart,
  ToolSet,
} from 'ai';
import { z } from 'zod';
import { isProviderOptions } from './json.ts';
import { storable } from './storable.ts';

type OwnPart = Extract<
  Exclude<AssistantContent, string>[number],
  { type: 'reasoning' | 'reasoning-file' | 'custom' }
>;

interface OfProvider {
  readonly providerOptions?: ProviderMetadata | undefined;
}

export type EchoPart =
  | OwnPart
  /** These characters of the words of the response. */
  | ({ readonly type: 'text'; readonly from: number; to: number } & OfProvider)
  /** The call with which the echo is kept. */
  | ({ readonly type: 'tool-call' } & OfProvider);

export interface Echo {
  /** The provider that wrote it, by `providerOf`: no other one reads it. */
  readonly provider: string;
  /** In the order of the response. */
  readonly parts: readonly EchoPart[];
}

const ofProvider = {
  providerOptions: z.record(z.string(), z.record(z.string(), z.json())).optional(),
};

export const echoSchema: z.ZodType<Echo> = z.object({
  provider: z.string(),
  parts: z.array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('reasoning'), text: z.string(), ...ofProvider }),
      z.object({
        type: z.literal('reasoning-file'),
        data: z.string(),
        mediaType: z.string(),
        ...ofProvider,
      }),
      z.object({
        type: z.literal('custom'),
        kind: z.templateLiteral([z.string(), '.', z.string()]),
        ...ofProvider,
      }),
      z.object({ type: z.literal('text'), from: z.number(), to: z.number(), ...ofProvider }),
      z.object({ type: z.literal('tool-call'), ...ofProvider }),
    ]),
  ),
});

/** Returns the name of a model's provider. Models of one gateway differ by the beginning of their ids. */
export function providerOf(model: LanguageModel): string {
  const [provider, id] =
    typeof model === 'string' ? ['gateway', model] : [model.provider, model.modelId];
  const slash = id.indexOf('/');
  return slash < 0 ? provider : `${provider}/${id.slice(0, slash)}`;
}

/** A conversation counts its characters at each change. */
const lengths = new WeakMap<Echo, number>();

/** Returns how many characters of a conversation an echo takes. */
export function echoChars(echo: Echo | undefined): number {
  if (echo === undefined) return 0;
  const chars = lengths.get(echo) ?? JSON.stringify(echo.parts).length;
  lengths.set(echo, chars);
  return chars;
}

/** Reads the echo off the parts of one response. */
export class EchoReader {
  readonly #provider: string;
  #parts: EchoPart[] = [];
  readonly #open = new Map<string, EchoPart>();
  #chars = 0;
  #hasEchoed = false;

  constructor(model: LanguageModel) {
    this.#provider = providerOf(model);
  }

  read(part: TextStreamPart<ToolSet>): void {
    if (part.type === 'text-start')
      this.#begin(`text ${part.id}`, { type: 'text', from: this.#chars, to: this.#chars });
    else if (part.type === 'reasoning-start')
      this.#begin(`reasoning ${part.id}`, { type: 'reasoning', text: '' });
    else if (part.type === 'text-delta') {
      this.#chars += part.text.length;
      const text = this.#open.get(`text ${part.id}`);
      if (text?.type === 'text') text.to = this.#chars;
    } else if (part.type === 'reasoning-delta') {
      const reasoning = this.#open.get(`reasoning ${part.id}`);
      if (reasoning?.type === 'reasoning') reasoning.text += part.text;
    } else if (part.type === 'reasoning-file') {
      const { base64: data, mediaType } = part.file;
      const own = optionsOf(part.providerMetadata);
      this.#parts.push({ type: 'reasoning-file', data, mediaType, ...own });
    } else if (part.type === 'custom')
      this.#parts.push({ type: 'custom', kind: part.kind, ...optionsOf(part.providerMetadata) });
    else if (part.type === 'tool-call')
      this.#parts.push({ type: 'tool-call', ...optionsOf(part.providerMetadata) });
    // The signature of reasoning may come without words, and the last one is complete.
    if ('id' in part && 'providerMetadata' in part && part.providerMetadata !== undefined) {
      const open = this.#open.get(`${part.type.slice(0, part.type.lastIndexOf('-'))} ${part.id}`);
      if (open) Object.assign(open, optionsOf(part.providerMetadata));
    }
  }

  /** Returns the parts since it was last called, with the call or the end that follows them; undefined: PROVIDER-ECHO-2. */
  take(): Echo | undefined {
    const parts = this.#parts.filter((part) => part.type !== 'reasoning' || holdsSomething(part));
    this.#parts = [];
    this.#hasEchoed ||= parts.some(
      ({ type, providerOptions }) =>
        (type !== 'text' && type !== 'tool-call') || providerOptions !== undefined,
    );
    return this.#hasEchoed ? storable({ provider: this.#provider, parts }) : undefined;
  }

  #begin(key: string, part: EchoPart): void {
    this.#open.set(key, part);
    this.#parts.push(part);
  }
}

/** A provider may withhold its reasoning, and send only its signature. */
function holdsSomething({ text, providerOptions }: { text: string } & OfProvider): boolean {
  return text !== '' || providerOptions !== undefined;
}

function optionsOf(metadata: ProviderMetadata | undefined): OfProvider {
  return isProviderOptions(metadata) ? { providerOptions: metadata } : {};
}
