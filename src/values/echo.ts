// A model's reasoning, and the ids and signatures of its parts. Later requests send them back to the provider. Thinking
// models reject a history that contains a call without its reasoning.
//
// Owns:     the stored form of these parts, and how they are read from an AI SDK stream.
// Does not: store the text and the calls.
//
// Invariants
//   PROVIDER-ECHO-1. Parts are stored unchanged, in the order of the response. Metadata that is not JSON is dropped.
//   PROVIDER-ECHO-2. A response that has no reasoning, custom parts or provider metadata has no echo.

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
  /** A range of characters in the response's text. */
  | ({ readonly type: 'text'; readonly from: number; to: number } & OfProvider)
  /** The call that the echo belongs to. */
  | ({ readonly type: 'tool-call' } & OfProvider);

export interface Echo {
  /** The provider that wrote the parts (see `providerOf`). The echo is not sent to any other provider. */
  readonly provider: string;
  /** In response order. */
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

/** Returns the name of a model's provider. Behind a gateway, the name includes the first part of the model id. */
export function providerOf(model: LanguageModel): string {
  const [provider, id] =
    typeof model === 'string' ? ['gateway', model] : [model.provider, model.modelId];
  const slash = id.indexOf('/');
  return slash < 0 ? provider : `${provider}/${id.slice(0, slash)}`;
}

/** Caches the sizes, because the conversation's characters are counted after each change. */
const lengths = new WeakMap<Echo, number>();

/** Returns how many characters an echo adds to a conversation. */
export function echoChars(echo: Echo | undefined): number {
  if (echo === undefined) return 0;
  const chars = lengths.get(echo) ?? JSON.stringify(echo.parts).length;
  lengths.set(echo, chars);
  return chars;
}

/** Collects the echo from the parts of one response. */
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
    // A reasoning signature may arrive in a part without text; the last signature is the complete one.
    if ('id' in part && 'providerMetadata' in part && part.providerMetadata !== undefined) {
      const open = this.#open.get(`${part.type.slice(0, part.type.lastIndexOf('-'))} ${part.id}`);
      if (open) Object.assign(open, optionsOf(part.providerMetadata));
    }
  }

  /** Returns the parts since the last `take`; undefined if the response has no echo (PROVIDER-ECHO-2). */
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

/** A provider may withhold its reasoning and send only the signature. */
function holdsSomething({ text, providerOptions }: { text: string } & OfProvider): boolean {
  return text !== '' || providerOptions !== undefined;
}

function optionsOf(metadata: ProviderMetadata | undefined): OfProvider {
  return isProviderOptions(metadata) ? { providerOptions: metadata } : {};
}
