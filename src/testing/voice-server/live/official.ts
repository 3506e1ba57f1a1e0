// The official types of the Live wire, for checks at compile time only: `openai` is a development dependency,
// so nothing here may appear in a published declaration.

// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
export type { ClientEvent, ServerEvent, SessionResource } from 'openai/resources/live/live';
