// Collects the messages to a client in order. `next` waits for the next message.

export interface Collector<Event> {
  readonly events: readonly Event[];
  add(event: Event): void;
  /** The first event that matches and has not been returned by an earlier call with this `name`. */
  next(name: string, matches: (event: Event) => boolean): Promise<Event>;
}

export function createCollector<Event>(): Collector<Event> {
  const events: Event[] = [];
  const seen = new Map<string, number>();
  let wakers: (() => void)[] = [];
  return {
    events,
    add(event) {
      events.push(event);
      const waking = wakers;
      wakers = [];
      for (const wake of waking) wake();
    },
    async next(name, matches) {
      for (;;) {
        const from = seen.get(name) ?? 0;
        const index = events.findIndex((event, at) => at >= from && matches(event));
        if (index >= 0) {
          seen.set(name, index + 1);
          return events[index] as Event;
        }
        await new Promise<void>((resolve) => {
          wakers.push(resolve);
        });
      }
    },
  };
}

/** `next` for events that have a type. */
export function byType<Event extends { readonly type: string }>(collector: Collector<Event>) {
  return <Type extends Event['type']>(type: Type): Promise<Extract<Event, { type: Type }>> =>
    collector.next(type, (event) => event.type === type) as Promise<Extract<Event, { type: Type }>>;
}
