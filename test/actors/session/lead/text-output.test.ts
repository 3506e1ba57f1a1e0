// The output of a text session, piece by piece, for observers and readers.

import { take } from 'rxjs';
import { describe, expect, test } from 'vitest';
import {
  TextOutput,
  type Fate,
  type TextPart,
} from '../../../../src/actors/session/lead/text-output.ts';

const piece = (text: string): TextPart => ({ type: 'text.delta', itemId: 'i', text });

const told = (deliveryId: string): TextPart => ({
  type: 'text.done',
  itemId: 'i',
  text: 'It is ready',
  deliveryId,
});

describe('TEXT-OUTPUT-1: readers', () => {
  test('receive every piece written since they started reading, in order and at their own pace', async () => {
    const output = new TextOutput();
    output.push(piece('before'));
    const first = output.read().parts;
    output.push(piece('one'));
    const second = output.read().parts;
    output.push(piece('two'));
    output.complete();
    const all = async (parts: AsyncIterable<TextPart>) => {
      const read: string[] = [];
      for await (const part of parts) read.push(part.type === 'text.delta' ? part.text : part.type);
      return read;
    };
    expect(await all(second)).toEqual(['two']);
    expect(await all(first)).toEqual(['one', 'two']);
  });

  test('end on request, after the parts that they have already received', async () => {
    const output = new TextOutput();
    const { parts, end } = output.read();
    output.push(piece('one'));
    end();
    expect(await parts.next()).toMatchObject({ value: piece('one') });
    expect(await parts.next()).toEqual({ done: true, value: undefined });
  });

  test('do not receive anything if they start after the end', async () => {
    const output = new TextOutput();
    output.complete();
    expect(await output.read().parts.next()).toEqual({ done: true, value: undefined });
  });

  test('TEXT-OUTPUT-3: lose the oldest parts when they are too slow, and learn how many they lost', async () => {
    const output = new TextOutput();
    const { parts } = output.read();
    for (let index = 0; index < 10_003; index += 1) output.push(piece(String(index)));
    expect((await parts.next()).value).toEqual({ type: 'gap', missed: 3 });
    expect((await parts.next()).value).toEqual(piece('3'));
  });
});

describe('TEXT-OUTPUT-6: a reader that stops', () => {
  test('ends before its first read', async () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    const { parts } = output.read();
    output.push(piece('one'), fate('one'));
    await parts.return();
    expect(log).toEqual(['one unseen']);
    expect(output.isHeard).toBe(false);
    expect(await parts.next()).toEqual({ done: true, value: undefined });
  });

  test('ends while it is waiting for a piece', async () => {
    const output = new TextOutput();
    const { parts } = output.read();
    const next = parts.next();
    const left = parts.return();
    expect(output.isHeard).toBe(false);
    expect(await next).toEqual({ done: true, value: undefined });
    expect(await left).toEqual({ done: true, value: undefined });
  });

  test('ends in the middle of a piece, which then counts as unseen', async () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    for (const name of ['one', 'two']) output.push(piece(name), fate(name));
    const { parts } = output.read();
    for (const name of ['three', 'four']) output.push(piece(name), fate(name));
    for await (const part of parts) {
      expect(part).toEqual(piece('three'));
      break;
    }
    expect(log.slice(2)).toEqual(['three unseen', 'four unseen']);
    expect(output.isHeard).toBe(false);
  });
});

/** Records the end of each piece. */
function fates() {
  const log: string[] = [];
  const fate = (name: string): Fate => ({
    seen: () => log.push(`${name} seen`),
    unseen: () => log.push(`${name} unseen`),
  });
  return { log, fate };
}

describe('TEXT-OUTPUT-2: a part that counts as seen', () => {
  test('has reached an observer, even if there is a reader', () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    output.parts.subscribe();
    output.push(piece('one'), fate('one'));
    output.read();
    output.push(piece('two'), fate('two'));
    expect(log).toEqual(['one seen', 'two seen']);
  });

  test('counts once, when the first reader requests more', async () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    const readers = [output.read().parts, output.read().parts];
    output.push(piece('one'), fate('one'));
    output.push(piece('two'), fate('two'));
    for (const reader of readers) await reader.next();
    expect(log).toEqual([]);
    for (const reader of readers) await reader.next();
    expect(log).toEqual(['one seen']);
  });

  test('has reached a caller that was waiting for its delivery', () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    output.awaitedBy((ids) => ids.includes('d1'));
    output.push(told('d2'), fate('d2'));
    output.push(told('d1'), fate('d1'));
    expect(log).toEqual(['d2 unseen', 'd1 seen']);
  });
});

describe('TEXT-OUTPUT-4: a part that counts as unseen', () => {
  test('has no listener', () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    output.push(piece('one'), fate('one'));
    expect(log).toEqual(['one unseen']);
  });

  test.each(['breaks off', 'throws'] as const)(
    'has only a reader that %s at that part',
    async (how) => {
      const output = new TextOutput();
      const { log, fate } = fates();
      const { parts } = output.read();
      output.push(piece('one'), fate('one'));
      output.push(piece('two'), fate('two'));
      const reading = (async () => {
        for await (const _ of parts) {
          if (how === 'throws') throw new Error('The socket is closed');
          break;
        }
      })();
      await reading.catch(() => {});
      expect(log).toEqual(['one unseen', 'two unseen']);
    },
  );

  test('waits for the other reader if one reader stops at that part', async () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    const [first, second] = [output.read().parts, output.read().parts];
    output.push(piece('one'), fate('one'));
    await first.next();
    await first.return();
    expect(log).toEqual([]);
    output.push(piece('two'));
    await second.next();
    await second.next();
    expect(log).toEqual(['one seen']);
    await second.return();
    expect(log).toEqual(['one seen']);
  });

  test('overflows the buffer of every reader', async () => {
    const output = new TextOutput();
    const { log, fate } = fates();
    output.read();
    output.push(piece('one'), fate('one'));
    for (let index = 0; index < 10_000; index += 1) output.push(piece(String(index)));
    expect(log).toEqual(['one unseen']);
  });
});

describe('TEXT-OUTPUT-5: a card', () => {
  const card = (output: TextOutput, log: string[], isDue: () => boolean = () => true): void =>
    output.card('d1', told('d1'), isDue, () => log.push('seen'));

  test('reaches the first listener, and no other once it has been seen', async () => {
    const output = new TextOutput();
    const log: string[] = [];
    card(output, log);
    const gone = output.read().parts;
    expect((await gone.next()).value).toEqual(told('d1'));
    await gone.return();
    const got: TextPart[] = [];
    output.parts.subscribe((part) => got.push(part));
    expect(got).toEqual([told('d1')]);
    expect(log).toEqual(['seen']);
    output.parts.subscribe((part) => got.push(part));
    expect(got).toHaveLength(1);
  });

  test('does not reach a listener that has already received its content', async () => {
    const output = new TextOutput();
    const log: string[] = [];
    const { parts, end } = output.read();
    output.push(told('d1'));
    await parts.next();
    card(output, log);
    end();
    expect((await parts.next()).done).toBe(true);
    expect(log).toEqual([]);
  });

  test('does not count as seen by an observer that left before it arrived', () => {
    const output = new TextOutput();
    const seen: string[] = [];
    for (const id of ['d1', 'd2'])
      output.card(
        id,
        told(id),
        () => true,
        () => seen.push(id),
      );
    const got: TextPart[] = [];
    output.parts.pipe(take(1)).subscribe((part) => got.push(part));
    expect(seen).toEqual(['d1']);
    output.parts.subscribe((part) => got.push(part));
    expect(got).toEqual([told('d1'), told('d2')]);
    expect(seen).toEqual(['d1', 'd2']);
  });

  test('does not reach a reader when it is no longer due', async () => {
    const output = new TextOutput();
    card(output, [], () => false);
    const { parts, end } = output.read();
    end();
    expect((await parts.next()).done).toBe(true);
  });
});
