export { createInspector, type Inspector } from './inspector.ts';
export {
  defaultInspectorOptions,
  type InspectorOptions,
  type InspectorTarget,
  type SinkTarget,
} from './options.ts';
export { redactWords, type Leaf, type Redact } from './redact.ts';
export type { BrowserTarget, BrowserWindow } from './browser-viewer.ts';
export type { RelayTarget } from './relay.ts';
export type { WebSocketTarget } from './web-socket-viewer.ts';
export type {
  ActorMessage,
  EventMessage,
  InspectorMessage,
  ShownEvent,
  ShownSnapshot,
  SnapshotMessage,
} from './wire.ts';
