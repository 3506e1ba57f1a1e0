// A session in `useChat` of the AI SDK: `offstage/ai-sdk-ui`. It needs the types of `ai`, and loads nothing of it.

export { chatHandler, type ChatHandlerOptions } from './chat-handler.ts';
export {
  chatTransport,
  type ChatTransportOptions,
  type SessionChatTransport,
} from './chat-transport.ts';
export type {
  ChatQuestion,
  SessionDataParts,
  SessionMessage,
  SessionMessageMetadata,
} from './chat-messages.ts';
