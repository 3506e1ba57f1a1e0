export { createInspector, type Inspector } from './inspector.ts';
export {
  defaultInspectorOptions,
  type InspectorOptions,
  type InspectorTarget,
  type SinkTarget,
} from './inspector.ts';
export { redactWords, type Leaf, type Redact } from './shown-value.ts';
export type { BrowserTarget, BrowserWindow } from './viewers.ts';
export type { RelayTarget } from './relay.ts';
export type { WebSocketTarget } from './viewers.ts';
export type {
  ActorMessage,
  EventMessage,
  InspectorMessage,
  ShownEvent,
  ShownSnapshot,
  SnapshotMessage,
} from './trace-line.ts';
