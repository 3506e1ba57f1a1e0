// The receipt for each client command comes after the command's entry.

import { describe, expect, test } from 'vitest';
import { carryOut } from '../../../src/actors/session/view/base-session.ts';
import type { CommandFrame } from '../../../src/client/protocol.ts';
import { createRuntime, OffstageError } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { gatedJournal } from '../../support/journals.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

/** Creates a subagent that is waiting for the user, and a notice that has not been heard. */
async function waiting() {
  const journal = gatedJournal();
  const environment = simulatedEnvironment();
  const talk = textTalk({
    environment,
    runtime: createRuntime({ environment, journal }),
    subagents: {
      ride: {
        script: turns(calls(['ask_user', { question: 'Which class?' }]), say('Booked')),
        config: { interactive: true, budget: { steps: 3 } },
      },
    },
  });
  await talk.session.start();
  await talk.type('use ride');
  const deliveryId = talk.session.notifyBackground('The order was sent');
  await environment.settle();
  const [subagentId = ''] = talk.state().subagents.map(({ id }) => id);
  return { ...talk, journal, deliveryId, subagentId, requestId: talk.question()?.requestId ?? '' };
}

type Waiting = Awaited<ReturnType<typeof waiting>>;

const commands: {
  [T in CommandFrame['type']]: (of: Waiting) => Extract<CommandFrame, { type: T }>;
} = {
  send: () => ({ type: 'send', id: 1, text: 'hello' }),
  answer: ({ requestId }) => ({ type: 'answer', id: 1, requestId, answer: { text: 'economy' } }),
  cancel: ({ subagentId }) => ({ type: 'cancel', id: 1, subagentId }),
  message: ({ subagentId }) => ({ type: 'message', id: 1, subagentId, text: 'hurry' }),
  raise: ({ subagentId }) => ({ type: 'raise', id: 1, subagentId, limits: { steps: 9 } }),
  dismiss: ({ deliveryId }) => ({ type: 'dismiss', id: 1, deliveryId }),
  shown: ({ deliveryId }) => ({ type: 'shown', id: 1, deliveryId }),
  'question.shown': ({ requestId }) => ({ type: 'question.shown', id: 1, requestId }),
};

describe.each(Object.entries(commands))('%s', (_, frameOf) => {
  test('P9, COMMIT-UNIT-11: returns its receipt once its entry is in the journal', async () => {
    const of = await waiting();
    const before = of.journal.kept.length;
    of.journal.shut();
    let isOver = false;
    const receipt = carryOut(of.session, frameOf(of), { by: 'ann' }).then(() => (isOver = true));
    await of.environment.settle();
    expect(isOver).toBe(false);
    expect(of.journal.waiting).toHaveLength(1);
    of.journal.open();
    await receipt;
    expect(of.journal.kept.slice(before)).toContainEqual(
      expect.objectContaining({ event: expect.objectContaining({ by: 'ann' }) }),
    );
    await of.close();
  });

  test('P9: fails if the session was suspended before the command arrived', async () => {
    const of = await waiting();
    const gone = of.session.suspend();
    await of.environment.advance(60_000);
    await gone;
    const before = of.journal.kept.length;
    await expect(carryOut(of.session, frameOf(of), { by: 'ann' })).rejects.toBeInstanceOf(
      OffstageError,
    );
    expect(of.journal.kept).toHaveLength(before);
  });

  test("P9: fails if the session is suspended before the command's entry is written", async () => {
    const of = await waiting();
    of.journal.shut();
    const receipt = carryOut(of.session, frameOf(of), { by: 'ann' }).catch(
      (error: unknown) => error,
    );
    await of.environment.settle();
    const gone = of.session.suspend();
    await of.environment.advance(60_000);
    of.journal.open();
    await gone;
    expect(await receipt).toBeInstanceOf(OffstageError);
  });
});
