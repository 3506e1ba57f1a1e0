// Passes a megabyte of each hostile text to every part of `src` that reads long texts. Reports the start and the end of
// each of these runs.

import { parentPort } from 'node:worker_threads';
import { plainWords } from '../../src/language/utterance.ts';
import { speakable } from '../../src/memory/speakable.ts';
import { readNotes } from '../../src/actors/notes/note.ts';
import { NoteMarks } from '../../src/actors/notes/note-marks.ts';
import { verifyClaims } from '../../src/results/verify-claims.ts';
import { secretRemover } from '../../src/values/secrets.ts';
import { countWords } from '../../src/values/bm25.ts';
import { endsSentence } from '../../src/values/sentences.ts';
import { SentenceChunker } from '../../src/voice/speech/sentence-chunker.ts';
import { placeWords } from '../../src/voice/speech/spoken-words.ts';

const CHARS = 1_000_000;

const TEXTS = [
  '\\',
  '\\"',
  '\\u005c',
  '%25',
  '"',
  '"key":"',
  '"a.key":',
  'token=',
  'token:\\\\',
  'A_TOKEN=',
  'sk-.',
  'sk-a-',
  '-eyJa',
  'eyJ.',
  'Bearer ',
  'basic a',
  '://a:',
  '?key=',
  'authorization:\\',
  '-----BEGIN PRIVATE',
  '-----END PRIVATE KEY-----',
  '[',
  '[](',
  '«',
  '```',
  '* ',
  '|',
  '__a',
  ' ',
  '\t',
  '\n',
  '\r',
  'a',
  'a. ',
  '1. ',
  '...',
  '!',
  '0',
  'I a and ',
  'hi\n',
  '> ',
  '字',
  'é',
  'u\u0308',
  'ﷺ',
  '\u200b',
  '🙂',
  '[Subagent task : "',
  '[data ',
  'kein Problem, ',
];

const redacted = secretRemover(['a secret text']);
const marks = new NoteMarks('secret');
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  redaction: redacted,
  'redaction of a property': (text) => redacted(`{"password":"${text}`),
  'words of a page': plainWords,
  speakable: (text) => speakable(text),
  notes: readNotes,
  'note marks': (text) => marks.guard(text),
  claims: (text) => verifyClaims({ text, toolLedger: [] }),
  ranking: countWords,
  'end of a sentence': endsSentence,
  sentences: (text) => new SentenceChunker().push(text),
  'places of words': (text) => placeWords(text, 0, 1),
};

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker of Node.js, not a window
const say = (message: object): void => parentPort?.postMessage(message);

for (const [name, read] of Object.entries(READERS))
  for (const text of TEXTS) {
    const what = `${name}: ${JSON.stringify(text)}`;
    say({ begun: what });
    read(text.repeat(CHARS / text.length));
    say({ ended: what });
  }
