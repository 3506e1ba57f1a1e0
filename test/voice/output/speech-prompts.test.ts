import { expect, test } from 'vitest';
import { note, sentence } from '../../../src/actors/notes/note.ts';
import type { Offer } from '../../../src/actors/session/lead/speaker.ts';
import { acknowledgementIn } from '../../../src/language/acknowledgement.ts';
import { offerInstructions } from '../../../src/voice/output/speech-prompts.ts';

const offer = (kind: Offer['kind']): Offer =>
  ({ kind, attempt: 1, prompt: note(sentence`It is asked.`) }) as unknown as Offer;

test.each([
  ['question', 'by_itself', 'named', 'When they answer, call settle_question'],
  ['question', 'by_itself', 'delegation', 'When they answer, delegate it'],
  ['question', 'when_asked', 'named', null],
  ['result', 'by_itself', 'named', null],
] as const)(
  'prompts for a %s with a model that responds %s and acts by %s: %s',
  (kind, responds, toolCalls, answering) => {
    const told = offerInstructions(offer(kind), 'k-1', { responds, toolCalls });
    expect(/When they answer, [^,]+/.exec(told)?.[0] ?? null).toBe(answering);
  },
);

test('suggests phrases to the model that the runtime accepts as an acknowledgement', () => {
  const answer = { choice: 'Premium', isApproval: false, language: 'en' };
  expect(acknowledgementIn('Premium. One moment.', answer)).toBe('whole');
  expect(acknowledgementIn('One moment.', { ...answer, isApproval: true })).toBe('whole');
});
