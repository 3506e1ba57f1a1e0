// Credentials in the usual forms are removed in every place and every notation, while ordinary speech stays unchanged.

import { describe, expect, test } from 'vitest';
import { secretRemover, isSecretName } from '../../src/values/secrets.ts';
import { redactKey, redactWords } from '../../src/adapters/inspect/shown-value.ts';
import { shown } from '../../src/values/plain-checks.ts';
import { redactingJournal, type JournalEntry } from '../../src/entries/journal.ts';
import { memoryJournal } from '../../src/index.ts';
import { INNOCENT_SPEECH } from '../support/innocent-speech.ts';

const takeOut = secretRemover([]);
const letters = (length: number): string => 'aB3dE5gH7jK9mN2pQ4sT6vW8yZ'.repeat(3).slice(0, length);

/** Assembled at run time, so that scanners do not mistake them for real credentials. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  'OpenAI, ephemeral': `ek_${letters(24)}`,
  'OpenAI, project': `sk-proj-${letters(24)}`,
  Google: `AIza${letters(35)}`,
  'Google, ephemeral': `auth_tokens/${letters(24)}`,
  GitHub: `ghp_${letters(36)}`,
  AWS: `AKIA${letters(16).toUpperCase()}`,
  Stripe: `sk_live_${letters(24)}`,
  Slack: `xoxb-${'1'.repeat(11)}-${letters(20)}`,
  Groq: `gsk_${letters(40)}`,
  xAI: `xai-${letters(40)}`,
  webhook: `whsec_${letters(32)}`,
  JWT: `eyJ${letters(20)}.${letters(30)}.${letters(30)}`,
};

/** Returns what the journal stores for an event. */
function kept(event: JournalEntry['event'] & Readonly<Record<string, unknown>>): unknown {
  const inner = memoryJournal();
  const entry = { scope: 's', unit: 'u', seq: 1, at: 1, actor: 'a', definitionVersion: 1, event };
  void redactingJournal(inner).append(entry);
  return inner.read()[0]?.event;
}

const positions: Readonly<Record<string, (secret: string) => unknown>> = {
  alone: (secret) => secret,
  'in a sentence': (secret) => `my key is ${secret}, please use it`,
  'in a URL': (secret) => `https://example.com/?x=1&token=${secret}#there`,
  'in a header': (secret) => ({ headers: [`Authorization: Bearer ${secret}`] }),
  'in JSON within a text': (secret) => JSON.stringify({ a: JSON.stringify({ b: secret }) }),
  'after a line break, in JSON within a text': (secret) =>
    JSON.stringify({ a: JSON.stringify({ b: `keys:\n${secret}\n` }), c: `keys:\t${secret}` }),
  'as a key': (secret) => ({ table: { [secret]: 1 } }),
  deep: (secret) => [[{ list: [null, { value: secret }] }]],
};

describe.each(Object.entries(CREDENTIALS))('the credential %s', (_, secret) => {
  test.each(Object.entries(positions))('removes it %s', (__, put) => {
    const text = JSON.stringify(kept({ type: 'user.said', value: put(secret) }));
    expect(text).toContain('[redacted]');
    expect(text).not.toContain(secret.slice(-12));
  });
});

test.each([
  'pwd',
  'x-api-key',
  'X_API_KEY',
  'openaiApiKey',
  'OPENAI_API_KEY',
  'sessionToken',
  'session-token',
  'dbPassword',
  'DB_PASSWORD',
  'clientSecret',
  'awsSecretAccessKey',
  'openaiapikey',
  'webhookSecret',
  'DBPassword',
  'AWSSecretAccessKey',
  'JWTSecret',
  'X-Api-Key',
  'db.password',
  'api key',
])("recognises the name %s as a credential's name", (name) => {
  expect(isSecretName(name)).toBe(true);
});

test.each([
  'tokens',
  'inputTokens',
  'maxTokens',
  'secretary',
  'passwordless',
  'key',
  'keyboard',
  'monkey',
  'compass',
  'passenger',
  'tokenCount',
  'callId',
  'idempotencyKey',
  'sortKey',
  'turnkey',
])("does not recognise the name %s as a credential's name", (name) => {
  expect(isSecretName(name)).toBe(false);
});

describe.each(Object.entries(INNOCENT_SPEECH))('SHAPES-1: speech (%s)', (_, sentences) => {
  test('has a corpus of at least fifty sentences', () => {
    expect(new Set(sentences).size).toBeGreaterThanOrEqual(50);
  });

  test.each(sentences)('keeps: %s', (sentence) => {
    expect(takeOut(sentence)).toBe(sentence);
    // The sentence as a tool argument, inside the text in which a model wrote it.
    const event = { type: 'user.said', said: [JSON.stringify({ text: JSON.stringify(sentence) })] };
    expect(kept(event)).toEqual(event);
  });
});

describe('SHAPES-1: near misses of credentials', () => {
  test.each([
    ['Bearer abc.def', 'Bearer [redacted]'],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted]'],
    ['authorization: bearer abc.def, please', 'authorization: bearer [redacted], please'],
    [`Basic ${btoa('ann:correct horse')}`, 'Basic [redacted]'],
    [`basic ${btoa('ann:x')} is it`, 'basic [redacted] is it'],
    ['https://ann:hunter@example.com/x', 'https://ann:[redacted]@example.com/x'],
    [`https://${letters(20)}@example.com/x`, 'https://[redacted]@example.com/x'],
    ['DB_PASSWORD=correcthorse', 'DB_PASSWORD=[redacted]'],
    ['Mein Passwort: hunter22, ja', 'Mein Passwort: [redacted], ja'],
    ['Mi contraseña: hunter22', 'Mi contraseña: [redacted]'],
    ['sk-abc***xyz', '[redacted]'],
    ['sk-abcd…wxyz', '[redacted]'],
  ])('%s', (text, clean) => {
    expect(takeOut(text)).toBe(clean);
  });

  test('include a token up to the line break that follows it', () => {
    const jwt = CREDENTIALS['JWT'] ?? '';
    expect(takeOut(`${jwt.slice(0, 12)}\n${jwt.slice(12)}`)).toContain(jwt.slice(12));
    expect(takeOut(`${jwt}\nThanks.`)).toBe('[redacted]\nThanks.');
  });
});

/** Notations of a text that are decoded by whoever reads the text. */
const WRITTEN: Readonly<Record<string, (text: string) => string>> = {
  'its first character as \\u': (text) => jsonEscape(text, (at) => at === 0),
  'a character within as \\u': (text) => jsonEscape(text, (at) => at === 2),
  'each third character as \\u': (text) => jsonEscape(text, (at) => at % 3 === 0),
  'each character as \\u': (text) => jsonEscape(text, () => true),
  'with \\/ for each /': (text) => text.replaceAll('/', String.raw`\/`),
  'as a part of a URL': encodeURIComponent,
  'each character as %': (text) => Array.from(text, percent).join(''),
  'as a part of a URL within a URL': (text) =>
    encodeURIComponent(Array.from(text, percent).join('')),
  '\\u in a URL': (text) => encodeURIComponent(jsonEscape(text, () => true)),
};

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0');
const percent = (character: string) => `%${hex(character)}`;
const jsonEscape = (text: string, isEscaped: (at: number) => boolean) =>
  Array.from(text, (character, at) => (isEscaped(at) ? `\\u00${hex(character)}` : character)).join(
    '',
  );

describe.each(Object.entries(WRITTEN))('SHAPES-2: a credential, %s', (_, write) => {
  test.each(Object.entries(CREDENTIALS))('%s', (__, secret) => {
    const written = write(secret);
    expect(takeOut(`it is "${written}", he said`)).toBe('it is "[redacted]", he said');
    for (const [around, nested] of [
      ['{"a":"', `{"a":"${written}"}`],
      ['{"b":', JSON.stringify({ b: `{"a":"${written}"}` })],
      ['{"c":', JSON.stringify({ c: JSON.stringify({ b: `{"a":"${written}"}` }) })],
    ] as const) {
      const clean = takeOut(nested);
      expect(clean).toContain('[redacted]');
      expect(clean).toContain(around);
      expect(clean).not.toContain(written.slice(-12));
      // The cleaned text is still valid JSON.
      expect(() => JSON.parse(clean) as unknown).not.toThrow();
    }
  });
});

describe('SHAPES-2: a secret whose value is known', () => {
  test('disappears even if it is longer than the longest pattern', () => {
    const secret = `begin${'x'.repeat(100_000)}end`;
    const clean = secretRemover([secret])(`The key ${secret} is wrong: maximum expected`);
    expect(clean.replaceAll('[redacted]', '')).toBe('The key  is wrong: maximum expected');
  });

  const known = 'p"ss\\w/rd\nwith words';
  const remove = secretRemover([known]);
  const once = JSON.stringify({ a: known, b: 1 });

  test.each([
    ['as it is', known],
    ['in JSON', once],
    ['in JSON within JSON', JSON.stringify({ once })],
  ])('removes it %s', (_, text) => {
    expect(remove(text)).toContain('[redacted]');
    expect(remove(text)).not.toContain('with words');
  });

  test.each(Object.entries(WRITTEN))('%s', (_, write) => {
    const takesOut = secretRemover(['correct/horse/battery']);
    expect(takesOut(`a ${write('correct/horse/battery')} b`)).toBe('a [redacted] b');
  });
});

describe('SHAPES-3: a secret whose property name is known', () => {
  const NAMES = [
    'password',
    'PASSWORD',
    'dbPassword',
    'DBPassword',
    'X-API-Key',
    'spring.datasource.password',
    'AWSSecretAccessKey',
  ];

  test.each(NAMES)('%s, in JSON within texts', (name) => {
    let text = JSON.stringify({ [name]: 'correct "horse" battery', other: 'stays', n: 1 });
    for (let depth = 0; depth < 3; depth += 1) {
      const clean = takeOut(text);
      expect(clean).not.toMatch(/correct|horse|battery/);
      expect(clean).toContain('stays');
      expect(() => JSON.parse(clean) as unknown).not.toThrow();
      text = JSON.stringify({ text });
    }
  });

  test.each(NAMES)('%s, next to its value', (name) => {
    const fields = [
      { name, value: 'correct horse' },
      { name: 'city', value: 'Berlin' },
    ];
    expect(kept({ type: 'tool.called', fields })).toEqual({
      type: 'tool.called',
      fields: [
        { name, value: '[redacted]' },
        { name: 'city', value: 'Berlin' },
      ],
    });
  });

  test('disappears even if the text ends in the middle of its value', () => {
    expect(takeOut('{"password":"correct hor')).toBe('{"password":"[redacted]');
  });
});

test('disappears from a hostile text of one megabyte in one pass', () => {
  for (const part of [
    '"password":"',
    '\\\\"',
    'Bearer ',
    '://a:',
    'eyJaaaaaaaa.',
    '%41\\u0041',
    'A_',
    '-----BEGIN PRIVATE KEY-----',
  ])
    expect(takeOut(part.repeat(100_000)).length).toBeGreaterThan(0);
});

test.each(Object.entries(CREDENTIALS))(
  '%s: appears in no error message and in no inspector',
  (_, secret) => {
    expect(shown({ options: [secret] })).not.toContain(secret.slice(-12));
    expect(redactWords(secret, ['context', 'callId'])).not.toBe(secret);
    expect(redactKey(secret)).not.toBe(secret);
  },
);
