// What a text session says, piece by piece, to observers and readers.

import { describe, expect, test } from 'vitest';
import { TextOutput, type TextPart } from '../../../src/actors/session/text-output.ts';

const piece = (text: string): TextPart => ({ type: 'text.delta', itemId: 'i', text });

describe('X1: readers', () => {
  test('get every piece since they began to read, in order, each at its own pace', async () => {
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

  test('end when they are told to, after what is there', async () => {
    const output = new TextOutput();
    const { parts, end } = output.read();
    output.push(piece('one'));
    end();
    expect(await parts.next()).toMatchObject({ value: piece('one') });
    expect(await parts.next()).toEqual({ done: true, value: undefined });
  });

  test('that begin when everything is over find nothing', async () => {
    const output = new TextOutput();
    output.complete();
    expect(await output.read().parts.next()).toEqual({ done: true, value: undefined });
  });

  test('X3: that are too slow lose the oldest, and are told how many', async () => {
    const output = new TextOutput();
    const { parts } = output.read();
    for (let index = 0; index < 10_003; index += 1) output.push(piece(String(index)));
    expect((await parts.next()).value).toEqual({ type: 'gap', missed: 3 });
    expect((await parts.next()).value).toEqual(piece('3'));
  });
});

describe('X2: seen', () => {
  const seen = () => {
    const log: string[] = [];
    return { log, see: (name: string) => () => log.push(name) };
  };

  test('by observers at once', () => {
    const output = new TextOutput();
    const { log, see } = seen();
    output.parts.subscribe();
    output.push(piece('one'), see('one'));
    expect(log).toEqual(['one']);
  });

  test('by nobody if nobody listens', () => {
    const output = new TextOutput();
    const { log, see } = seen();
    output.push(piece('one'), see('one'));
    expect(log).toEqual([]);
  });

  test('by a reader when it asks for more, and once, however many readers there are', async () => {
    const output = new TextOutput();
    const { log, see } = seen();
    const readers = [output.read().parts, output.read().parts];
    output.parts.subscribe();
    output.push(piece('one'), see('one'));
    output.push(piece('two'), see('two'));
    for (const reader of readers) await reader.next();
    expect(log).toEqual([]);
    for (const reader of readers) await reader.next();
    expect(log).toEqual(['one']);
  });

  test('by observers again when the last reader has gone', async () => {
    const output = new TextOutput();
    const { log, see } = seen();
    output.parts.subscribe();
    const { parts } = output.read();
    output.push(piece('one'), see('one'));
    await parts.next();
    await parts.return();
    output.push(piece('two'), see('two'));
    expect(log).toContain('two');
  });
});
