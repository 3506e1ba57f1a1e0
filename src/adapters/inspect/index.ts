export { createInspector, type Inspector } from './inspector.ts';
export type { BrowserTarget } from './viewers.ts';
export type { RelayTarget } from './relay.ts';
export { redactWords, type Leaf } from './shown-value.ts';
export type {
  ActorMessage,
  EventMessage,
  InspectorMessage,
  SnapshotMessage,
} from './trace-line.ts';
