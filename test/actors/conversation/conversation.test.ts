import { describe, expect, it, test } from 'vitest';
import { ConfigurationError, ProtocolError } from '../../../src/values/errors.ts';
import { ConversationLog } from '../../../src/actors/conversation/conversation.ts';
import type { ConversationItem } from '../../../src/actors/conversation/items.ts';

const ids = (log: ConversationLog): string[] => log.items.map(({ id }) => id);
const textOf = (item: ConversationItem | undefined): string | undefined =>
  item && 'text' in item ? item.text : undefined;

function talk(): ConversationLog {
  return ConversationLog.empty()
    .add({ id: 'u1', role: 'user', at: 1_000, text: 'Book me a ride to the airport.' })
    .toolCall({ callId: 'c1', toolName: 'book_ride', args: { to: 'airport' }, at: 2_000 })
    .add({ id: 'a1', role: 'assistant', at: 2_100, text: 'I am on it.' })
    .add({ id: 'u2', role: 'user', at: 4_000, text: 'And what is the weather?' })
    .add({ id: 'a2', role: 'assistant', at: 5_000, text: 'Sunny.' })
    .toolResult({ callId: 'c1', at: 6_000, value: { status: 'booked' } });
}

describe('CONVERSATION-1: order', () => {
  test('puts a late transcript at the start time of its utterance', { tags: ['B10'] }, () => {
    const log = ConversationLog.empty()
      .begin({ id: 'u1', role: 'user', at: 1_000 })
      .begin({ id: 'a1', role: 'assistant', at: 3_000 })
      .append('a1', 'Sure.')
      .finish('u1', 'Economy, please.')
      .finish('a1');
    expect(ids(log)).toEqual(['u1', 'a1']);
    expect(textOf(log.get('u1'))).toBe('Economy, please.');
  });

  test('sorts an utterance without a start event by its timestamp', () => {
    const log = talk().add({ id: 'late', role: 'user', at: 4_500, text: 'Please.' });
    expect(ids(log)).toEqual(['u1', 'c1', 'a1', 'u2', 'late', 'a2', 'c1.result']);
  });

  test('inserts an item after the item that the provider names, and keeps the log sorted', () => {
    const log = talk().add({ id: 'x', role: 'user', at: 9_000, text: 'Hm.', after: 'c1' });
    expect(ids(log).slice(0, 4)).toEqual(['u1', 'c1', 'x', 'a1']);
    expect(log.get('x')?.at).toBe(2_100);
    expect(
      ids(talk().add({ id: 'y', role: 'user', at: 9_000, text: 'Hm.', after: 'gone' })),
    ).toEqual([...ids(talk()), 'y']);
  });

  test('inserts an item before the item that it names if both have the same timestamp', () => {
    const log = ConversationLog.empty()
      .add({ id: 'a', role: 'user', text: 'a', at: 10 })
      .add({ id: 'b', role: 'user', text: 'b', at: 10 })
      .add({ id: 'between', role: 'assistant', text: 'c', at: 10, before: 'b' })
      .add({ id: 'later', role: 'assistant', text: 'd', at: 20, before: 'a' })
      .add({ id: 'unknown', role: 'assistant', text: 'e', at: 10, before: 'gone' });
    expect(log.items.map(({ id }) => id)).toEqual(['a', 'between', 'b', 'unknown', 'later']);
  });

  test('keeps items of the same millisecond in the order in which they were added', () => {
    const log = ConversationLog.empty()
      .add({ id: 'z', role: 'user', at: 5, text: 'first' })
      .add({ id: 'a', role: 'assistant', at: 5, text: 'second' });
    expect(ids(log)).toEqual(['z', 'a']);
  });
});

describe('CONVERSATION-2: ids of items', () => {
  test('ignore a second start and a second end', () => {
    const once = ConversationLog.empty().add({ id: 'u1', role: 'user', at: 1, text: 'Yes.' });
    expect(once.begin({ id: 'u1', role: 'assistant', at: 9 })).toBe(once);
    expect(once.finish('u1', 'No.')).toBe(once);
    expect(once.append('u1', ' more')).toBe(once);
    expect(once.append('unknown', 'x')).toBe(once);
  });

  test('let a correction replace the text, even final text', { tags: ['B63'] }, () => {
    const log = ConversationLog.empty()
      .begin({ id: 'u1', role: 'user', at: 1 })
      .correct('u1', 'a con')
      .correct('u1', 'economy');
    expect(log.get('u1')).toMatchObject({ text: 'economy', partial: true });
    expect(log.finish('u1').correct('u1', 'Economy.').get('u1')).toMatchObject({
      text: 'Economy.',
      partial: false,
    });
  });

  test('do not change an earlier log', () => {
    const before = ConversationLog.empty().begin({ id: 'u1', role: 'user', at: 1 });
    const after = before.append('u1', 'hello');
    expect(textOf(before.get('u1'))).toBe('');
    expect(textOf(after.get('u1'))).toBe('hello');
  });
});

describe('CONVERSATION-3: partial text', { tags: ['B63', 'B65', 'BW11'] }, () => {
  test('keeps white space between the words', () => {
    const log = ['hello', ' ', 'world'].reduce(
      (open, delta) => open.append('u1', delta),
      ConversationLog.empty().begin({ id: 'u1', role: 'user', at: 1 }),
    );
    expect(textOf(log.get('u1'))).toBe('hello world');
  });

  test('keeps a genuine repetition', () => {
    const log = ConversationLog.empty()
      .begin({ id: 'a1', role: 'assistant', at: 1 })
      .append('a1', 'I see a')
      .append('a1', ' a cat, no no no');
    expect(textOf(log.get('a1'))).toBe('I see a a cat, no no no');
  });

  test('ends when the reply is interrupted, and keeps the part that was heard', () => {
    const log = ConversationLog.empty()
      .begin({ id: 'a1', role: 'assistant', at: 1 })
      .append('a1', 'Your ride is booked for nine')
      .interrupt('a1', { audioHeardMs: 640, text: 'Your ride' })
      .append('a1', ' and more');
    expect(log.get('a1')).toEqual({
      id: 'a1',
      role: 'assistant',
      at: 1,
      text: 'Your ride',
      partial: false,
      interrupted: true,
      audioHeardMs: 640,
    });
  });
});

test('cuts off a finished reply whose audio is still playing', () => {
  const log = ConversationLog.empty()
    .add({ id: 'a1', role: 'assistant', at: 1, text: 'Your ride is booked for nine.' })
    .interrupt('a1', { audioHeardMs: 300, text: 'Your ride' });
  expect(log.get('a1')).toMatchObject({ text: 'Your ride', interrupted: true, audioHeardMs: 300 });
});

describe('CONVERSATION-4: calls and results', () => {
  test('ignore a result for an unknown call, a second result and a second call', () => {
    const log = talk();
    expect(log.toolResult({ callId: 'nobody', at: 1, value: 1 })).toBe(log);
    expect(log.toolResult({ callId: 'c1', at: 9_000, error: 'late' })).toBe(log);
    expect(log.toolCall({ callId: 'c1', toolName: 'other', args: {}, at: 9_000 })).toBe(log);
  });

  test('put a result after its call even if its timestamp is earlier', () => {
    const log = ConversationLog.empty()
      .toolCall({ callId: 'c1', toolName: 't', args: {}, at: 100 })
      .toolResult({ callId: 'c1', at: 50, value: 'ok' });
    expect(ids(log)).toEqual(['c1', 'c1.result']);
    expect(log.get('c1.result')?.at).toBe(100);
  });

  test('remove a call together with its result', () => {
    expect(ids(talk().remove('c1'))).toEqual(['u1', 'a1', 'u2', 'a2']);
    expect(ids(talk().remove('c1.result'))).toEqual(['u1', 'a1', 'u2', 'a2']);
    expect(ids(talk().remove('u1'))).not.toContain('u1');
  });

  test('store a placeholder for values that JSON cannot represent', () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    const log = ConversationLog.empty()
      .toolCall({ callId: 'c1', toolName: 't', args: undefined, at: 1 })
      .toolResult({ callId: 'c1', at: 2, value: loop });
    expect(log.get('c1')).toMatchObject({ args: null });
    expect(log.get('c1.result')).toMatchObject({
      output: { type: 'value', value: expect.stringContaining('not JSON') as string },
    });
  });
});

describe('CONVERSATION-5: bounds', () => {
  test('evict and count the oldest items first, and evict a call together with its result', () => {
    const log = ConversationLog.empty({ maxItems: 3 })
      .add({ id: 'u1', role: 'user', at: 1, text: 'a' })
      .toolCall({ callId: 'c1', toolName: 't', args: {}, at: 2 })
      .toolResult({ callId: 'c1', at: 3, value: 'ok' })
      .add({ id: 'u2', role: 'user', at: 4, text: 'b' })
      .add({ id: 'u3', role: 'user', at: 5, text: 'c' });
    expect(ids(log)).toEqual(['u2', 'u3']);
    expect(log.evicted).toBe(3);
    expect(log.toModelMessages()[0]).toEqual({
      role: 'user',
      content: '[note] 3 earlier items of this conversation are not included.',
    });
  });

  test('evict finished items before open ones', () => {
    const log = ConversationLog.empty({ maxItems: 3 })
      .toolCall({ callId: 'c1', toolName: 't', args: {}, at: 1 })
      .begin({ id: 'u1', role: 'user', at: 2 })
      .add({ id: 'a1', role: 'assistant', at: 3, text: 'one' })
      .add({ id: 'a2', role: 'assistant', at: 4, text: 'two' });
    expect(ids(log)).toEqual(['c1', 'u1', 'a2']);
  });

  test('apply to open calls too', () => {
    let log = ConversationLog.empty({ maxItems: 3 });
    for (let n = 0; n < 10; n += 1) {
      log = log.toolCall({ callId: `c${n}`, toolName: 't', args: {}, at: n });
    }
    expect(ids(log)).toEqual(['c7', 'c8', 'c9']);
  });

  test('limit the characters per item and in total', () => {
    const log = ConversationLog.empty({ maxChars: 20, maxItemChars: 10 })
      .add({ id: 'u1', role: 'user', at: 1, text: '1234567890' })
      .add({ id: 'u2', role: 'user', at: 2, text: '1234567890' })
      .begin({ id: 'u3', role: 'user', at: 3 })
      .append('u3', '12345678')
      .append('u3', 'abcd')
      .append('u3', 'efgh')
      .finish('u3');
    expect(ids(log)).toEqual(['u2', 'u3']);
    expect(log.get('u3')).toMatchObject({ text: '12345678ab', omittedChars: 6 });
    expect(log.recentTurns(1)[0]?.content).toContain('12345678ab [… 6 more characters]');
  });

  test('shorten a tool result of any size', { tags: ['BW21', 'BW31'] }, () => {
    const log = ConversationLog.empty({ maxItemChars: 100 })
      .toolCall({ callId: 'c1', toolName: 't', args: { text: 'y'.repeat(500) }, at: 1 })
      .toolResult({ callId: 'c1', at: 2, value: { rows: 'x'.repeat(5_000) } });
    expect(JSON.stringify(log.items).length).toBeLessThan(800);
    expect(JSON.stringify(log.toReplay())).toMatch(/\[… \d+ more characters\]/);
  });

  test('report how full the log is', () => {
    const log = ConversationLog.empty({ maxItems: 4 }).add({
      id: 'a',
      role: 'user',
      at: 1,
      text: 'x',
    });
    expect(log.load).toBe(0.25);
  });

  test('refuse invalid limits', () => {
    expect(() => ConversationLog.empty({ maxItems: 0 })).toThrow(ConfigurationError);
    expect(() => ConversationLog.empty({ maxItemChars: 9, maxChars: 8 })).toThrow(/maxItemChars/);
  });
});

describe('CONVERSATION-6: summaries', { tags: ['B66'] }, () => {
  test('cover every item except open ones when no checkpoint is given', { tags: ['BW10'] }, () => {
    const log = talk()
      .toolCall({ callId: 'c2', toolName: 'report', args: {}, at: 7_000 })
      .begin({ id: 'u3', role: 'user', at: 8_000 })
      .setSummary('They booked a ride.');
    expect(ids(log)).toEqual(['c2', 'u3']);
    expect(log.toModelMessages()[0]).toEqual({
      role: 'user',
      content:
        '[note] Context summary: it stands for the conversation before this.\n' +
        '[data] {"summary":"They booked a ride."}',
    });
  });

  test('keep items after the checkpoint, and also a call whose result comes after it', () => {
    expect(ids(talk().setSummary('s', 'u2'))).toEqual(['c1', 'a2', 'c1.result']);
    expect(ids(talk().setSummary('s', 'c1.result'))).toEqual([]);
    expect(ids(talk().setSummary('s', 'long gone'))).toEqual(ids(talk()));
  });

  test('keep items that arrived while the summary was being written', () => {
    const summarised = talk().begin({ id: 'u3', role: 'user', at: 4_100 });
    const now = summarised
      .finish('u3', 'Cheap, please.')
      .correct('u2', 'And what is the weather there?')
      .add({ id: 'u4', role: 'user', at: 9_000, text: 'Thanks.' })
      .setSummary('s', summarised);
    expect(ids(now)).toEqual(['u2', 'u3', 'u4']);
  });

  test('replace the old summary, and reset the count of lost items', () => {
    const log = ConversationLog.empty({ maxItems: 1 })
      .add({ id: 'a', role: 'user', at: 1, text: 'a' })
      .add({ id: 'b', role: 'user', at: 2, text: 'b' })
      .setSummary('one')
      .setSummary('two');
    expect(log).toMatchObject({ summary: 'two', evicted: 0, items: [] });
  });
});

describe('recent turns', { tags: ['BW21'] }, () => {
  test('join consecutive items of one speaker into one turn, without tool JSON', () => {
    const log = talk()
      .add({ id: 'u3', role: 'user', at: 7_000, text: 'Thanks. ' })
      .add({ id: 'u4', role: 'user', at: 7_500, text: 'When does it come?' })
      .begin({ id: 'a3', role: 'assistant', at: 8_000 });
    expect(log.recentTurns(3)).toEqual([
      { role: 'user', content: 'And what is the weather?', at: 4_000 },
      { role: 'assistant', content: 'Sunny.', at: 5_000 },
      { role: 'user', content: 'Thanks. When does it come?', at: 7_000 },
    ]);
    expect(log.recentTurns(0)).toEqual([]);
  });

  test('return ten turns, regardless of the number of items in between', () => {
    let log = ConversationLog.empty();
    for (let n = 0; n < 30; n += 1) {
      const at = n * 100;
      const role = n % 2 === 0 ? 'user' : 'assistant';
      log = log
        .add({ id: `m${n}`, role, at, text: `line ${n}` })
        .toolCall({ callId: `c${n}`, toolName: 't', args: {}, at: at + 1 })
        .toolResult({ callId: `c${n}`, at: at + 2, value: 'x'.repeat(100) });
    }
    const turns = log.recentTurns(10);
    expect(turns.map(({ content }) => content)).toEqual(
      Array.from({ length: 10 }, (_, n) => `line ${20 + n}`),
    );
  });

  test('include a reply in progress', () => {
    const log = ConversationLog.empty()
      .begin({ id: 'u1', role: 'user', at: 1 })
      .append('u1', 'Book me a');
    expect(log.recentTurns(10)).toEqual([{ role: 'user', content: 'Book me a', at: 1 }]);
  });

  it('cut a long turn, and say so', () => {
    const log = ConversationLog.empty()
      .add({ id: 'a', role: 'assistant', at: 1, text: 'x'.repeat(2050) })
      .add({ id: 'u', role: 'user', at: 2, text: 'And?' });
    expect(log.recentTurns(2)[0]?.content).toBe(`${'x'.repeat(2000)} [… 50 more characters]`);
  });

  it("include the user's last turn in full, along with any turns after it", () => {
    const request = `${'Find a flat. '.repeat(400)}Only in Berlin, never in Paris.`;
    const log = ConversationLog.empty()
      .add({ id: 'u1', role: 'user', at: 1, text: 'y'.repeat(2050) })
      .add({ id: 'a1', role: 'assistant', at: 2, text: 'Yes?' })
      .add({ id: 'u2', role: 'user', at: 3, text: request })
      .add({ id: 'a2', role: 'assistant', at: 4, text: 'I look for it.' });
    const [before, , caused] = log.recentTurns(4);
    expect(before?.content).toContain('50 more characters');
    expect(caused?.content).toBe(request);
  });
});

describe('serialised', () => {
  test('survives a round trip through JSON', { tags: ['B66'] }, () => {
    const log = talk().setSummary('s', 'u1').interrupt('a2', { audioHeardMs: 5 });
    const copy = ConversationLog.fromJSON(JSON.parse(JSON.stringify(log)));
    expect(copy.toJSON()).toEqual(log.toJSON());
    expect(copy.toModelMessages()).toEqual(log.toModelMessages());
  });

  test.each([
    ['nothing', null],
    ['another role', { items: [{ id: 'x', at: 1, role: 'robot' }], summary: null, evicted: 0 }],
    [
      'a repeated id',
      {
        items: [1, 2].map((at) => ({ id: 'x', at, role: 'transfer', from: 'a', to: 'b' })),
        summary: null,
        evicted: 0,
      },
    ],
    [
      'a broken order',
      {
        items: [2, 1].map((at) => ({ id: `x${at}`, at, role: 'transfer', from: 'a', to: 'b' })),
        summary: null,
        evicted: 0,
      },
    ],
  ])('%s is refused', (_, value) => {
    expect(() => ConversationLog.fromJSON(value)).toThrow(ProtocolError);
  });
});
