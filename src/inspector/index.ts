// The entry `offstage/inspector`: a page that shows live and past sessions.

export { inspector, type InspectorPage, type InspectorPageOptions } from './inspector.ts';
