// `offstage/openai-live`

export { openaiLive, type OpenaiLiveTransport } from './openai-live.ts';
export type { ConnectionDiagnostics } from '../socket/socket-connection.ts';
export type { OpenaiLiveOptions } from './options.ts';
export type { WebSocketFactory, WebSocketLike, WebSocketOptions } from '../socket/web-socket.ts';
