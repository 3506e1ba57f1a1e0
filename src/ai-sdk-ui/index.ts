// The entry `offstage/ai-sdk-ui`: a session in `useChat` of the AI SDK. It imports only types of `ai`, and loads none
// of its code.

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
