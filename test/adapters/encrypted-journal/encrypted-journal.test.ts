// ENCRYPTED-JOURNAL-1 to ENCRYPTED-JOURNAL-3, over a journal in memory and over one in a file.

import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  encryptedJournal,
  encryptionCodec,
} from '../../../src/adapters/encrypted-journal/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { textTalk } from '../../support/text-talk.ts';
import { runJournalConformance } from '../../testing/journal-conformance/support/run-journal-conformance.ts';
import { entry } from '../../../src/testing/journal-conformance/case.ts';

const key = randomBytes(32);
const WORD = 'Xylophonmusik';
/** 'words of before', encrypted by the previous version with a key of 32 sevens. */
const SEALED_BEFORE =
  '0a3ce6776214e37b.KvO5nPFPA9rWBz4xAdKJdNqUJ9GQcS1S9034zpwdwVboh2AWUAc7YmJeiw==';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-encrypted-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

runJournalConformance({
  name: 'encryptedJournal on sqliteJournal',
  offers: ['scopes', 'readAfter', 'trim', 'forget', 'reopen', 'wakeTimes', 'desk'],
  open() {
    const folder = mkdtempSync(join(tmpdir(), 'offstage-encrypted-'));
    const opened: { close(): void }[] = [];
    const open = (name: string) => {
      const inner = sqliteJournal({ path: join(folder, name), environment: nodeEnvironment() });
      opened.push(inner);
      return encryptedJournal(inner, { key });
    };
    return {
      journal: open('a'),
      reopen() {
        for (const suffix of ['', '-wal'])
          if (existsSync(join(folder, `a${suffix}`)))
            copyFileSync(join(folder, `a${suffix}`), join(folder, `b${suffix}`));
        return open('b');
      },
      close() {
        for (const journal of opened) journal.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
});

test('restores a session whose text does not appear in the file', async () => {
  const path = join(newFolder(), 'chats.journal');
  const environment = simulatedEnvironment();
  const talk = (said: string[]) => {
    const file = sqliteJournal({ path, environment });
    const runtime = createRuntime({ environment, journal: encryptedJournal(file, { key }) });
    const { session } = textTalk({ sessionId: 'chat', runtime });
    session.parts.subscribe((part) => {
      if (part.type === 'text.done') said.push(part.text);
    });
    return { session, file };
  };
  const said: string[] = [];
  const first = talk(said);
  await first.session.start();
  await Promise.all([first.session.sendText(WORD), environment.advance(1000)]);
  expect(said).toEqual([`You said: ${WORD}`]);
  const [bytes, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
  expect([bytes.includes(WORD), log.includes(WORD), log.includes('sealed')]).toEqual([
    false,
    false,
    true,
  ]);
  await Promise.all([first.session.suspend(), environment.advance(1000)]);
  first.file.close();
  const { session, file } = talk(said);
  await Promise.all([session.start(), environment.advance(1000)]);
  const { transcript } = session.store.getSnapshot().context;
  expect(transcript.map(({ text }) => text)).toContain(WORD);
  await Promise.all([session.suspend(), environment.advance(1000)]);
  file.close();
});

test('ENCRYPTED-JOURNAL-5: the store of a desk contains neither texts nor identities', async () => {
  const store = memoryJournal();
  const row = { id: 'q1', kind: 'approval', since: 1, answerableBy: ['ann'], body: WORD };
  await encryptedJournal(store, { key }).desk?.set('a', [row]);
  const other = Buffer.alloc(32, 9).toString('base64');
  const rotated = encryptedJournal(store, { key: other, earlierKeys: [key] });
  await rotated.desk?.set('b', [{ ...row, since: 2 }]);
  const find = { kinds: ['approval'], limit: 9 };
  const stored = await store.desk.find(find);
  expect(JSON.stringify(stored)).not.toContain(WORD);
  expect(await store.desk.find({ ...find, answerableBy: ['ann'] })).toEqual([]);
  const opened = await rotated.desk?.find({ ...find, answerableBy: ['ann'] });
  expect(opened?.map(({ scope, body }) => [scope, body])).toEqual([
    ['a', WORD],
    ['b', WORD],
  ]);
  expect(await rotated.desk?.find({ ...find, answerableBy: ['Ann'] })).toEqual([]);
  await expect(async () => encryptedJournal(store, { key }).desk?.find(find)).rejects.toMatchObject(
    {
      code: 'JOURNAL_KEY_MISSING',
    },
  );
  // A row that the store has moved to another session is refused.
  await store.desk.set('c', [{ ...row, body: stored[0]?.body ?? '' }]);
  await expect(async () => rotated.desk?.find(find)).rejects.toMatchObject({
    code: 'JOURNAL_CORRUPT',
  });
});

test('ENCRYPTED-JOURNAL-1: accepts a repeated entry, and refuses a changed entry', async () => {
  const store = memoryJournal();
  const journal = encryptedJournal(store, { key });
  for (const one of [entry(1), entry(1), entry(2, { text: 'words 1' })]) await journal.append(one);
  await expect(async () => journal.append(entry(1, { text: 'other' }))).rejects.toMatchObject({
    code: 'JOURNAL_CONFLICT',
  });
  const [one, other] = store.read();
  expect(one?.event).not.toEqual(other?.event);
});

test.each([
  ['moved to another place', { seq: 2 }],
  ['given another time', { at: 7 }],
  ['given to another actor', { actor: 'other' }],
])('ENCRYPTED-JOURNAL-2: refuses an entry that was %s', async (_, changed) => {
  const [store, other] = [memoryJournal(), memoryJournal()];
  await encryptedJournal(store, { key }).append(entry(1));
  const [stored] = store.read();
  if (!stored) throw new Error('Expected an entry');
  other.append({ ...stored, ...changed });
  expect(() => encryptedJournal(other, { key }).read()).toThrow(
    expect.objectContaining({ code: 'JOURNAL_CORRUPT' }),
  );
});

test('reads entries that an earlier key encrypted, and fails if that key is missing', async () => {
  const store = memoryJournal();
  const later = randomBytes(32).toString('base64');
  await encryptedJournal(store, { key }).append(entry(1));
  await encryptedJournal(store, { key: later, earlierKeys: [key] }).append(entry(2));
  expect(await encryptedJournal(store, { key: later, earlierKeys: [key] }).read()).toEqual([
    entry(1),
    entry(2),
  ]);
  expect(() => encryptedJournal(store, { key: later }).read()).toThrow(
    expect.objectContaining({ code: 'JOURNAL_KEY_MISSING', retryable: false }),
  );
});

test('ENCRYPTED-JOURNAL-3: refuses plain entries unless `readsPlain` is set and they come first', async () => {
  const store = memoryJournal();
  store.append(entry(1));
  await encryptedJournal(store, { key }).append(entry(2));
  expect(() => encryptedJournal(store, { key }).read()).toThrow(
    expect.objectContaining({
      code: 'JOURNAL_CORRUPT',
      retryable: false,
      message: expect.stringContaining('`readsPlain: true`'),
    }),
  );
  const lenient = encryptedJournal(store, { key, readsPlain: true });
  expect(await lenient.read()).toEqual([entry(1), entry(2)]);
});

test('ENCRYPTED-JOURNAL-3: refuses a plain entry after an encrypted one, even with `readsPlain`', async () => {
  const store = memoryJournal();
  const journal = encryptedJournal(store, { key, readsPlain: true });
  await journal.append(entry(1));
  store.append(entry(2));
  const refusal = expect.objectContaining({ code: 'JOURNAL_CORRUPT', retryable: false });
  expect(() => journal.read()).toThrow(refusal);
});

test('ENCRYPTED-JOURNAL-3: refuses to restore a session from entries that were forged without the key', async () => {
  const environment = simulatedEnvironment();
  const store = memoryJournal();
  const talk = () =>
    textTalk({
      sessionId: 'chat',
      runtime: createRuntime({ environment, journal: encryptedJournal(store, { key }) }),
    });
  const { session } = talk();
  await session.start();
  await Promise.all([session.sendText(WORD), environment.advance(1000)]);
  await Promise.all([session.suspend(), environment.advance(1000)]);
  const last = store.read({ unit: 'chat' }).at(-1);
  if (!last) throw new Error('Expected entries');
  const event = { type: 'user.said', text: 'yes' };
  store.append({ ...last, seq: last.seq + 1, event });
  const again = talk();
  await expect(Promise.all([again.session.start(), environment.advance(1000)])).rejects.toThrow(
    'is not encrypted',
  );
});

test.each([
  [{}],
  [{ key: 'a secret that is too short' }],
  [{ key: randomBytes(16) }],
  [{ key, earlierKeys: ['no'] }],
  [{ key, algorithm: 'rot13' }],
])('refuses invalid options (case %#) without showing a key', (options) => {
  expect(() => encryptedJournal(memoryJournal(), options as never)).toThrow(
    expect.objectContaining({
      code: 'INVALID_OPTION',
      message: expect.not.stringContaining('secret'),
    }),
  );
});

test.each(['claim', 'trim', 'release', 'scopes', 'forget'])(
  'names the method `%s` in the error if a journal lacks it',
  (name) => {
    const journal = { ...memoryJournal(), [name]: {} };
    expect(() => encryptedJournal(journal as never, { key })).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(name),
      }),
    );
  },
);

test('ENCRYPTED-JOURNAL-4: encrypts jobs deterministically, and decrypts only with its keys', () => {
  const codec = encryptionCodec({ key });
  const place = 'chat-1/run:answer:req_1';
  const sealed = codec.seal(WORD, place);
  expect(codec.open(sealed, place)).toBe(WORD);
  expect(codec.seal(WORD, place)).toBe(sealed);
  expect(codec.seal(`${WORD}!`, place).slice(0, 40)).not.toBe(sealed.slice(0, 40));
  expect(Buffer.from(sealed.split('.').at(-1) ?? '', 'base64').toString('latin1')).not.toContain(
    WORD,
  );
  const replaced = encryptionCodec({ key: randomBytes(32), earlierKeys: [key] });
  expect(replaced.open(sealed, place)).toBe(WORD);
  expect(() => encryptionCodec({ key }).open(replaced.seal(WORD, place), place)).toThrow(
    'earlierKeys',
  );
  const changed = `${sealed.slice(0, -6)}${sealed.at(-6) === 'A' ? 'B' : 'A'}${sealed.slice(-5)}`;
  expect(() => codec.open(changed, place)).toThrow();
  expect(() => codec.open(WORD, place)).toThrow(/^(?!.*Xylophon).*earlierKeys/);
  expect(() => encryptionCodec({ key: 'short' })).toThrow('openssl rand -base64 32');
});

test('ENCRYPTED-JOURNAL-4: refuses a text that has been moved to another context', () => {
  const codec = encryptionCodec({ key });
  const sealed = codec.seal('yes', 'chat-1/run:answer:req_1');
  for (const place of ['chat-1/run:answer:req_2', 'chat-2/run:answer:req_1', ''])
    expect(() => codec.open(sealed, place)).toThrow();
});

test('ENCRYPTED-JOURNAL-4: decrypts a text that an earlier version encrypted without a context', () => {
  const codec = encryptionCodec({ key: Buffer.alloc(32, 7) });
  expect(codec.open(SEALED_BEFORE, 'chat-1/run:order')).toBe('words of before');
  expect(() => codec.open(`2.${SEALED_BEFORE}`, 'chat-1/run:order')).toThrow();
});
