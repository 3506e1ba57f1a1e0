// Wires a service to its sources: maps each effect of the service to an event of a source. Pure, so that the
// model checker checks the composition that runs.

/** A message from a service to one of its sources. */
interface SourceMessage {
  readonly actor: string;
  readonly event: { readonly type: 'source.start' | 'source.stop' };
}

/** Returns the messages to its sources that an effect of a service means. */
export function sourceMessages(
  effect: string,
  sources: readonly string[],
): readonly SourceMessage[] {
  const type =
    effect === 'startSources' ? 'source.start' : effect === 'stopSources' ? 'source.stop' : null;
  return type === null ? [] : sources.map((name) => ({ actor: `source:${name}`, event: { type } }));
}
