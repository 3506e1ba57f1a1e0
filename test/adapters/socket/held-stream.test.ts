import { expect, test } from 'vitest';
import { createHeldStream } from '../../../src/adapters/socket/held-stream.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';

function recorder() {
  const seen: unknown[] = [];
  return {
    seen,
    observer: {
      next: (value: unknown) => seen.push(value),
      error: (error: unknown) => seen.push(error),
      complete: () => seen.push('complete'),
    },
  };
}

test('buffers events until a subscriber arrives, then passes on new events', () => {
  const held = createHeldStream<{ n: number }>();
  held.next({ n: 1 });
  held.next({ n: 2 });
  const { seen, observer } = recorder();
  held.stream.subscribe(observer);
  held.next({ n: 3 });
  held.complete();
  expect(seen).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }, 'complete']);
});

test('passes all events to a subscriber that arrives after the end', () => {
  const held = createHeldStream<{ n: number }>();
  held.next({ n: 1 });
  held.complete();
  const { seen, observer } = recorder();
  held.stream.subscribe(observer);
  expect(seen).toEqual([{ n: 1 }, 'complete']);
});

test('refuses a second subscriber without affecting the first', () => {
  const held = createHeldStream<{ n: number }>();
  const first = recorder();
  const second = recorder();
  held.stream.subscribe(first.observer);
  held.stream.subscribe(second.observer);
  held.next({ n: 1 });
  expect(second.seen).toEqual([expect.any(ConfigurationError)]);
  expect(first.seen).toEqual([{ n: 1 }]);
});

test('emits the buffered events before those that a handler causes', () => {
  const held = createHeldStream<{ n: number }>();
  held.next({ n: 1 });
  held.next({ n: 2 });
  const seen: number[] = [];
  held.stream.subscribe(({ n }) => {
    seen.push(n);
    if (n === 1) held.next({ n: 3 });
  });
  expect(seen).toEqual([1, 2, 3]);
});
