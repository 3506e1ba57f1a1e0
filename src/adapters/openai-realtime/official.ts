// The official types of the protocol, used only for checks at compile time. `openai` is a development dependency, so no
// public declaration may depend on these types. Use them only in `satisfies` and in checks that are not exported.

// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
export type { RealtimeClientEvent, RealtimeServerEvent } from 'openai/resources/realtime/realtime';
