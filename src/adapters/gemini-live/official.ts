// The official types of the protocol, used only for checks at compile time. `@google/genai` is a development
// dependency, so no public declaration may depend on these types. Use them only in `satisfies` and in checks that are
// not exported.

// oxlint-disable offstage/import-direction -- types only; in no published declaration
import type { LiveClientMessage, LiveServerMessage } from '@google/genai';
export type { LiveServerContent, LiveServerMessage } from '@google/genai';
// oxlint-enable offstage/import-direction

/** A type in its JSON form: each enum becomes a union of string literals. */
type AsJson<T> = T extends string
  ? `${T}`
  : T extends readonly (infer Entry)[]
    ? readonly AsJson<Entry>[]
    : T extends object
      ? { readonly [Key in keyof T]: AsJson<T[Key]> }
      : T;

export type ClientMessage = AsJson<LiveClientMessage>;

/** A server message, without the additions of the official client. */
export type OfficialServerMessage = AsJson<Omit<LiveServerMessage, 'text' | 'data'>>;
