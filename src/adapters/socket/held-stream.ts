// A hot stream for one subscriber. It buffers the values emitted before the subscription, so that no value is lost
// between `connect` and `subscribe`.

import { Observable, type Subscriber } from 'rxjs';
import { ConfigurationError } from '../../values/errors.ts';

interface HeldStream<T extends object> {
  /** A second subscriber receives the error `ALREADY_SUBSCRIBED`. */
  readonly stream: Observable<T>;
  next(value: T): void;
  complete(): void;
}

export function createHeldStream<T extends object>(): HeldStream<T> {
  const held: T[] = [];
  let completed = false;
  let subscriber: Subscriber<T> | undefined;
  let isDraining = false;

  /** Values that arrive while another value is being handled wait in a queue. */
  const drain = (): void => {
    if (subscriber === undefined || isDraining) return;
    isDraining = true;
    for (let value = held.shift(); value !== undefined; value = held.shift()) {
      subscriber.next(value);
    }
    isDraining = false;
    if (completed) subscriber.complete();
  };

  return {
    stream: new Observable<T>((newcomer) => {
      if (subscriber !== undefined) {
        newcomer.error(
          new ConfigurationError(
            'ALREADY_SUBSCRIBED',
            'The events of a connection can be subscribed to once; share them if many need them',
          ),
        );
        return;
      }
      subscriber = newcomer;
      drain();
    }),
    next(value) {
      held.push(value);
      drain();
    },
    complete() {
      completed = true;
      drain();
    },
  };
}
