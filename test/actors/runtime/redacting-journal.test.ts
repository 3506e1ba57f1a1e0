import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { memoryJournal } from '../../../src/index.ts';
import {
  redactingJournal,
  SECRET_NAMES,
  type JournalEntry,
  type RedactionOptions,
} from '../../../src/entries/journal.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';

const KEY = 'my-very-own-key-42';

function entry(event: Record<string, unknown>): JournalEntry {
  return {
    scope: 'scope',
    unit: 'unit',
    seq: 1,
    at: 1,
    actor: 'user',
    definitionVersion: 1,
    event: { type: 'user.said', ...event },
  };
}

function kept(
  event: Record<string, unknown>,
  options?: RedactionOptions,
): JournalEntry | undefined {
  const inner = memoryJournal();
  void redactingJournal(inner, options).append(entry(event));
  return inner.read()[0];
}

const eventOf = (event: Record<string, unknown>, options?: RedactionOptions): unknown =>
  kept(event, options)?.event;

describe('a secret recognised by its name', () => {
  test.each(['apiKey', 'api_key', 'API-KEY', 'ApiKey', 'Authorization', 'set-cookie', 'PASSWORD'])(
    '%s',
    (name) => {
      expect(eventOf({ deep: [{ [name]: 'hush' }] })).toEqual({
        type: 'user.said',
        deep: [{ [name]: '[redacted]' }],
      });
    },
  );

  test('matches only whole names', () => {
    const event = { tokens: 5, inputTokens: 7, secretary: 'Ann', passwordless: 'yes', key: 'c' };
    expect(eventOf(event)).toEqual({ type: 'user.said', ...event });
  });

  test('REDACTING-JOURNAL-3: loses all its text and numbers, but keeps its structure', () => {
    const secret = { user: 'ann', pin: 1234, list: ['a', null, true, ''], none: null };
    expect(eventOf({ credentials: secret, token: null, password: '' })).toEqual({
      type: 'user.said',
      credentials: {
        user: '[redacted]',
        pin: '[redacted]',
        list: ['[redacted]', null, true, ''],
        none: null,
      },
      token: null,
      password: '',
    });
  });

  test('allows a custom list of names', () => {
    const names = [...SECRET_NAMES, 'iban', 'c++ (key)'];
    const event = { IBAN: 'DE02', 'C++ (Key)': 'x', token: 'y', name: 'z' };
    expect(eventOf(event, { names })).toEqual({
      type: 'user.said',
      IBAN: '[redacted]',
      'C++ (Key)': '[redacted]',
      token: '[redacted]',
      name: 'z',
    });
    expect(eventOf(event, { names: [] })).toMatchObject(event);
  });
});

describe('a secret recognised by its value', () => {
  const values = [KEY, undefined, /\b\d{4}(?: \d{4}){3}\b/, 'short', `${KEY}-longer`, /^shh.*/y];

  test.each([
    [`the key ${KEY}, and again ${KEY}.`, 'the key [redacted], and again [redacted].'],
    [`${KEY}-longer`, '[redacted]'],
    ['card 1234 5678 9012 3456, card 0000 0000 0000 0000', 'card [redacted], card [redacted]'],
    ['a short word', 'a short word'],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted]'],
    ['sk-proj-abcdef', '[redacted]'],
    ['shh, it is me', '[redacted]'],
  ])('%s', (text, expected) => {
    expect(eventOf({ messages: [{ text }] }, { values })).toEqual({
      type: 'user.said',
      messages: [{ text: expected }],
    });
  });

  test('disappears from property names as well as values', () => {
    expect(eventOf({ byKey: { [KEY]: 1 } }, { values })).toMatchObject({
      byKey: { '[redacted]': 1 },
    });
  });

  test('becomes exactly the configured replacement text', () => {
    expect(eventOf({ text: `<${KEY}>`, token: 'x' }, { values, replace: '$& ***' })).toMatchObject({
      text: '<$& ***>',
      token: '$& ***',
    });
  });

  test('REDACTING-JOURNAL-3: never changes the type of an event', () => {
    expect(kept({ text: 'said' }, { names: ['type'], values: [/said/] })?.event).toEqual({
      type: 'user.said',
      text: '[redacted]',
    });
  });
});

test('REDACTING-JOURNAL-1, REDACTING-JOURNAL-2: copies only entries with secrets, and each only once', () => {
  const inner = memoryJournal();
  const journal = redactingJournal(inner, { values: [KEY] });
  const harmless = entry({ deep: [{ text: 'hello', n: 1 }], 'a-name': {} });
  void journal.append(harmless);
  expect(inner.read()[0]).toBe(harmless);
  const secret = { ...entry({ text: KEY, kept: { as: 'it is' } }), unit: 'other' };
  void journal.append(secret);
  void journal.append(secret);
  expect(inner.read()).toHaveLength(2);
  // An entry without a secret is not copied.
  const event = inner.read()[1]?.event as { kept?: object } | undefined;
  expect(event?.kept).toBe((secret.event as { kept?: object }).kept);
});

test('keeps names like `__proto__`', () => {
  const event = JSON.parse(`{"__proto__":{"token":"x"},"constructor":"${KEY}"}`) as object;
  const written = JSON.stringify(eventOf({ ...event, inner: event }, { values: [KEY] }));
  expect(written).toContain(
    '"inner":{"__proto__":{"token":"[redacted]"},"constructor":"[redacted]"}',
  );
  expect(({} as { token?: string }).token).toBeUndefined();
});

test('never writes a secret to the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-journal-'));
  const inner = sqliteJournal({ path: join(folder, 'a.journal'), environment: nodeEnvironment() });
  const journal = redactingJournal(inner, { values: [KEY] });
  await journal.append(entry({ text: `it is ${KEY}`, args: { password: 'open sesame' } }));
  const onDisk = (): string =>
    readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), 'latin1'))
      .join('');
  const whileOpen = onDisk();
  inner.close();
  for (const bytes of [whileOpen, onDisk()]) {
    expect(bytes).toContain('it is [redacted]');
    expect(bytes).not.toContain(KEY);
    expect(bytes).not.toContain('sesame');
  }
  rmSync(folder, { recursive: true });
});

test('forwards the optional members that the wrapped journal has', async () => {
  const inner = memoryJournal();
  const journal = redactingJournal(inner);
  await journal.append(entry({}));
  expect(await journal.read({ scope: 'scope' })).toHaveLength(1);
  expect(await journal.scopes?.()).toEqual([{ scope: 'scope', entries: 1, firstAt: 1, lastAt: 1 }]);
  await journal.append({ ...entry({}), seq: 2 });
  await journal.trim?.({ scope: 'scope', unit: 'unit', seq: 2 });
  expect(await journal.read({ scope: 'scope' })).toEqual([{ ...entry({}), seq: 2 }]);
  await journal.forget?.('scope');
  expect(await journal.read({ scope: 'scope' })).toEqual([]);
  await journal.wakeTimes?.set('scope', 5);
  expect(await inner.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'scope', at: 5 }]);
  expect(redactingJournal({ ...inner, wakeTimes: undefined }).wakeTimes).toBeUndefined();
  expect(journal.claim).toBeUndefined();
  const claimed: string[] = [];
  const leased = redactingJournal({ ...inner, claim: (scope) => void claimed.push(scope) });
  await leased.claim?.('scope');
  expect(claimed).toEqual(['scope']);
});

test.each<[string, unknown]>([
  ['names', { names: ['--'] }],
  ['values', { values: [42] }],
  ['values', { values: [/x*/] }],
  ['replace', { replace: null }],
  ['name', { name: ['token'] }],
])('refuses wrong %s', (what, options) => {
  expect(() => redactingJournal(memoryJournal(), options as RedactionOptions)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(what) }),
  );
});

test('removes secrets from the rows of the desk', async () => {
  const store = memoryJournal();
  const journal = redactingJournal(store, { values: [KEY] });
  const body = JSON.stringify({ title: `Send ${KEY}?`, more: 0 });
  const row = { id: 'q1', kind: 'approval', since: 1, answerableBy: ['ann'], body };
  await journal.desk?.set('scope', [row]);
  const found = { scope: 'scope', id: 'q1', since: 1, body: body.replace(KEY, '[redacted]') };
  const query = { kinds: ['approval'], answerableBy: ['ann'], limit: 9 };
  expect(await store.desk.find(query)).toEqual([found]);
  expect(await journal.desk?.find(query)).toEqual([found]);
});
