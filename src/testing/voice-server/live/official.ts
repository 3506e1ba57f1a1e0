// The official types of the Live protocol, which are only for checks at compile time. `openai` is a development
// dependency, so a published declaration may not refer to it.

// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
export type { ClientEvent, ServerEvent, SessionResource } from 'openai/resources/live/live';
