// The wire alone: its messages in both directions, without a socket.

export {
  append,
  audioAppendText,
  forkStart,
  sessionClose,
  sessionStart,
  type AppendChannel,
  type HistoryMessage,
  type SessionSettings,
} from './client-events.ts';
export { parseServerEvent, type ServerEvent } from './server-events.ts';
