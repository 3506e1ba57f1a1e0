// The entry `offstage/inspector`: a page that shows sessions, live and past.

export { inspector, type InspectorPage, type InspectorPageOptions } from './inspector.ts';
