// `offstage/gemini-live`

export {
  createEphemeralToken,
  type EphemeralToken,
  type EphemeralTokenOptions,
} from './ephemeral-token.ts';
export { geminiLive, type GeminiLiveTransport } from './gemini-live.ts';
export type { ConnectionDiagnostics } from '../socket/socket-connection.ts';
export type { GeminiLiveOptions } from './options.ts';
export type { WebSocketFactory, WebSocketLike, WebSocketOptions } from '../socket/web-socket.ts';
