// The entry `offstage/otel`.

export { meteredJournal } from './watched-journals.ts';
export { tracedHandler } from './traced-handler.ts';
export { tracedJournal } from './watched-journals.ts';
