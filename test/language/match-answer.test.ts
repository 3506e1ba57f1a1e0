import { expect, test } from 'vitest';
import { literal } from '../../src/language/language.ts';
import { matchAnswer } from '../../src/language/match-answer.ts';

const open = { kind: 'free_text', options: [] } as const;

test.each([
  'John Smith',
  '12 High Street',
  'no',
  'yes',
  'Wait, make it Tuesday',
  'Let me see, Tuesday at nine',
  'Hold the line is the title',
  'What a day, that is the title',
  'A pardon letter',
])('reads as free text: %s', (text) => {
  expect(matchAnswer(open, `  ${text} `)).toEqual({ kind: 'free_text', text });
});

test.each([
  'Cancel my gym membership',
  'Maybe Tuesday?',
  'Tell him that I am late',
  'First the news',
])('reads as unclear free text: %s', (text) => {
  expect(matchAnswer(open, text)).toEqual({ kind: 'free_text', text, doubt: true });
});

test.each([
  ['', 'unclear'],
  ['   ', 'unclear'],
  ['wait', 'hold'],
  ['Hmm.', 'hold'],
  ['um, one moment please', 'hold'],
  ['let me think', 'hold'],
  ['hang on, I need to look it up', 'hold'],
  ['Pardon?', 'repeat'],
  ['Could you repeat that please?', 'repeat'],
  ["Sorry, I didn't catch that", 'repeat'],
  ['never mind', 'digression'],
  ['Never mind, tell me the news', 'digression'],
  ['By the way, who won?', 'digression'],
  ['What time is it', 'digression'],
  ['What should I say?', 'digression'],
  ['Can you tell me the weather', 'digression'],
  ['stop asking me', 'digression'],
  ['cancel', 'digression'],
])('finds no answer: %s is %s', (utterance, kind) => {
  expect(matchAnswer(open, utterance)).toEqual({ kind });
});

test("reads an answer with an app's own language tables", () => {
  const language = {
    ...literal,
    code: 'de',
    polite: ['bitte'],
    consent: { ...literal.consent, yes: ['ja', 'mach das'], no: ['nein'] },
  };
  const approval = { kind: 'approval', options: [] } as const;
  expect(matchAnswer(approval, 'Ja, bitte!', { language })).toEqual({ kind: 'approved' });
  expect(matchAnswer(approval, 'Nein', { language })).toEqual({ kind: 'denied' });
  expect(matchAnswer(approval, 'yes', { language })).toEqual({ kind: 'unclear' });
});

test.each([
  'One moment, my wife wants to say something.',
  "Don't send anything, I'll call her myself.",
])('finds no answer in a reply that postpones or cancels the request: %s', (text) => {
  const { kind, doubt } = matchAnswer(open, text) as { kind: string; doubt?: boolean };
  expect(kind !== 'free_text' || doubt === true).toBe(true);
});
