// `offstage/openai-realtime`

export { openaiRealtime, type OpenaiRealtimeTransport } from './openai-realtime.ts';
export type { ConnectionDiagnostics } from '../socket/socket-connection.ts';
export {
  createClientSecret,
  type ClientSecret,
  type ClientSecretOptions,
} from './client-secret.ts';
export type { OpenaiRealtimeOptions } from './options.ts';
export type { WebSocketFactory, WebSocketLike, WebSocketOptions } from '../socket/web-socket.ts';
