// The entry `offstage/serve`: sessions over the network for pages and programs with `offstage/client`, and complete
// local apps.

export { serve, type OffstageServer } from './serve.ts';
export { serveLocally, type LocalServer, type ServeLocallyOptions } from './serve-locally.ts';
export type { PageFiles } from './page-files.ts';
export {
  type AuthorizeRequest,
  type ServedIdentity,
  type ServedSession,
  type ServeOptions,
} from './options.ts';
