// `offstage/openai-realtime`

export { openaiRealtime, type OpenaiRealtimeTransport } from './openai-realtime.ts';
export type { ConnectionDiagnostics } from './connection.ts';
export type { OpenaiRealtimeOptions } from './options.ts';
export type { WebSocketFactory, WebSocketLike, WebSocketOptions } from './web-socket.ts';
