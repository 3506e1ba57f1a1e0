// The wire by itself: what is said and what is read, without a socket.

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
