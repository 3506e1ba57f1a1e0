// The wire alone: its messages in both directions, without a socket.

export {
  INPUT_SAMPLE_RATE_HZ,
  OUTPUT_SAMPLE_RATE_HZ,
  audioStreamEnd,
  audioText,
  clientContent,
  contextUpdate,
  realtimePicture,
  realtimeText,
  setup,
  toolResponse,
  type FunctionResponse,
  type SessionSettings,
  type Turn,
} from './client-messages.ts';
export { durationMs } from './duration.ts';
export { parseServerMessage, type ServerContent, type ServerMessage } from './server-messages.ts';
