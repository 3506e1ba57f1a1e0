// Real utterances from people who are asked for approval.

import { describe, expect, test } from 'vitest';
import { matchAnswer } from '../../src/language/match-answer.ts';

const verdict = (utterance: string): string =>
  matchAnswer({ kind: 'approval', options: [], action: 'send_email' }, utterance).kind;

const corpus: Readonly<Record<string, readonly string[]>> = {
  approved: [
    'Yes.',
    'Yes, please.',
    'Yeah.',
    'Yeah, go ahead.',
    'Yep, do it.',
    'Sure.',
    'Sure, go ahead.',
    'Of course.',
    'Absolutely.',
    'Go ahead.',
    'Go right ahead.',
    'Please do.',
    'Please go ahead, thank you.',
    'Okay, do it.',
    'Okay yes.',
    'Alright, go for it.',
    'Sounds good, please do.',
    "That's fine, go ahead.",
    'Permission granted.',
    'You have my permission.',
    'Approved.',
    'I approve.',
    'Confirmed, thanks!',
    'By all means.',
    'Yes you may.',
    'Um, yes.',
    'Uh, yeah, sure.',
    'Well yes.',
    'Yes yes yes.',
    "Let's do it.",
    'Yes, do that now please.',
    'Yes, send it.',
    'Yes, send the email.',
    'yes go um ahead',
  ],
  denied: [
    'No.',
    'No, thanks.',
    'No thank you.',
    'Nope.',
    'Nah.',
    'No way.',
    "Don't.",
    'Please don’t.',
    "Don't do that.",
    'Do not send it.',
    "No, don't.",
    "No, I don't want that.",
    'Absolutely not.',
    'Certainly not.',
    'Not now.',
    'Not today, thanks.',
    "I'd rather not.",
    "I don't think so.",
    'Never mind.',
    'Forget it.',
    'Cancel that.',
    'Stop.',
    'Stop asking.',
    'Stop asking me.',
    'Denied.',
    'Permission denied.',
    "Okay, wait, don't run that.",
    "Yes, but don't send it.",
    "Yes... no, wait, don't.",
    'No, send it to Peter instead.',
    'No, ask my wife first.',
    'Well, no.',
    'Um, no.',
    'Yeah, no.',
    'Sure, but not now.',
    'You may not.',
    'Wait, no!',
  ],
  hold: [
    'Wait.',
    'Hold on.',
    'Hang on a second.',
    'One moment please.',
    'Just a second.',
    'Hmm.',
    'Um.',
    'Let me think.',
    'Let me think about it.',
    'Give me a minute.',
    'Not yet.',
    'Yes, wait.',
    'Okay, wait.',
  ],
  digression: [
    // The lead agent handles the change.
    'Yes, but only to Anna.',
    'Yes, to Bob and Carol.',
    'Yes, and delete the draft as well.',
    'What does it do?',
    'What will it cost?',
    'Is it safe?',
    'Who gets it?',
    'Why?',
    'Why not?',
    'How long does that take',
    "Doesn't it need a subject?",
    'Can you read it to me first?',
    'What time is it?',
  ],
  unclear: [
    'Okay.',
    'Alright.',
    'Right.',
    'Mm-hm.',
    'Uh-huh.',
    'Fine.',
    'Great.',
    'Sounds good.',
    'Perfect, thanks.',
    'Maybe.',
    'I guess so.',
    "I don't know.",
    "I'm not sure.",
    "I don't care.",
    'Whatever.',
    'Yes if it is free.',
    'Only if he agrees.',
    'Yes?',
    'No?',
    'Approve the transfer.',
    'Yes, transfer the money.',
    'Send it.',
    'No problem.',
    'No problem, go ahead.',
    'No head.',
    'Hmm, yes.',
    'Let me see, yes.',
    'A prince,',
    'Thank you.',
    'I said yes yesterday.',
    'Yeah, right.',
    'Oh sure.',
  ],
  repeat: ['What?', 'Pardon?', 'Could you say that again?'],
};

describe.each(Object.entries(corpus))('P3: %s', (kind, phrases) => {
  test.each(phrases)('%s', (phrase) => {
    expect(verdict(phrase)).toBe(kind);
  });
});

test('contains more than a hundred distinct phrases', () => {
  const all = Object.values(corpus).flat();
  expect(all.length).toBeGreaterThan(100);
  expect(new Set(all).size).toBe(all.length);
});

test('does not mistake consent to one tool for consent to another', () => {
  const ask = (action: string, said: string): string =>
    matchAnswer({ kind: 'approval', options: [], action }, said).kind;
  expect(ask('sendEmail', 'yes, send the email')).toBe('approved');
  expect(ask('delete_file', 'yes, send the email')).toBe('unclear');
  expect(ask('delete_file', 'yes, delete the file')).toBe('approved');
  // The verb of the action does not deny the action. Without a yes, it does not approve the action either.
  expect(ask('cancel_order', 'yes, cancel it')).toBe('approved');
  expect(ask('cancel_order', 'cancel it')).toBe('unclear');
  expect(ask('cancel_order', "no, don't cancel it")).toBe('denied');
  expect(ask('book_flight', 'yes, cancel it')).toBe('denied');
  expect(ask('stop', 'stop')).toBe('unclear');
  expect(ask('stop', 'stop asking')).toBe('denied');
  expect(ask('', 'yes')).toBe('approved');
});
