// A voice session whose process dies. A result that the user did not hear is due again, but one that the user heard is
// not.

import { describe, expect, test } from 'vitest';
import { turns, voiceLife, world } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import type { VoiceTalkOptions } from '../../support/voice-talk.ts';

const reporting: VoiceTalkOptions = {
  subagents: { report: { script: turns(say('All is well.')) } },
};
const asking: VoiceTalkOptions = {
  subagents: {
    ride: {
      script: turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
        say(`Booked ${JSON.stringify(results[0])}`),
      ),
      config: { interactive: true },
    },
  },
};

describe('a result', () => {
  test('plays in the next process if it has not been heard', async () => {
    const of = world();
    const before = voiceLife(of, reporting);
    await before.start();
    await before.use('report');
    await before.pause();
    expect(before.asked()).toContain('All is well.');
    before.kill();
    const after = voiceLife(of, reporting);
    await after.start();
    await after.pause();
    expect(after.asked()).toContain('All is well.');
    await after.speak('All is well.');
    expect(after.result()).toMatchObject({ state: 'delivered', grade: 'played' });
    await after.close();
  });

  test('plays again from the beginning if the user heard only part of it', async () => {
    const of = world();
    const before = voiceLife(of, reporting);
    await before.start();
    await before.use('report');
    await before.pause();
    await before.play(before.model().speak('All is well.'), 200);
    before.kill();
    const after = voiceLife(of, reporting);
    await after.start();
    await after.pause();
    expect(after.asked()).toContain('All is well.');
    await after.close();
  });

  test('counts as delivered if it has been heard', async () => {
    const of = world();
    const before = voiceLife(of, reporting);
    await before.start();
    await before.use('report');
    await before.pause();
    await before.speak('All is well.');
    expect(before.result()).toMatchObject({ state: 'delivered' });
    before.kill();
    const after = voiceLife(of, reporting);
    await after.start();
    await after.pause();
    expect(after.asked()).toBeNull();
    expect(after.state().deliveries).toEqual([]);
    await after.close();
  });

  test('waits for the next caller, even if that caller uses another transport an hour later', async () => {
    const of = world();
    const before = voiceLife(of, reporting);
    await before.start();
    await before.use('report');
    before.leave();
    await of.environment.settle();
    before.kill();
    await of.environment.advance(3_600_000);
    const after = voiceLife(of, reporting);
    await after.session.start();
    await after.pause();
    expect(after.asked()).toBeNull();
    after.session.attach();
    await after.pause();
    expect(after.asked()).toContain('All is well.');
    await after.close();
  });
});

describe('a question', () => {
  test('returns under its original id and accepts an answer', async () => {
    const of = world();
    const before = voiceLife(of, asking);
    await before.start();
    await before.use('ride');
    await before.pause();
    await before.speak('Which class?');
    const question = before.question();
    expect(question).toMatchObject({ state: 'open' });
    before.kill();
    await of.environment.advance(500_000);

    const after = voiceLife(of, asking);
    await after.start();
    expect(after.question()).toMatchObject({ requestId: question?.requestId, state: 'presenting' });
    // Utterances before the question is heard again are for the lead agent (P3).
    await after.pause();
    expect(after.asked()).toContain('Which class?');
    await after.speak('Which class?');
    await after.say('economy');
    await after.pause();
    expect(after.asked()).toContain('economy');
    expect(after.state().subagents).toMatchObject([{ state: 'completed' }]);
    await after.close();
  });

  test('keeps an answer that was accepted just before the crash', async () => {
    const of = world();
    const before = voiceLife(of, asking);
    await before.start();
    await before.use('ride');
    await before.pause();
    await before.speak('Which class?');
    // The process is killed right after it accepted the answer, which the subagent has not received.
    of.killAt(of.entries.length + 3, 'after');
    await before.say('economy');
    expect(before.isAlive()).toBe(false);
    expect(of.entries.at(-1)?.event.type).toBe('user.said');
    const after = voiceLife(of, asking);
    await after.start();
    await after.pause();
    expect(after.asked()).toContain('economy');
    await after.close();
  });
});

describe('the lead agent', () => {
  test('delivers a pending reply once a client attaches', async () => {
    const of = world();
    const before = voiceLife(of);
    await before.start();
    await before.say('What time is it?');
    expect(before.asked()).toBe('reply');
    before.kill();
    const after = voiceLife(of);
    await after.session.start();
    await of.environment.settle();
    expect(after.asked()).toBeNull();
    after.session.attach();
    await of.environment.settle();
    expect(after.asked()).toBe('reply');
    await after.speak('Noon.');
    after.kill();
    const third = voiceLife(of);
    await third.start();
    await third.pause();
    expect(third.asked()).toBeNull();
    await third.close();
  });

  test.each([
    ['told a result meanwhile', 'report', 'All is well.'],
    ['replied to earlier words meanwhile', null, 'It is noon.'],
  ] as const)('replies to a message that was typed while it %s', async (_, tool, text) => {
    const of = world();
    const before = voiceLife(of, reporting);
    await before.start();
    if (tool === null) await before.say('What time is it?');
    else {
      await before.use(tool);
      await before.pause();
    }
    expect(before.asked()).not.toBeNull();
    await of.environment.advance(100);
    await before.session.sendText('hello');
    await of.environment.advance(100);
    // The speech started before the user typed, but its first word is only known now.
    before.model().speak(text);
    await of.environment.settle();
    expect(before.state().transcript.map((item) => item.text)).toEqual(
      expect.arrayContaining(['hello', text]),
    );
    before.kill();
    const after = voiceLife(of, reporting);
    await after.start();
    await of.environment.settle();
    expect(after.asked()).toBe('reply');
    await after.close();
  });

  test('does not greet again', async () => {
    const of = world();
    const before = voiceLife(of, { greeting: 'Say hello.' });
    await before.start();
    await before.speak('Hello!');
    before.kill();
    const after = voiceLife(of, { greeting: 'Say hello.' });
    await after.start();
    await after.pause();
    expect(after.asked()).toBeNull();
    await after.close();
  });
});
