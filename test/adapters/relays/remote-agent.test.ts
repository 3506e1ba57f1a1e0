// The part of a remote agent's answer that is buffered until it can be parsed (REMOTE-AGENT-2).

import { describe, expect, test } from 'vitest';
import { originFetch } from '../../../src/adapters/relays/remote-agent.ts';

const MEGABYTE = 1024 * 1024;
const STREAM = 'text/event-stream; charset=utf-8';

/** Fetches a response that repeats this piece. Returns its size. */
async function fetched(type: string, piece: string, times: number): Promise<number> {
  const bytes = new TextEncoder().encode(piece);
  let left = times;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left > 0) controller.enqueue(bytes);
      else controller.close();
      left -= 1;
    },
  });
  const bound = originFetch(
    {
      url: 'http://agent.example',
      fetch: () => Promise.resolve(new Response(body, { headers: { 'content-type': type } })),
    },
    new AbortController().signal,
  );
  const response = await bound('http://agent.example/go');
  return (await response.arrayBuffer()).byteLength;
}

describe('an answer', () => {
  const half = MEGABYTE / 2;
  test.each([
    ['a body', 'application/json', 'x'.repeat(MEGABYTE), 16],
    ['many events', STREAM, `data: ${'x'.repeat(half - 8)}\n\n`, 40],
    ['many events with carriage returns', STREAM, `data: ${'x'.repeat(half - 10)}\r\n\r\n`, 40],
  ])('arrives whole up to the size limit: %s', async (_name, type, piece, times) => {
    expect(await fetched(type, piece, times)).toBe(piece.length * times);
  });

  test.each([
    ['a body', 'application/json', 'x'.repeat(MEGABYTE), 17],
    ['an event of one line', STREAM, 'x'.repeat(MEGABYTE), 17],
    ['an event of many lines', STREAM, `data: ${'x'.repeat(half - 7)}\n`, 40],
  ])('ends with an error above the size limit: %s', async (_name, type, piece, times) => {
    await expect(fetched(type, piece, times)).rejects.toThrow('at once');
  });
});
