import { describe, expect, test } from 'vitest';
import { questionMachine } from '../../src/machines/index.ts';
import { checkChangedCall } from './support/changed-call-check.ts';
import { checkQuestion } from './support/question-check.ts';
import { Stage } from './support/stage.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a question', () => {
  const report = checkQuestion();
  announce(report);
  const read = checkQuestion(questionMachine, 'collect', 'model');
  announce(read);

  test('QUESTION-1: accepts no answer before it is presented and every valid answer afterwards', () =>
    holds(report, 'QUESTION-1'));

  test('QUESTION-2: never accepts speech that began before it was played', () =>
    holds(report, 'QUESTION-2'));

  test('QUESTION-3: accepts an interrupting utterance only if it is decisive', () =>
    holds(report, 'QUESTION-3'));

  test('QUESTION-4: runs its timeout only while it is open', () => holds(report, 'QUESTION-4'));

  test(
    'QUESTION-5: ends once, then releases the floor, retracts the question and replies',
    { tags: ['B43', 'B54'] },
    () => {
      holds(report, 'QUESTION-5');
      holds(report, 'nothing leaves a final state');
    },
  );

  test('QUESTION-6: resets only whether it has been heard when it is read back', () =>
    holds(report, 'QUESTION-6'));

  test('QUESTION-11: accepts only the interpretation for which it is waiting', () =>
    holds(read, 'QUESTION-11'));

  test('QUESTION-12: requires a read-back if only a model recognised the yes', () =>
    holds(read, 'QUESTION-12'));

  test('QUESTION-14: opens beside the floor with its timeout running, and says nothing', () =>
    holdsThroughout(checkQuestion(questionMachine, 'collect', 'beside')));

  test('never gets stuck and always ends', () => {
    holds(report, 'open ends by a deadline');
    holds(report, 'parked ends when somebody comes');
    holds(report, 'whatever lives can be withdrawn');
    holds(report, 'no deadlock');
    holds(report, 'an end can always be reached');
  });

  test('violates no other property and reaches the expected states', () => {
    holdsThroughout(report);
    holdsThroughout(read);
  });
});

describe('every state of an approval whose call is changed', () => {
  const report = checkChangedCall();
  announce(report);

  test('QUESTION-13: runs only the call that was presented last, and only after a yes to it', () => {
    holds(report, 'QUESTION-13');
    holdsThroughout(report);
  });
});

describe('an example of a question', () => {
  /** A question that has the floor and is being put to the user. */
  const presenting = (): Stage<typeof questionMachine> => {
    const stage = new Stage(questionMachine, { requestId: 'ride.q1', timeoutMs: 120_000 });
    stage.send({ type: 'question.granted', epoch: 7 });
    stage.told();
    return stage;
  };
  const say = (startedAt: number, decisive = false) =>
    ({
      type: 'question.answer',
      channel: 'speech',
      utteranceStartedAt: startedAt,
      decisive,
    }) as const;

  test('plays a question, counts it as heard and accepts the answer', async () => {
    const stage = presenting();
    stage.send({ type: 'question.playing' });
    await stage.wait(2_000);
    stage.send({ type: 'question.heard' });
    await stage.wait(5_000);
    stage.send(say(stage.now));
    expect(stage.told()).toEqual([
      ['retract', { requestId: 'ride.q1' }],
      ['release', { requestId: 'ride.q1', epoch: 7 }],
      ['reply', { requestId: 'ride.q1', end: 'answered' }],
    ]);
  });

  test('ignores a yes said before it was heard, but accepts an option name that interrupts it', async () => {
    const stage = presenting();
    await stage.wait(1_000);
    stage.send({ type: 'question.playing' });
    await stage.wait(500);
    stage.send(say(900, true)).send(say(1_200));
    expect(stage.actor.getSnapshot().value).toBe('presenting');
    stage.send(say(1_200, true));
    expect(stage.actor.getSnapshot().value).toBe('answered');
  });

  test('accepts a spoken answer to a card after the card has been read aloud', () => {
    // The question could not be spoken and became a card, its timeout started, the user spoke, and the question was
    // spoken again. An earlier version lost the answer, because only a question in `presenting` noticed that it was
    // played.
    const stage = presenting();
    stage.send({ type: 'question.shown', startsClock: true });
    stage.send({ type: 'question.playing' });
    stage.send(say(stage.now));
    expect(stage.actor.getSnapshot().value).toBe('open');
    stage.send({ type: 'question.heard' });
    stage.send(say(stage.now));
    expect(stage.actor.getSnapshot().value).toBe('answered');
  });

  test('QUESTION-6: accepts a yes only after the read-back has been heard, but a button press at any time', async () => {
    const stage = presenting();
    stage.send({ type: 'question.shown', startsClock: false });
    stage.send({ type: 'question.heard' });
    await stage.wait(1_000);
    stage.send({ type: 'question.readBack' });
    expect(stage.told()).toEqual([['present', { requestId: 'ride.q1' }]]);
    stage.send(say(stage.now));
    stage.send({ type: 'question.playing' });
    stage.send(say(stage.now));
    const snapshot = stage.actor.getSnapshot();
    expect(snapshot.value).toBe('open');
    const button = { type: 'question.answer', channel: 'button', decisive: true } as const;
    expect(snapshot.can({ ...button, utteranceStartedAt: null, at: stage.now })).toBe(true);
    stage.send({ type: 'question.heard' });
    stage.send(say(stage.now));
    expect(stage.actor.getSnapshot().value).toBe('answered');
  });

  test('stops its timeout while no client is attached', async () => {
    const stage = presenting();
    stage.send({ type: 'question.heard' });
    await stage.wait(100_000);
    stage.send({ type: 'client.detached' });
    await stage.wait(3_600_000);
    stage.send({ type: 'client.attached' });
    expect(stage.told()).toEqual([['present', { requestId: 'ride.q1' }]]);
    stage.send({ type: 'question.heard' });
    await stage.wait(19_999);
    expect(stage.actor.getSnapshot().value).toBe('open');
    await stage.wait(1);
    expect(stage.actor.getSnapshot().value).toBe('expired');
  });
});
