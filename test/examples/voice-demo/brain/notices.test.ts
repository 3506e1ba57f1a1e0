// The words are those of the runtime itself, so that a change of its wording is noticed here.

import { describe, expect, test } from 'vitest';
import { readNotice } from '../../../../examples/voice-demo/brain/notices.ts';
import {
  cancelledNote,
  completedPrompt,
  failedPrompt,
  noticePrompt,
  overheardNote,
  questionPrompt,
} from '../../../../src/actors/session/prompts.ts';

describe('what the runtime puts into the conversation', () => {
  test('a question with options', () => {
    const prompt = questionPrompt('Which ride would you like?', [
      { id: 'e', label: 'Economy', description: '$12, in 5 min' },
      { id: 'p', label: 'Premium' },
    ]);
    expect(readNotice(prompt)).toEqual({
      type: 'question',
      question: 'Which ride would you like?',
      options: [
        { label: 'Economy', detail: '$12, in 5 min' },
        { label: 'Premium', detail: null },
      ],
    });
  });

  test('a question without options', () => {
    expect(readNotice(questionPrompt('Where are you?', []))).toEqual({
      type: 'question',
      question: 'Where are you?',
      options: [],
    });
  });

  test('a result of several lines, with full stops and quotes', () => {
    const result = 'Done. "All" is well.\nSee you.';
    expect(readNotice(completedPrompt('book_ride', result))).toEqual({
      type: 'completed',
      toolName: 'book_ride',
      result,
    });
  });

  test('a failure', () => {
    const prompt = failedPrompt('book_ride', {
      code: 'TIMEOUT',
      message: 'No driver. Sorry',
      retryable: true,
    });
    expect(readNotice(prompt)).toEqual({
      type: 'failed',
      toolName: 'book_ride',
      error: 'No driver. Sorry',
    });
  });

  test('a cancellation', () => {
    expect(readNotice(cancelledNote('book_ride', 'the user asked for it'))).toEqual({
      type: 'cancelled',
      toolName: 'book_ride',
    });
  });

  test('news', () => {
    expect(readNotice(noticePrompt('ORDER UPDATE', 'Order 1 is on its way.'))).toEqual({
      type: 'news',
      label: 'ORDER UPDATE',
      text: 'Order 1 is on its way.',
    });
  });

  test('words that were for a subagent', () => {
    expect(readNotice(overheardNote('the "cheap" one', 'ride_booker'))).toEqual({
      type: 'overheard',
      words: 'the "cheap" one',
    });
  });

  test('a notice that a conversation log has wrapped once more', () => {
    expect(readNotice(`[SYSTEM: ${noticePrompt('SUBAGENT UPDATE', 'Half way.')}]`)).toEqual({
      type: 'news',
      label: 'SUBAGENT UPDATE',
      text: 'Half way.',
    });
  });

  test('what it is to know, but not to say', () => {
    expect(readNotice('[SYSTEM: The conversation was handed from a to b.]')).toMatchObject({
      type: 'background',
    });
    expect(readNotice('[SYSTEM: [Context summary]: They talked.]')).toMatchObject({
      type: 'background',
    });
  });

  test.each(['Book me a ride', '[laughs] hello', 'You are helpful.', '[]: x'])(
    '%j is none',
    (text) => {
      expect(readNotice(text)).toBeNull();
    },
  );
});
