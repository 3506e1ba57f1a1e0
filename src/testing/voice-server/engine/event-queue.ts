// Queues frames by type and returns each one once: past frames immediately, later ones when they arrive.

interface Typed {
  readonly type: string;
}

export interface EventQueue<Event extends Typed> {
  push(event: Event): void;
  next(type: string): Promise<Event>;
}

export function createEventQueue<Event extends Typed>(): EventQueue<Event> {
  const waiting = new Map<string, Event[]>();
  const takers = new Map<string, ((event: Event) => void)[]>();
  return {
    push(event) {
      const taker = takers.get(event.type)?.shift();
      if (taker !== undefined) {
        taker(event);
        return;
      }
      const queue = waiting.get(event.type);
      if (queue === undefined) waiting.set(event.type, [event]);
      else queue.push(event);
    },
    next(type) {
      const event = waiting.get(type)?.shift();
      if (event !== undefined) return Promise.resolve(event);
      return new Promise((resolve) => {
        const queue = takers.get(type);
        if (queue === undefined) takers.set(type, [resolve]);
        else queue.push(resolve);
      });
    },
  };
}
