// Sessions over the network, for pages and programs with `offstage/client`: `offstage/serve`.

export { serve, type OffstageServer } from './serve.ts';
export {
  defaultServeLimits,
  type AuthorizeRequest,
  type ServedIdentity,
  type ServedSession,
  type ServeLimits,
  type ServeOptions,
} from './options.ts';
export type { ServeRate } from './token-bucket.ts';
export type { ClientRole } from '../client/protocol.ts';
