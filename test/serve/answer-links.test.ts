// The tokens of answer links (ANSWER-LINK-1 to ANSWER-LINK-3).

import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import type { QuestionView } from '../../src/index.ts';
import { answerLinks } from '../../src/serve/index.ts';

const SECRET = 's'.repeat(32);
const OTHER = 'o'.repeat(32);
const URL_OF_PAGE = 'https://app.example.com/answer';

type Item = Parameters<ReturnType<typeof answerLinks>['create']>[0];

const ITEM: Item = {
  key: 'ses/sub_1.q1/0',
  sessionId: 'ses',
  user: 'ada',
  deliveryId: 'sub_1.q1',
  kind: 'question',
  priority: 'normal',
  label: 'pay',
  text: 'May I?',
};

const QUESTION: QuestionView = {
  requestId: 'sub_1.q1',
  subagentId: 'sub_1',
  subagentName: 'pay',
  kind: 'approval',
  question: 'May I?',
  options: [],
  state: 'open',
  askedAt: 5,
  dueAt: null,
  timeoutMs: 1000,
  answer: null,
  action: { toolName: 'pay', input: { amount: 5, to: 'Ben' } },
};

const made = (more: Partial<Parameters<typeof answerLinks>[0]> = {}) =>
  answerLinks({ secret: SECRET, url: URL_OF_PAGE, ...more });

function tokenOf(links = made(), item = ITEM, question = QUESTION, at = 1000): string {
  const [link] = links.create(item, question, at);
  return new URL(link?.url ?? '').searchParams.get('t') ?? '';
}

describe('a token', () => {
  test('ANSWER-LINK-1: names the session, the question, the person and the expiry', () => {
    const [link] = made().create(ITEM, QUESTION, 1000);
    expect(link?.url).toMatch(/^https:\/\/app\.example\.com\/answer\?t=[\w-]+\.[\w-]{43}$/);
    expect(made().read(tokenOf())).toEqual({
      sessionId: 'ses',
      requestId: 'sub_1.q1',
      person: 'ada',
      expiresAt: 1000 + 86_400_000,
      digest: expect.any(String),
    });
  });

  test('ANSWER-LINK-2: becomes invalid with a change of any character', () => {
    const token = tokenOf();
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=';
    let valid = 0;
    for (let at = 0; at < token.length; at += 1)
      for (const sign of alphabet) {
        const changed = token.slice(0, at) + sign + token.slice(at + 1);
        if (changed !== token && made().read(changed)) valid += 1;
      }
    for (let length = 0; length < token.length; length += 1)
      if (made().read(token.slice(0, length))) valid += 1;
    expect(valid).toBe(0);
  });

  test.each([
    ['', 'nothing'],
    ['.', 'two empty parts'],
    [`${tokenOf()}.`, 'a third part'],
    [`${tokenOf()}=`, 'padding'],
    [` ${tokenOf()}`, 'a space'],
    ['x'.repeat(1_000_000), 'a megabyte'],
    [`${'x'.repeat(500_000)}.${'y'.repeat(500_000)}`, 'a megabyte in two parts'],
    ['\u{1F600}.\u0000', 'other characters'],
  ])('gives no claim for %.20j (%s)', (token) => {
    expect(made().read(token)).toBeNull();
  });

  test('gives no claim if a valid signature covers other content', () => {
    const signed = (body: string, purpose = 'offstage answer link 1.') =>
      `${body}.${createHmac('sha256', SECRET).update(`${purpose}${body}`).digest('base64url')}`;
    const body = tokenOf().split('.')[0] ?? '';
    expect(made().read(signed(body))).not.toBeNull();
    expect(made().read(signed(body, ''))).toBeNull();
    for (const json of [
      '',
      '[]',
      '{}',
      'null',
      '["ses"]',
      '["ses","q","",1,"d"]',
      '["ses","q","a","1","d"]',
    ])
      expect(made().read(signed(Buffer.from(json).toString('base64url')))).toBeNull();
  });

  test('stays valid while its secret is one of several, of which the first one signs', () => {
    const rotated = made({ secret: [OTHER, SECRET] });
    expect(rotated.read(tokenOf())).not.toBeNull();
    expect(made({ secret: OTHER }).read(tokenOf())).toBeNull();
    expect(made({ secret: OTHER }).read(tokenOf(rotated))).not.toBeNull();
    expect(made().read(tokenOf(rotated))).toBeNull();
  });

  test('differs for ids that look alike or could be joined', () => {
    const ids = [
      ['ses', 'sub_1.q1'],
      ['ses', 'sub_1.q10'],
      ['ses"', 'sub_1.q1'],
      ['ses","sub_1', 'q1'],
      ['s\u0435s', 'sub_1.q1'],
      ['ses\u200b', 'sub_1.q1'],
    ] as const;
    const tokens = ids.map(([sessionId, requestId]) =>
      tokenOf(made(), { ...ITEM, sessionId }, { ...QUESTION, requestId }),
    );
    expect(new Set(tokens).size).toBe(ids.length);
    for (const [index, [sessionId, requestId]] of ids.entries())
      expect(made().read(tokens[index] ?? '')).toMatchObject({ sessionId, requestId });
  });

  test('ANSWER-LINK-3: depends only on the question, the person, the secret and the time', () => {
    expect(tokenOf()).toBe(tokenOf(made(), { ...ITEM, text: 'x' }, structuredClone(QUESTION)));
    const reordered = { toolName: 'pay', input: { to: 'Ben', amount: 5 } };
    expect(tokenOf(made(), ITEM, { ...QUESTION, action: reordered })).toBe(tokenOf());
    expect(tokenOf(made(), ITEM, { ...QUESTION, state: 'parked', dueAt: 9 })).toBe(tokenOf());
  });

  test.each([
    ['the arguments', { action: { toolName: 'pay', input: { amount: 6, to: 'Ben' } } }],
    ['the tool', { action: { toolName: 'pay2', input: { amount: 5, to: 'Ben' } } }],
    ['a changed call', { changed: { input: { amount: 6, to: 'Ben' } } }],
    ['the text', { question: 'May I not?' }],
    ['the options', { options: [{ id: 'a', label: 'A' }] }],
    ['the time', { askedAt: 6 }],
  ])('ANSWER-LINK-1: covers %s of the question', (_, change) => {
    const digest = (question: QuestionView) => made().read(tokenOf(made(), ITEM, question))?.digest;
    expect(digest({ ...QUESTION, ...change })).not.toBe(digest(QUESTION));
  });
});

describe('the person of a link', () => {
  const person = (item: Item, more: Partial<Parameters<typeof answerLinks>[0]> = {}) => {
    const links = made(more);
    const [link] = links.create(item, QUESTION, 0);
    return link ? links.read(new URL(link.url).searchParams.get('t') ?? '')?.person : undefined;
  };

  test("defaults to the session's user, if this user may answer", () => {
    const { user: _, ...anonymous } = ITEM;
    expect(person(ITEM)).toBe('ada');
    expect(person(anonymous)).toBeUndefined();
    expect(person({ ...ITEM, answerableBy: ['ada', 'carl'] })).toBe('ada');
    expect(person({ ...ITEM, answerableBy: ['carl'] })).toBeUndefined();
  });

  test('comes from the app if the app names one', () => {
    expect(person(ITEM, { person: ({ answerableBy = ['ben'] }) => answerableBy[0] ?? null })).toBe(
      'ben',
    );
    expect(person(ITEM, { person: () => null })).toBeUndefined();
    expect(() => person(ITEM, { person: () => '' })).toThrow(ConfigurationError);
    expect(() => person(ITEM, { person: () => undefined as never })).toThrow(/person/);
  });
});

test.each([
  [{ secret: 'short' }, /32 bytes/],
  [{ secret: [] }, /secret/],
  [{ secret: [SECRET, 'short'] }, /32 bytes/],
  [{ url: 'app.example.com' }, /url/],
  [{ url: 'ftp://app.example.com/answer' }, /url/],
  [{ url: 'https://app.example.com/answer?t=1' }, /without a query/],
  [{ url: 'https://app.example.com/answer#x' }, /fragment/],
  [{ url: 'https://ada@app.example.com/answer' }, /user/],
  [{ trust: 'anyone' }, /trust/],
  [{ expiresAfterMs: 0 }, /expiresAfterMs/],
  [{ person: 'ada' }, /person/],
  [{ expires: 5 }, /expires/],
])('refuses the invalid options %j without naming the secret', (wrong, message) => {
  const make = () => made(wrong as never);
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(message);
  expect(make).not.toThrow(/short|sssss/);
});
