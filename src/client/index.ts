// A session in a page, a worker or a program, over the network: `offstage/client`. Its server is `offstage/serve`.

export {
  connect,
  type ClientSnapshot,
  type ClientStatus,
  type ClientStore,
  type ConnectOptions,
  type SessionClient,
} from './session-client.ts';
export type { SocketClass, SocketLike } from './line.ts';
export type { Microphone, MicrophoneOptions, MicrophoneStatus } from './microphone.ts';
export type { Speaker, SpeakerOptions, SpeakerStatus } from './speaker.ts';
export type { MicrophoneDevice } from './web-audio.ts';
export { applySessionEvent, emptySessionState } from './session-state.ts';
export type { ClientAnswer, ClientRole } from './protocol.ts';
export type { Listener, Subscription, Watchable, WatchableValue } from './watchable.ts';
