// How a service and its sources are wired to each other: which effect of the service is which
// event of a source. Pure, so that what is model-checked as a composition is what runs.

import type { WiredMessage } from './session-wiring.ts';

/** The messages to its sources that an effect of a service means. */
export function sourceMessages(
  effect: string,
  sources: readonly string[],
): readonly WiredMessage[] {
  const type =
    effect === 'startSources' ? 'source.start' : effect === 'stopSources' ? 'source.stop' : null;
  return type === null ? [] : sources.map((name) => ({ actor: `source:${name}`, event: { type } }));
}
