// The official types of the wire, for checks at compile time only. `openai` is a
// development dependency: nothing here may appear in a declaration that the
// public index reaches, so use these names in `satisfies` and in checks that are
// not exported.

// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
export type { RealtimeClientEvent, RealtimeServerEvent } from 'openai/resources/realtime/realtime';
