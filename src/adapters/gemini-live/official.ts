// The official types of the wire, for checks at compile time only. `@google/genai` is a
// development dependency: nothing here may appear in a declaration that the public
// index reaches, so use these names in `satisfies` and in checks that are not exported.

// oxlint-disable offstage/import-direction -- types only; in no published declaration
import type { LiveClientMessage, LiveServerMessage } from '@google/genai';
export type { LiveServerContent, LiveServerMessage } from '@google/genai';
// oxlint-enable offstage/import-direction

/** A type in its JSON form: an enum becomes the union of its texts. */
type AsJson<T> = T extends string
  ? `${T}`
  : T extends readonly (infer Entry)[]
    ? readonly AsJson<Entry>[]
    : T extends object
      ? { readonly [Key in keyof T]: AsJson<T[Key]> }
      : T;

export type ClientMessage = AsJson<LiveClientMessage>;

/** A message of the server, without the additions of the official client. */
export type OfficialServerMessage = AsJson<Omit<LiveServerMessage, 'text' | 'data'>>;
