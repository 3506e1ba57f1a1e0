// The official types of the wire, for checks at compile time only. `@google/genai` is a
// development dependency: nothing here may show up in a declaration that the public
// index reaches, so use these names in `satisfies` and in checks that are not exported.

// oxlint-disable offstage/import-direction -- types only; in no published declaration
import type { LiveClientMessage, LiveServerMessage } from '@google/genai';
export type { LiveServerContent, LiveServerMessage } from '@google/genai';
// oxlint-enable offstage/import-direction

/** A type as it is in JSON: an enum is any of its texts. */
type AsJson<T> = T extends string
  ? `${T}`
  : T extends readonly (infer Entry)[]
    ? readonly AsJson<Entry>[]
    : T extends object
      ? { readonly [Key in keyof T]: AsJson<T[Key]> }
      : T;

export type ClientMessage = AsJson<LiveClientMessage>;

/** What a server says, without what the official client adds to it. */
export type OfficialServerMessage = AsJson<Omit<LiveServerMessage, 'text' | 'data'>>;
