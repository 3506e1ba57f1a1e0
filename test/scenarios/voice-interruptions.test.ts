// The user makes a sound while the lead agent is speaking. The speech stops at once, and continues if the sound was not
// an interruption (P4, P5).

import { describe, expect, test } from 'vitest';
import { BY_ITSELF, FakeTransport, SPOKEN_LEVEL } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const report = { report: { script: steps(say('42 sales')) } };

/** Starts a story of 4 s and plays 1 s of it. */
async function story(options: VoiceTalkOptions = {}, text = 'Once upon a time there was a king.') {
  const talk = voiceTalk(options);
  const sounds: { itemId: string; ms: number }[] = [];
  talk.session.audioOut.subscribe(({ itemId = '', samples }) =>
    sounds.push({ itemId, ms: samples.length / 24 }),
  );
  await talk.start();
  await talk.say('tell me a story');
  const isByItself = talk.transport.capabilities.responds === 'by_itself';
  const spoken = isByItself
    ? talk.model().beginByItself(text, 4000)
    : talk.model().begin(text, 4000);
  await talk.play(spoken.itemId, 1000);
  sounds.length = 0;
  const { model, environment, events } = talk;
  return {
    ...talk,
    ...spoken,
    sounds,
    /** Makes the user start a sound and the client stop. */
    async begins(id = 'u1', stoppedMs = 1100) {
      model().speechStarted(id);
      await environment.settle();
      await talk.play(spoken.itemId, stoppedMs);
    },
    async ends(text: string, id = 'u1') {
      model().speechEnded(id, text);
      await environment.settle();
    },
    eventsOf: (type: string) => events.filter((event) => event.type === type),
  };
}

describe('P5: a backchannel', () => {
  test('pauses speech immediately and resumes it where it was last heard', async () => {
    const { begins, ends, sounds, itemId, eventsOf, model, end, play, asked, state } =
      await story();
    await begins();
    expect(eventsOf('playout.clear')).toHaveLength(1);
    expect(sounds).toEqual([]);
    await ends('Mm-hm.');
    expect(sounds).toEqual([{ itemId: `${itemId}~2`, ms: 2900 }]);
    expect(eventsOf('speech.resumed')).toEqual([
      { type: 'speech.resumed', itemId, playedMs: 1100 },
    ]);
    expect(eventsOf('backchannel.heard')).toEqual([
      { type: 'backchannel.heard', utteranceId: 'u1', text: 'Mm-hm.' },
    ]);
    // The model does not notice the sound: it was neither interrupted nor spoken to.
    expect(model().of('response.cancel')).toEqual([]);
    expect(model().of('playout.truncate')).toEqual([]);
    expect(model().of('item.delete')).toEqual([{ type: 'item.delete', itemId: 'u1' }]);
    end();
    await play(`${itemId}~2`, 2900);
    expect(asked()).toBeNull();
    expect(state().floor).toBe('nobody');
    expect(state().transcript.filter(({ role }) => role === 'user')).toHaveLength(1);
    expect(state().transcript.at(-1)).not.toHaveProperty('interrupted');
  });

  test('does not move the floor, and therefore does not cancel any subagent', async () => {
    const working = { script: steps(calls(['ask_user', { question: 'Which?' }])) };
    const { begins, ends, state } = await story({
      subagents: { work: { ...working, config: { interactive: true, onBargeIn: 'cancel' } } },
    });
    await begins();
    await ends('right');
    expect(state().subagents.every((subagent) => subagent.state !== 'cancelled')).toBe(true);
  });

  test("depends on the agent's language", async () => {
    const german = await story({ agent: { language: 'de' } });
    await german.begins();
    await german.ends('Ach so, genau.');
    expect(german.eventsOf('speech.resumed')).toHaveLength(1);
    const english = await story();
    await english.begins();
    await english.ends('Ach so, genau.');
    expect(english.eventsOf('speech.resumed')).toEqual([]);
  });

  test('P4: does not prevent a result from being played to its end and counted as heard once', async () => {
    const { start, use, pause, model, play, result, environment } = voiceTalk({
      subagents: report,
    });
    await start();
    await use('report');
    await pause();
    const itemId = model().speak('42 sales.', 1000);
    await play(itemId, 400);
    model().speechStarted('u1');
    await environment.settle();
    await play(itemId, 450);
    model().speechEnded('u1', 'okay');
    await environment.settle();
    expect(result()).toMatchObject({ state: 'playing', attempts: 1 });
    // The client counts from the start of the repeated audio.
    await play(`${itemId}~2`, 440);
    expect(result()).toMatchObject({ state: 'playing' });
    await play(`${itemId}~2`, 450);
    expect(result()).toMatchObject({ state: 'delivered', attempts: 1 });
  });
});

describe('a noise', () => {
  test('pauses speech only briefly', async () => {
    const { begins, ends, sounds, itemId, eventsOf, model } = await story();
    await begins();
    await ends('');
    expect(sounds).toEqual([{ itemId: `${itemId}~2`, ms: 2900 }]);
    expect(eventsOf('backchannel.heard')).toEqual([]);
    expect(model().of('response.cancel')).toEqual([]);
  });

  test('disappears from the transcript even if parts of it have been shown', async () => {
    const { begins, ends, model, environment, state } = await story();
    await begins();
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'Mm',
      final: false,
    });
    await environment.settle();
    expect(state().transcript.at(-1)).toMatchObject({ id: 'u1', text: 'Mm', final: false });
    await ends('Mm-hm.');
    expect(state().transcript.find(({ id }) => id === 'u1')).toMatchObject({
      text: '',
      final: true,
    });
  });

  test('pauses speech for `falseInterruptionMs` if its transcript never arrives', async () => {
    const { begins, sounds, model, environment } = await story({
      voice: { falseInterruptionMs: 700 },
    });
    await begins();
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    await environment.advance(699);
    expect(sounds).toEqual([]);
    await environment.advance(1);
    expect(sounds).toHaveLength(1);
  });

  test('lets speech resume if it cannot be transcribed', async () => {
    const { begins, sounds, model, environment } = await story();
    await begins();
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    model().events.next({ type: 'utterance.untranscribed', utteranceId: 'u1', reason: 'noise' });
    await environment.settle();
    expect(sounds).toHaveLength(1);
  });
});

describe("P5: a session that receives the microphone's audio", () => {
  const LOUD = 8000;
  const QUIET = 50;

  /** Plays a voice at this level for this long over the lead agent's speech. */
  async function hears(
    { session, environment }: Pick<ReturnType<typeof voiceTalk>, 'session' | 'environment'>,
    level: number,
    ms: number,
  ) {
    for (let at = 0; at < ms; at += 20) {
      session.audioIn.next({ samples: new Int16Array(480).fill(level), sampleRateHz: 24_000 });
      await environment.advance(20);
    }
  }

  async function heardStory(options: VoiceTalkOptions = {}) {
    const talk = await story(options);
    const levels: number[] = [];
    talk.session.audioOut.subscribe(({ samples }) => levels.push(samples[0] as number));
    await hears(talk, QUIET, 100);
    await hears(talk, LOUD, 200);
    return { ...talk, levels, hears: (level: number, ms: number) => hears(talk, level, ms) };
  }

  test('lowers the volume for a short sound and leaves no gap', async () => {
    const talk = await heardStory();
    const { begins, ends, sounds, levels, play, itemId, eventsOf } = talk;
    await begins();
    // The speech continues as soon as the client has reported its position.
    expect(sounds).toEqual([{ itemId: `${itemId}~2`, ms: 2900 }]);
    expect(levels[0]).toBeCloseTo(SPOKEN_LEVEL * 10 ** (-15 / 20), -1);
    await talk.hears(LOUD, 200);
    await talk.hears(QUIET, 400);
    expect(eventsOf('playout.clear')).toHaveLength(1);
    await play(`${itemId}~2`, 600);
    await ends('Mm-hm.');
    expect(eventsOf('playout.clear')).toHaveLength(2);
    await play(`${itemId}~2`, 620);
    expect(sounds.slice(1)).toEqual([{ itemId: `${itemId}~3`, ms: 2280 }]);
    expect(levels[1]).toBe(SPOKEN_LEVEL);
    expect(eventsOf('speech.resumed')).toEqual([
      { type: 'speech.resumed', itemId, playedMs: 1720 },
    ]);
    expect(eventsOf('speech.interrupted')).toEqual([]);
  });

  test('waits for a limited time if the client does not report where playback stopped', async () => {
    const { model, environment, sounds, itemId } = await heardStory({
      voice: { clearReportMs: 200 },
    });
    model().speechStarted('u1');
    await environment.advance(199);
    expect(sounds).toEqual([]);
    await environment.advance(1);
    expect(sounds).toEqual([{ itemId: `${itemId}~2`, ms: 3000 }]);
  });

  test('stops the speech when the user speaks for longer, and resumes it after a backchannel', async () => {
    const talk = await heardStory();
    const { begins, ends, sounds, levels, play, itemId, eventsOf } = talk;
    await begins();
    // "Right, I see."
    await talk.hears(LOUD, 580);
    expect(eventsOf('playout.clear')).toHaveLength(1);
    await talk.hears(LOUD, 20);
    expect(eventsOf('playout.clear')).toHaveLength(2);
    await play(`${itemId}~2`, 250);
    expect(sounds).toHaveLength(1);
    await ends('Yeah, that makes sense.');
    expect(sounds.slice(1)).toEqual([{ itemId: `${itemId}~3`, ms: 2650 }]);
    expect(levels[1]).toBe(SPOKEN_LEVEL);
  });

  test("reports the position at which the user's voice stopped the speech", async () => {
    const talk = await heardStory();
    const { begins, ends, play, itemId, model, eventsOf } = talk;
    await begins();
    await talk.hears(LOUD, 650);
    await play(`${itemId}~2`, 200);
    await ends('Wait, who was that?');
    expect(model().of('playout.truncate')).toEqual([
      { type: 'playout.truncate', itemId, playedMs: 1300 },
    ]);
    expect(eventsOf('speech.interrupted')).toEqual([
      { type: 'speech.interrupted', itemId, playedMs: 1300 },
    ]);
  });

  test('stops the speech immediately for a voice that is too quiet to be measured', async () => {
    const talk = await story();
    const { begins, ends, sounds, eventsOf } = talk;
    await hears(talk, QUIET, 300);
    await begins();
    expect(eventsOf('playout.clear')).toHaveLength(1);
    expect(sounds).toEqual([]);
    await ends('Wait, who was that?');
    expect(eventsOf('speech.interrupted')).toHaveLength(1);
  });

  test('stops lowered speech when the user says a short word', async () => {
    const talk = await heardStory();
    const { begins, ends, play, itemId, model, sounds } = talk;
    await begins();
    await talk.hears(QUIET, 300);
    await ends('Stop.');
    await play(`${itemId}~2`, 300);
    expect(model().of('playout.truncate')).toEqual([
      { type: 'playout.truncate', itemId, playedMs: 1400 },
    ]);
    expect(sounds).toHaveLength(1);
  });

  test('plays lowered speech to its end and the next speech at full volume', async () => {
    const talk = await heardStory();
    const { begins, ends, end, play, itemId, model, levels, environment } = talk;
    await begins();
    end();
    await play(`${itemId}~2`, 2900);
    await ends('mm');
    await talk.say('and then?');
    model().begin('They lived happily.', 1000);
    await environment.settle();
    expect(levels).toHaveLength(2);
    expect(levels[1]).toBe(SPOKEN_LEVEL);
  });

  test.each([
    ['the client leaves', 'leave'],
    ['the session is closed', 'close'],
  ] as const)('does not resume lowered speech if %s', async (_what, end) => {
    const talk = await heardStory();
    const { model, environment, sounds } = talk;
    model().speechStarted('u1');
    await environment.settle();
    await talk[end]();
    await environment.advance(10_000);
    expect(sounds).toEqual([]);
  });

  describe('a question while it is being spoken', () => {
    async function asked(microphone: boolean) {
      const options = [
        { id: 'eco', label: 'Economy' },
        { id: 'prem', label: 'Premium' },
      ];
      const talk = voiceTalk({
        subagents: {
          ride: {
            script: steps(calls(['ask_user', { question: 'Economy or premium', options }]), () =>
              say('Booked.'),
            ),
            config: { interactive: true },
          },
        },
      });
      await talk.start();
      await talk.use('ride');
      await talk.pause();
      const putting = talk.model().begin('Economy or premium', 3000);
      await talk.play(putting.itemId, 1000);
      if (microphone) await hears(talk, LOUD, 100);
      talk.model().speechStarted('u1');
      await talk.environment.settle();
      await talk.play(putting.itemId, 1050);
      return { ...talk, ...putting };
    }

    test.each([
      ['a hum', 'Hmm.', true],
      ['a cough', '', true],
      ['a cough that the microphone did not tell of', '', false],
    ])('plays to its end despite %s', async (_what, words, microphone) => {
      const talk = await asked(microphone);
      talk.model().speechEnded('u1', words);
      await talk.environment.settle();
      if (microphone) await talk.play(`${talk.itemId}~2`, 50);
      expect(talk.model().of('response.cancel')).toEqual([]);
      talk.end();
      const rest = microphone ? `${talk.itemId}~3` : `${talk.itemId}~2`;
      await talk.play(rest, microphone ? 1900 : 1950);
      expect(talk.question()).toMatchObject({ state: 'open' });
      talk.model().utterance('Premium.');
      await talk.environment.settle();
      expect(talk.question()).toMatchObject({ state: 'answered', answer: 'Premium' });
    });

    test('stops when the user names an option, which answers the question', async () => {
      const talk = await asked(true);
      talk.model().speechEnded('u1', 'Premium.');
      await talk.environment.settle();
      expect(talk.model().of('response.cancel')).toHaveLength(1);
      talk.end('cancelled');
      await talk.environment.settle();
      expect(talk.question()).toMatchObject({ state: 'answered', answer: 'Premium' });
    });
  });
});

describe('an interruption', () => {
  test('stops the speech immediately where the client stopped, and gets a reply', async () => {
    const { begins, ends, itemId, end, eventsOf, model, sounds, asked, environment } =
      await story();
    await begins();
    await ends('Wait, who was that?');
    expect(model().of('response.cancel')).toHaveLength(1);
    expect(model().of('playout.truncate')).toEqual([
      { type: 'playout.truncate', itemId, playedMs: 1100 },
    ]);
    // The speech had already stopped.
    expect(eventsOf('playout.clear')).toHaveLength(1);
    end('cancelled');
    await environment.settle();
    expect(asked()).toBe('reply');
    expect(sounds).toEqual([]);
    expect(eventsOf('speech.interrupted')).toEqual([
      { type: 'speech.interrupted', itemId, playedMs: 1100 },
    ]);
  });

  test('stops the speech once it has lasted long enough, even without words', async () => {
    const { begins, model, environment } = await story();
    await begins();
    await environment.advance(1600);
    expect(model().of('response.cancel')).toHaveLength(1);
  });

  test('stops the speech at its first words', async () => {
    const { begins, model, environment } = await story();
    await begins();
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'Okay but',
      final: false,
    });
    await environment.settle();
    expect(model().of('response.cancel')).toHaveLength(1);
  });

  test('stops the speech with a "yes" to the lead agent\'s question', async () => {
    const { begins, ends, end, asked, environment } = await story(
      {},
      'I can book it for eight. Shall I do that?',
    );
    await begins();
    await ends('Yes.');
    end('cancelled');
    await environment.settle();
    expect(asked()).toBe('reply');
  });

  test('P3: stops the speech with any utterance while a question is open', async () => {
    const options = [
      { id: 'yes', label: 'Okay' },
      { id: 'no', label: 'Not today' },
    ];
    const { start, use, pause, model, play, question, environment } = voiceTalk({
      subagents: {
        ride: {
          script: steps(
            calls(['ask_user', { question: 'Shall I book it now', options }]),
            ({ results }) => say(`Got ${JSON.stringify(results[0])}`),
          ),
          config: { interactive: true },
        },
      },
    });
    await start();
    await use('ride');
    await pause();
    const putting = model().begin('Shall I book it now', 2000);
    await play(putting.itemId, 1500);
    await environment.advance(10);
    model().speechStarted('u1');
    await environment.settle();
    await play(putting.itemId, 1550);
    model().speechEnded('u1', 'okay');
    await environment.settle();
    expect(model().of('response.cancel')).toHaveLength(1);
    putting.end('cancelled');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Okay' });
  });

  test('stops the speech at any sound with `falseInterruptionMs: 0`', async () => {
    const { begins, model, eventsOf } = await story({ voice: { falseInterruptionMs: 0 } });
    await begins();
    expect(model().of('response.cancel')).toHaveLength(1);
    expect(model().of('playout.truncate')).toHaveLength(1);
    expect(eventsOf('playout.clear')).toHaveLength(1);
  });

  test('stops the speech if the model itself stops', async () => {
    const { begins, ends, end, sounds, environment } = await story({
      transport: new FakeTransport(BY_ITSELF),
    });
    await begins();
    end('cancelled');
    await environment.settle();
    await ends('mm-hm');
    await environment.advance(10_000);
    expect(sounds).toEqual([]);
  });
});

describe('an utterance that has not been transcribed yet', () => {
  test('keeps the speech paused if the connection is lost in the meantime', async () => {
    const { begins, model, sounds, environment } = await story();
    await begins();
    model().drop();
    await environment.advance(5000);
    expect(sounds).toEqual([]);
  });

  test('keeps the speech paused if the client leaves', async () => {
    const { begins, sounds, leave, environment, ends } = await story();
    await begins();
    leave();
    await ends('mm-hm');
    await environment.advance(10_000);
    expect(sounds).toEqual([]);
  });

  test('stops the speech for an urgent notice that was waiting for its transcript', async () => {
    const { begins, ends, session, model, environment, asked, end } = await story();
    await begins();
    session.notifyBackground('The house is on fire', { priority: 'urgent' });
    await environment.settle();
    expect(model().of('response.cancel')).toEqual([]);
    await ends('mm-hm');
    expect(model().of('response.cancel')).toHaveLength(1);
    end('cancelled');
    await environment.advance(1000);
    expect(asked()).toContain('on fire');
  });

  test('leaves no timer running when the session closes', async () => {
    const { begins, close, environment, sounds } = await story();
    await begins();
    await close();
    expect(environment.pendingTimers).toBe(0);
    expect(sounds).toEqual([]);
  });
});

describe('P4: a result that was interrupted', () => {
  /** Plays this much of the result until the user asks something else, which is answered. */
  async function interruptedAfter(playedMs: number) {
    const talk = voiceTalk({ subagents: report });
    const { start, use, pause, model, play, speak, environment } = talk;
    await start();
    await use('report');
    await pause();
    const told = model().begin('42 sales. That is more than last year.', 2000);
    await play(told.itemId, playedMs);
    model().speechStarted('u1');
    await environment.settle();
    await play(told.itemId, playedMs);
    model().speechEnded('u1', 'How late is it?');
    await environment.settle();
    told.end('cancelled');
    await environment.settle();
    await speak('It is nine.');
    await pause();
    return talk;
  }

  test('continues from the interrupted sentence', async () => {
    const { asked } = await interruptedAfter(1500);
    expect(asked()).toContain('As I was saying');
    expect(asked()).toContain('did not hear to its end');
    expect(asked()).not.toContain('say it again');
  });

  test('starts from the beginning if no whole sentence was heard', async () => {
    const { asked } = await interruptedAfter(100);
    expect(asked()).toContain('say it again');
    expect(asked()).not.toContain('As I was saying');
  });

  test('announces that it continues only once, and becomes a card after the third interruption', async () => {
    const { asked, model, play, environment, speak, pause, result } = await interruptedAfter(1500);
    for (const id of ['u2', 'u3']) {
      const told = model().begin('That is more than last year. And so on.', 2000);
      await play(told.itemId, 1500);
      model().speechStarted(id);
      await environment.settle();
      await play(told.itemId, 1500);
      model().speechEnded(id, 'And where?');
      await environment.settle();
      told.end('cancelled');
      await environment.settle();
      await speak('In Graz.');
      if (id === 'u2') {
        await pause();
        expect(asked()).toContain('did not hear to its end');
        expect(asked()).not.toContain('As I was saying');
      }
    }
    expect(result()).toMatchObject({ card: true, attempts: 3 });
  });
});

describe('P4: utterances that postpone a result while it is being delivered', () => {
  /** Plays half of the result until the user says this. */
  async function over(words: string) {
    const talk = voiceTalk({ subagents: report });
    await talk.start();
    await talk.use('report');
    await talk.pause();
    const told = talk.model().begin('42 sales.', 1000);
    await talk.play(told.itemId, 400);
    talk.model().speechStarted('u1');
    await talk.environment.settle();
    await talk.play(told.itemId, 450);
    talk.model().speechEnded('u1', words);
    await talk.environment.settle();
    told.end('cancelled');
    await talk.environment.settle();
    return talk;
  }

  test('turn the result into a card after "not now" and get an answer from the lead agent', async () => {
    const { result, asked, speak, pause, session, environment, model } =
      await over('Not now, thanks.');
    expect(result()).toMatchObject({ state: 'pending', card: true });
    expect(model().of('message.add').at(-2)?.text).toContain(
      'Do not speak about it unless they ask',
    );
    expect(asked()).toBe('reply');
    await speak('Okay, later.');
    await pause();
    expect(asked()).toBeNull();
    expect(result()).toMatchObject({ state: 'pending', card: true });
    session.shown(result()?.deliveryId ?? '');
    await environment.settle();
    expect(result()).toMatchObject({ state: 'delivered', grade: 'shown' });
  });

  test('cause the result to be delivered again if they are about something else', async () => {
    const { result, asked, speak, pause } = await over('How late is it?');
    expect(result()).toMatchObject({ state: 'pending', card: false });
    await speak('It is nine.');
    await pause();
    expect(asked()).toContain('42 sales');
  });

  test('do not apply to an earlier result that was interrupted', async () => {
    const talk = await over('How late is it?');
    const { result, say: utter, speak, pause, asked, environment } = talk;
    await speak('It is nine.');
    await environment.advance(10);
    await utter('stop');
    expect(result()).toMatchObject({ card: false });
    await speak('Okay.');
    await pause();
    expect(asked()).toContain('42 sales');
  });
});

test('suppresses a reply that was cancelled before it started', async () => {
  const talk = voiceTalk();
  await talk.start();
  const heard: unknown[] = [];
  talk.session.audioOut.subscribe((frame) => heard.push(frame));
  await talk.say('hello');
  expect(talk.asked()).toBe('reply');
  await talk.session.sendText('no, wait');
  await talk.environment.settle();
  const { end } = talk.model().begin('Hello to you!', 2000);
  end('cancelled');
  await talk.environment.settle();
  expect(heard).toEqual([]);
  // The utterance that interrupted is answered.
  expect(talk.asked()).toBe('reply');
  await talk.speak('I wait.');
  expect(heard).not.toEqual([]);
});
