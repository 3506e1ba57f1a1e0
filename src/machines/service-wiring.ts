// Wires a service to its sources: maps each effect of the service to an event of a source. Pure, so that the
// model checker checks the composition that runs.

import type { WiredMessage } from './session-wiring.ts';

/** Returns the messages to its sources that an effect of a service means. */
export function sourceMessages(
  effect: string,
  sources: readonly string[],
): readonly WiredMessage[] {
  const type =
    effect === 'startSources' ? 'source.start' : effect === 'stopSources' ? 'source.stop' : null;
  return type === null ? [] : sources.map((name) => ({ actor: `source:${name}`, event: { type } }));
}
