// `client.store.select`: a part of the client's state.

import { expect, test } from 'vitest';
import { rideSession, served } from '../serve/support/served.ts';

test('calls its listeners only when the selected value changes', async () => {
  const session = rideSession();
  const { client } = await served({ session: () => session });
  const { it, until } = client();
  await until(({ connection }) => connection === 'active');
  const tasks = it.store.select(({ subagents }) => subagents.length);
  const words = it.store.select(
    ({ transcript }) => transcript.map(({ text }) => text),
    (before, after) => before.length === after.length,
  );
  const seen: unknown[] = [];
  tasks.subscribe((count) => seen.push(count));
  const gone: unknown[] = [];
  tasks.subscribe((count) => gone.push(count)).unsubscribe();
  const heard: number[] = [];
  words.subscribe({ next: ({ length }) => heard.push(length) });
  expect(tasks.get()).toBe(0);
  await it.send('hello');
  await until(({ transcript }) => transcript.at(-1)?.text === 'You said: hello');
  // Each item is reported once, however often its text has grown.
  expect(heard).toEqual([1, 2]);
  expect(seen).toEqual([]);
  await it.send('use book_ride');
  await until(({ questions }) => questions.length > 0);
  expect(seen).toEqual([1]);
  expect(tasks.get()).toBe(1);
  expect(gone).toEqual([]);
  await session.close();
});
