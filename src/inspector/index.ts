// A page to look at sessions, live and past: `offstage/inspector`.

export {
  inspector,
  type ActedSession,
  type InspectorPage,
  type InspectorPageOptions,
} from './inspector.ts';
