// The entry `offstage/serve`: serves sessions over the network to pages and programs with `offstage/client`, and
// complete apps on one machine.

export { answerLinks, type AnswerLinks } from './answer-links.ts';
export { serve, type OffstageServer } from './serve.ts';
export { serveLocally, type LocalServer, type ServeLocallyOptions } from './serve-locally.ts';
export type { PageFiles } from './page-files.ts';
export {
  type AuthorizeRequest,
  type ServedIdentity,
  type ServedSession,
  type ServeOptions,
} from './options.ts';
