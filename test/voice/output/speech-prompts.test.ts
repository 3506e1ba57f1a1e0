import { expect, test } from 'vitest';
import { note, sentence } from '../../../src/actors/notes/note.ts';
import type { Offer } from '../../../src/actors/session/lead/lead-driver.ts';
import { acknowledgementIn } from '../../../src/language/acknowledgement.ts';
import { offerInstructions } from '../../../src/voice/output/speech-prompts.ts';

const offer = (kind: Offer['kind']): Offer =>
  ({ kind, attempt: 1, prompt: note(sentence`It is asked.`) }) as unknown as Offer;

test.each([
  ['question', 'by_itself', true],
  ['question', 'when_asked', false],
  ['result', 'by_itself', false],
] as const)(
  'a %s for a model that answers %s: what to say to the answer is told: %s',
  (kind, responds, isTold) => {
    const told = offerInstructions(offer(kind), 'k-1', responds);
    expect(told.includes('When they answer it')).toBe(isTold);
  },
);

test('what the model is told to say is what the runtime lets be heard', () => {
  const answer = { choice: 'Premium', isApproval: false, language: 'en' };
  expect(acknowledgementIn('Premium. One moment.', answer)).toBe('whole');
  expect(acknowledgementIn('One moment.', { ...answer, isApproval: true })).toBe('whole');
});
