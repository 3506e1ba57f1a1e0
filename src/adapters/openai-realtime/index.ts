// `offstage/openai-realtime`

export { openaiRealtime, type OpenaiRealtimeTransport } from './openai-realtime.ts';
export type { ConnectionDiagnostics } from '../socket/socket-connection.ts';
export { createClientSecret, type ClientSecret } from './client-secret.ts';
export type { OpenaiRealtimeOptions } from './options.ts';
