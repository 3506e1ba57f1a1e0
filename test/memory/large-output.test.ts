import fc from 'fast-check';
import type { JSONValue } from 'ai';
import { describe, expect, test } from 'vitest';
import type { LargeOutput } from '../../src/actors/contracts/outcome.ts';
import type { WorkingMemory } from '../../src/actors/ports/working-memory.ts';
import {
  isLargeOutput,
  keepLargeOutput,
  type LargeOutputOptions,
} from '../../src/memory/large-output.ts';
import { speakable } from '../../src/memory/speakable.ts';
import { workingMemory } from '../../src/memory/working-memory.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

const owner = { sessionId: 's1', path: ['a'] };

function setUp() {
  const memory = workingMemory({ environment: simulatedEnvironment(), maxEntryBytes: 100_000 });
  const keep = (value: JSONValue, options: Partial<LargeOutputOptions> = {}): Promise<JSONValue> =>
    keepLargeOutput(value, { memory, owner, key: 'outputs/c1', maxInlineBytes: 2000, ...options });
  return { memory, keep };
}

describe('large outputs', { tags: ['MW9'] }, () => {
  test('leaves a small output unchanged and stores nothing', async () => {
    const { memory, keep } = setUp();
    expect(await keep('x'.repeat(2000))).toBe('x'.repeat(2000));
    expect(await keep({ a: [1] })).toEqual({ a: [1] });
    expect(await memory.list(owner)).toMatchObject({ total: 0 });
  });

  test('stores a large output completely and adds a reference to the excerpt', async () => {
    const { memory, keep } = setUp();
    const value = { rows: Array.from({ length: 500 }, (_, id) => ({ id })) };
    const kept = await keep(value, { readWith: 'recall' });
    expect(kept).toEqual({
      truncated: true,
      originalBytes: JSON.stringify(value).length,
      reference: 'subagent/a/outputs/c1',
      howToRead: 'Call recall with key "subagent/a/outputs/c1"; it comes in pages.',
      excerpt: expect.stringContaining('{"rows":[{"id":0}'),
    });
    expect(isLargeOutput(kept)).toBe(true);
    expect(await memory.get(owner, 'outputs/c1')).toMatchObject({ entry: { value } });
  });

  test('does not mention a tool that the reader does not have', async () => {
    const kept = (await setUp().keep('x'.repeat(3000))) as unknown as LargeOutput;
    expect(kept.howToRead).toBe(
      'The whole is kept under the reference; you have no tool to read it.',
    );
  });

  test('LARGE-OUTPUT-2 LARGE-OUTPUT-3: returns more text and the reason if the output cannot be stored', async () => {
    const { keep } = setUp();
    const large = 'x'.repeat(200_000);
    const refused = (await keep(large, { maxInlineBytes: 9000 })) as unknown as LargeOutput;
    expect(refused).toMatchObject({ reference: null, originalBytes: 200_000 });
    expect(refused.howToRead).toContain('maxEntryBytes');
    expect(refused.excerpt.length).toBeGreaterThan(8000);
    const none = await keep(large, { memory: undefined });
    expect(none).toMatchObject({ reference: null, howToRead: expect.stringContaining('not kept') });
  });

  test('LARGE-OUTPUT-3: reports a failing memory, and leaves out only the reference', async () => {
    const { keep } = setUp();
    const reports: unknown[] = [];
    const broken = {
      save: () => Promise.reject(new Error('disk full')),
    } as unknown as WorkingMemory;
    const kept = await keep('x'.repeat(3000), {
      memory: broken,
      report: (error, where) => reports.push([(error as Error).message, where]),
    });
    expect(kept).toMatchObject({
      reference: null,
      howToRead: expect.stringContaining('disk full'),
    });
    expect(reports).toEqual([['disk full', 'working memory']]);
  });

  test('LARGE-OUTPUT-1: returns JSON within the limit for any text', async () => {
    const { keep } = setUp();
    const text = fc
      .array(fc.constantFrom('a', '"', '\u0000', 'é', '🎭', '漢', '\\'), { minLength: 50 })
      .map((parts) => parts.join('').repeat(40));
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.integer({ min: 1024, max: 6000 }),
        fc.boolean(),
        async (value, maxInlineBytes, isKept) => {
          const memory = isKept ? {} : { memory: undefined };
          const kept = await keep(value, { maxInlineBytes, readWith: 'read', ...memory });
          const text = typeof kept === 'string' ? kept : JSON.stringify(kept);
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxInlineBytes);
          if (!isLargeOutput(kept)) expect(kept).toBe(value);
          else expect(value.startsWith(kept.excerpt)).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('a summary that can be spoken', () => {
  test('leaves a short text unchanged except for its markup', () => {
    expect(speakable('Booked. **All** is `well`, see [the page](https://x.org/a_b).')).toBe(
      'Booked. All is well, see the page.',
    );
    expect(speakable('snake_case and 2 * 3 stay')).toBe('snake_case and 2 * 3 stay');
  });

  test('removes the markup of headings, lists and quotes and omits tables and code', () => {
    const text =
      '# Result\n\n- one flight\n- two trains.\n\n```js\ncode();\n```\n\n| a | b |\n|---|---|\n\n---\n> Good.';
    expect(speakable(text)).toBe('Result. one flight. two trains. Good.');
  });

  test('describes an output that consists only of code or a table', () => {
    expect(speakable('```js\nconst a = 1;\n```\n')).toBe('A text with 3 lines.');
    expect(speakable('| a |\n| b |')).toBe('A text with 2 lines.');
    expect(speakable(' \n ')).toBe('');
  });

  test('cuts a long text after a sentence, or after a word with an ellipsis', () => {
    const sentence = 'This is a sentence of some length. ';
    expect(speakable(sentence.repeat(20), 80)).toBe(sentence.repeat(2).trim());
    expect(speakable('word '.repeat(100), 50)).toMatch(/^(word )+word…$/);
    expect(speakable('x'.repeat(100), 50)).toBe(`${'x'.repeat(49)}…`);
  });

  test('uses the summary of a data object, or else lists its fields', () => {
    expect(speakable({ summary: 'Three flights.', flights: [] })).toBe('Three flights.');
    expect(speakable({ flights: [], total: 3 })).toBe('A result with 2 parts: flights, total.');
    expect(speakable([1])).toBe('A list of 1 item.');
    expect(speakable(42)).toBe('42');
    expect(speakable(null)).toBe('null');
  });

  test('never exceeds the requested length', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 900 }), (text) => {
        expect(speakable(text, 60).length).toBeLessThanOrEqual(60);
      }),
    );
  });
});
