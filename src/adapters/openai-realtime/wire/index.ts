// The wire alone: its messages in both directions, without a socket.

export {
  RESPONSE_KEY,
  WIRE_SAMPLE_RATE_HZ,
  audioAppendText,
  audioCommit,
  imageAdd,
  itemDelete,
  itemTruncate,
  messageAdd,
  responseCancel,
  responseCreate,
  sessionChange,
  sessionStart,
  toolAnswer,
  toolRecall,
  type SessionSettings,
} from './client-events.ts';
export { parseServerEvent, type ServerEvent } from './server-events.ts';
