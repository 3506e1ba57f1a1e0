// A room without an echo canceller: the microphone picks up the lead agent's speech, and a recogniser transcribes it.
// The lead agent neither interrupts nor answers itself, and the user is understood.

import { describe, expect, test } from 'vitest';
import { sayUntil } from './support/say-until.ts';
import { troubles } from './support/stage.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

describe('echo', () => {
  test('P5: a conversation with an echo of -20 dB', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit({ echoDb: -20 });
    await tab.startTalking();
    await tab.type('make me a sales report for last week');
    const result = await watch.until('the result was heard', ({ deliveries }) =>
      deliveries.find(({ kind, state }) => kind === 'result' && state === 'delivered'),
    );
    await watch.untilQuiet();
    expect(result.attempts).toBe(1);
    // The transcript contains only what the user typed.
    expect(
      watch.state.transcript.filter(({ role, text }) => role === 'user' && text !== ''),
    ).toHaveLength(1);
    const joke = { text: 'Tell me a joke, please.', matters: ['joke'] };
    await sayUntil(stage, tab, 'a joke is told', joke, ({ transcript }) =>
      transcript.some(
        ({ role, text }) =>
          role === 'assistant' && /actor get lost|two agents the same question/.test(text),
      ),
    );
    expect(troubles(stage, tab)).toEqual([]);
  });
});
