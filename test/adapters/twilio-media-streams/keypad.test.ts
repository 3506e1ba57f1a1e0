import { describe, expect, test } from 'vitest';
import { Keypad, type AskedQuestion } from '../../../src/adapters/twilio-media-streams/keypad.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

const optionsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `option_${index + 1}` }));

function keypadFor(...questions: Partial<AskedQuestion>[]) {
  const environment = simulatedEnvironment();
  const done: string[] = [];
  const keypad = new Keypad(
    {
      questions: () =>
        questions.map((question, index) => ({
          requestId: `req_${index + 1}`,
          kind: 'question',
          state: 'open',
          options: optionsOf(2),
          ...question,
        })),
      answer: (requestId, optionId) => done.push(`${requestId} ${optionId}`),
      typed: (text) => done.push(text),
    },
    environment.scheduler,
    2000,
  );
  const press = (keys: string): void => keys.split('').forEach((key) => keypad.press(key));
  return { environment, keypad, press, done };
}

describe('a keypad during a question with options', () => {
  test('selects an option as soon as its key is pressed, in the order of the options', () => {
    const { press, done } = keypadFor({});
    press('2');
    expect(done).toEqual(['req_1 option_2']);
  });

  test('answers the question that is being presented, even if other questions came before it', () => {
    const { press, done } = keypadFor(
      { state: 'answered' },
      { state: 'presenting' },
      { state: 'queued' },
    );
    press('1');
    expect(done).toEqual(['req_2 option_1']);
  });

  test('passes on a key as typed text if it matches no option', () => {
    const { press, done } = keypadFor({});
    press('7');
    press('0');
    press('*');
    expect(done).toEqual(['7', '0', '*']);
  });

  test('waits for a second key or # if there are more options than keys', async () => {
    const { press, done, environment } = keypadFor({ options: optionsOf(12) });
    press('1');
    expect(done).toEqual([]);
    press('2');
    await environment.advance(2000);
    press('3#');
    expect(done).toEqual(['req_1 option_12', 'req_1 option_3']);
  });
});

describe('a keypad without options', () => {
  test('KEYPAD-2: joins keys into one text, which ends after a pause or at #', async () => {
    const { press, done, environment } = keypadFor({ options: [] });
    press('47');
    await environment.advance(1999);
    press('11');
    expect(done).toEqual([]);
    await environment.advance(2000);
    press('8#');
    press('#');
    expect(done).toEqual(['4711', '8']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('KEYPAD-1: does not accept a key as approval', () => {
    const { press, done } = keypadFor({ kind: 'approval' });
    press('1#');
    expect(done).toEqual(['1']);
  });

  test('discards unfinished input when the call ends', async () => {
    const { keypad, press, done, environment } = keypadFor();
    press('47');
    keypad.stop();
    await environment.advance(5000);
    expect(done).toEqual([]);
  });
});
