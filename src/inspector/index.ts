// A page to look at sessions, live and past: `offstage/inspector`.

export { inspector, type InspectorPage, type InspectorPageOptions } from './inspector.ts';
