// The entry `offstage/ai-sdk-ui`: connects a session to the AI SDK's `useChat`. It imports only the types of `ai` and
// loads none of its code.

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
