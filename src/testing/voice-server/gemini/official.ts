// The official types of the Gemini Live protocol, which are only for checks at compile time. `@google/genai` is a
// development dependency, so a published declaration may not refer to it. In the protocol, an enum value is a string
// and a message has no accessors.

// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
import type { LiveClientMessage, LiveServerMessage } from '@google/genai';

type Plain<T> = T extends string
  ? `${T}`
  : T extends object
    ? { readonly [Key in keyof T]: Plain<T[Key]> }
    : T;

export type ServerMessage = Plain<Omit<LiveServerMessage, 'text' | 'data'>>;
export type ServerContent = NonNullable<ServerMessage['serverContent']>;
export type ClientField = keyof LiveClientMessage;
