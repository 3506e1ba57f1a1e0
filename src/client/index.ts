// The entry `offstage/client`: lets a page, a worker or a program follow a session over the network. Server:
// `offstage/serve`.

export {
  connect,
  type ClientSnapshot,
  type ClientStore,
  type ConnectOptions,
  type SessionClient,
} from './session-client.ts';
export type { ClientStatus, SocketClass } from './line.ts';
export type { Microphone, MicrophoneStatus } from './microphone.ts';
export type { Speaker, SpeakerStatus } from './speaker.ts';
export type { MicrophoneDevice } from './web-audio.ts';
export { emptySessionState } from '../actors/contracts/session-views.ts';
export { applySessionEvent } from './session-state.ts';
export type { ClientAnswer } from '../actors/contracts/session-command.ts';
export type { ClientRole } from './protocol.ts';
export type { Subscription, Watchable, WatchableValue } from './watchable.ts';
