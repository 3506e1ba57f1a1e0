// Permission to answer: questions and approvals that say who may answer, attempts by others, and the places that name
// the responder afterwards.

import { receiveClientMessage } from '../../src/compat/index.ts';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { callerOf, createRuntime, defineTool, memoryJournal } from '../../src/index.ts';
import { simulatedEnvironment, type Script } from '../../src/testing/index.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { instantsOf, textLife, world, type World } from '../support/crashes.ts';
import { leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

interface Who {
  readonly requester: string | null;
  readonly approver: string | null;
}

function whoOf(options: object): Who {
  const { requester = null, approver = null } = callerOf(options) ?? {};
  return { requester, approver };
}

/** Creates a subagent that pays with the manager's approval and a subagent that asks the user for a name. */
function cast(ran: Who[], answerableBy: readonly string[] = ['manager']) {
  return {
    pay: {
      // The script makes its decisions from its prompt, so that another process can continue it.
      script: (({ results }) =>
        results.length > 0 ? say('Paid.') : calls(['pay', { amount: 5 }])) satisfies Script,
      config: {
        tools: {
          pay: simpleTool((options) => ran.push(whoOf(options)), {
            needsApproval: true,
            answerableBy,
          }),
        },
      },
    },
    name: {
      script: steps(calls(['ask_user', { question: 'Your name?' }]), say('Thanks.')),
      config: { interactive: true, answerableBy },
    },
  };
}

/** As `cast`, but the session's user may answer the name. */
function besideCast(ran: Who[]) {
  const { pay, name } = cast(ran);
  return { pay, name: { ...name, config: { interactive: true } } };
}

const NOT_FOR_THE_USER = 'SUBAGENT QUESTION, not for the user';

async function talk(options: TalkOptions = {}) {
  const ran: Who[] = [];
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  const made = textTalk({
    environment,
    runtime: createRuntime({ environment, journal }),
    sessionId: 'ses',
    subagents: cast(ran),
    ...options,
  });
  await made.start();
  const questionOf = (name: string) =>
    made.state().questions.findLast(({ subagentName }) => subagentName === name);
  return {
    ...made,
    ran,
    journal,
    questionOf,
    idOf: (name: string) => questionOf(name)?.requestId ?? '',
    outcomeOf: (name: string) =>
      made.state().subagents.findLast((view) => view.name === name)?.outcome,
    async answer(...given: Parameters<typeof made.session.answer>) {
      const receipt = made.session.answer(...given);
      await environment.settle();
      return receipt;
    },
    entriesOf: (type: string) =>
      journal.read({ scope: 'ses' }).filter(({ event }) => event.type === type),
  };
}

const NOT_ALLOWED = { accepted: false, reason: 'not_allowed' };

describe('WHO-1: a question that names who may answer it', () => {
  test.each([
    ['somebody else', { by: 'mallory' }],
    ['nobody in particular', {}],
    ['a name that only looks like it', { by: 'Manager' }],
    ['a name with more', { by: 'manager ' }],
  ])('remains open after an attempt by %s', async (_, options) => {
    const { type, answer, idOf, questionOf, ran, outcomeOf } = await talk();
    await type('use pay');
    expect(questionOf('pay')).toMatchObject({ state: 'open', answerableBy: ['manager'] });
    expect(await answer(idOf('pay'), { approved: true }, options)).toEqual(NOT_ALLOWED);
    expect(await answer(idOf('pay'), { optionId: 'approve' }, options)).toEqual(NOT_ALLOWED);
    expect(await answer(idOf('pay'), { approved: false }, options)).toEqual(NOT_ALLOWED);
    expect([questionOf('pay')?.state, ran]).toEqual(['open', []]);
    // An identity that has permission can still answer.
    expect(await answer(idOf('pay'), { approved: true }, { by: 'manager' })).toEqual({
      accepted: true,
      by: 'manager',
    });
    expect(ran).toHaveLength(1);
    expect(outcomeOf('pay')?.status).toBe('completed');
  });

  test('closes when an allowed user denies it', async () => {
    const { type, answer, idOf, questionOf, ran, outcomeOf } = await talk();
    await type('use pay');
    await answer(idOf('pay'), { approved: false }, { by: 'manager' });
    expect(questionOf('pay')).toMatchObject({ state: 'answered', answeredBy: 'manager' });
    expect(ran).toEqual([]);
    expect(outcomeOf('pay')?.toolLedger).toEqual([
      expect.objectContaining({ status: 'denied', approval: 'denied', answeredBy: 'manager' }),
    ]);
    expect(await answer(idOf('pay'), { approved: true }, { by: 'manager' })).toMatchObject({
      reason: 'over',
    });
  });

  test("remains open after another user's typed message, which reaches the lead agent", async () => {
    const { type, said, session, environment, questionOf, ran } = await talk({ user: 'alice' });
    await type('use pay');
    await type('yes');
    expect(said().at(-1)).toBe('You said: yes');
    expect([questionOf('pay')?.state, ran]).toEqual(['open', []]);
    // The lead agent has spoken since, so the action is read back.
    await session.sendText('yes', { by: 'manager' });
    await environment.settle();
    expect([questionOf('pay')?.state, ran]).toEqual(['open', []]);
    await session.sendText('yes', { by: 'manager' });
    await environment.settle();
    expect(questionOf('pay')).toMatchObject({ state: 'answered', answeredBy: 'manager' });
    // The session's user said the words that started it.
    expect(ran).toEqual([{ requester: 'alice', approver: 'manager' }]);
  });

  test("accepts an allowed user's typed answer", async () => {
    const { type, questionOf, outcomeOf } = await talk({ user: 'manager' });
    await type('use name');
    await type('Ada');
    expect(questionOf('name')).toMatchObject({ answer: 'Ada', answeredBy: 'manager' });
    // The model interprets the utterance as usual, and the ledger names the speaker.
    expect(outcomeOf('name')?.toolLedger).toEqual([
      expect.objectContaining({
        toolName: 'ask_user',
        output: { userResponse: 'Ada' },
        answeredBy: 'manager',
      }),
    ]);
  });

  test('takes the author of a client message from the app, not from the message', async () => {
    const { type, session, idOf, environment, questionOf, ran } = await talk();
    await type('use pay');
    const message = { type: 'ui.response', requestId: idOf('pay'), approved: true, by: 'manager' };
    const forged = receiveClientMessage(session, message, { by: 'mallory' });
    await environment.settle();
    expect(await forged).toEqual(NOT_ALLOWED);
    const unsaid = receiveClientMessage(session, JSON.stringify(message));
    await environment.settle();
    expect(await unsaid).toEqual(NOT_ALLOWED);
    expect([questionOf('pay')?.state, ran]).toEqual(['open', []]);
    const typed = receiveClientMessage(
      session,
      { type: 'text_input', text: 'yes' },
      { by: 'manager' },
    );
    await environment.settle();
    expect(await typed).toEqual({ accepted: true });
    expect(ran).toEqual([{ requester: null, approver: 'manager' }]);
  });

  test("ignores another user's report that it has been shown", async () => {
    const { type, session, idOf, entriesOf, environment } = await talk();
    await type('use pay');
    const before = entriesOf('question.shown').length;
    session.questionShown(idOf('pay'), { by: 'mallory' });
    session.shown(idOf('pay'), { by: 'mallory' });
    await environment.settle();
    expect(entriesOf('question.shown')).toHaveLength(before);
    session.questionShown(idOf('pay'), { by: 'manager' });
    await environment.settle();
    expect(entriesOf('question.shown').at(-1)?.event).toMatchObject({ by: 'manager' });
  });

  test('does not ask the speaking user by voice, nor count their yes, if another user must consent', async () => {
    const ran: Who[] = [];
    const spoken = voiceTalk({ subagents: besideCast(ran), user: 'alice' });
    await spoken.start();
    const { session, environment, model } = spoken;
    await spoken.use('pay');
    await spoken.pause();
    const question = (name = 'pay') =>
      spoken.state().questions.find((one) => one.subagentName === name);
    expect([question()?.state, spoken.asked()]).toEqual(['open', null]);
    expect(JSON.stringify(model().commands)).toContain(NOT_FOR_THE_USER);
    await spoken.say('yes');
    expect([question()?.state, ran]).toEqual(['open', []]);
    await spoken.speak('Another person has to decide.');
    // The next question is the user's own, and is spoken while the approval waits.
    await spoken.use('name');
    await spoken.pause();
    await spoken.speak('Your name?');
    await spoken.say('Ada');
    expect(question('name')).toMatchObject({ state: 'answered', answer: 'Ada' });
    expect([question()?.state, ran]).toEqual(['open', []]);
    const receipt = session.answer(
      question()?.requestId ?? '',
      { approved: true },
      { by: 'manager' },
    );
    await environment.settle();
    expect(await receipt).toEqual({ accepted: true, by: 'manager' });
    expect(ran).toEqual([{ requester: 'alice', approver: 'manager' }]);
  });

  test("prefers its tool's rule to the configuration's rule", async () => {
    const tools = { pay: simpleTool(() => {}, { needsApproval: true }) };
    const own = { pay: simpleTool(() => {}, { needsApproval: true, answerableBy: ['cfo'] }) };
    const script = steps(calls(['pay']), say('Paid.'));
    const { type, questionOf } = await talk({
      subagents: {
        general: { script, config: { tools, answerableBy: ['manager'] } },
        special: { script, config: { tools: own, answerableBy: ['manager'] } },
        free: { script, config: { tools } },
      },
    });
    await type('use general and special and free');
    expect(questionOf('general')?.answerableBy).toEqual(['manager']);
    expect(questionOf('special')?.answerableBy).toEqual(['cfo']);
    expect(questionOf('free')?.answerableBy).toBeUndefined();
  });

  test('remains limited to the same users even if another agent spawned its subagent', async () => {
    const pay = simpleTool(() => {}, { needsApproval: true });
    const { type, questionOf, session, environment } = await talk({
      subagents: {
        boss: {
          script: steps(calls(['hand_on']), say('Done.')),
          config: {
            answerableBy: ['manager'],
            tools: {
              hand_on: simpleTool((options) => {
                const caller = callerOf(options);
                caller?.service.spawn({
                  config: {
                    name: 'helper',
                    instructions: 'You are the subagent "helper".',
                    tools: { pay },
                  },
                  task: { toolName: 'helper', args: {}, description: 'pay' },
                  caller,
                });
                return new Promise(() => {});
              }),
            },
          },
        },
        helper: { script: steps(calls(['pay']), say('Paid.')) },
      },
    });
    await type('use boss');
    await environment.settle();
    expect(questionOf('helper')).toMatchObject({ kind: 'approval', answerableBy: ['manager'] });
    const receipt = session.answer(questionOf('helper')?.requestId ?? '', { approved: true });
    await environment.settle();
    expect(await receipt).toEqual(NOT_ALLOWED);
  });

  test.each<[string, unknown]>([
    ['no user', []],
    ['an empty name', ['']],
    ['one name', 'manager'],
    ['a value that is no name', [7]],
    ['a name that no journal keeps', ['a\0b']],
  ])('refuses a configuration that names %s', (_, answerableBy) => {
    expect(() => textTalk({ subagents: cast([], answerableBy as never) })).toThrow(/answerableBy/);
  });

  test.each<[string, unknown]>([
    ['a number', { by: 7 }],
    ['an empty name', { by: '' }],
    ['half a surrogate pair', { by: '\ud800' }],
    ['NUL', { by: 'a\0b' }],
    ['too much', { by: 'x'.repeat(201) }],
    ['something else', { as: 'manager' }],
    ['a name', 'manager'],
  ])('refuses to vouch for a user as %s', async (_, options) => {
    const { session, type, idOf } = await talk();
    await type('use pay');
    const wrong = { name: 'ConfigurationError', code: 'INVALID_ARGUMENT' };
    const by = options as never;
    const ways: (() => unknown)[] = [
      () => session.answer(idOf('pay'), { approved: true }, by),
      () => session.questionShown(idOf('pay'), by),
      () => session.shown('dlv', by),
      () => session.dismiss('dlv', by),
      () => session.sendText('yes', by),
      () => receiveClientMessage(session, { type: 'text_input', text: 'yes' }, by),
      () => session.subagents.cancel('sub_1', 'why', by),
      () => session.subagents.send('sub_1', { content: 'x' }, by),
    ];
    for (const way of ways) await expect((async () => way())()).rejects.toMatchObject(wrong);
  });
});

describe('WHO-2: the name of the user who acts', () => {
  test('appears in the journal for messages, cancellations and dismissals', async () => {
    const { type, session, environment, state, entriesOf } = await talk({ user: 'alice' });
    await type('use pay');
    const { id = '' } = state().subagents[0] ?? {};
    const deliveryId = session.notifyBackground('The mail has come');
    session.dismiss(deliveryId, { by: 'bob' });
    const sent: unknown[] = [];
    session.subagents.service.events.subscribe((chunk) => {
      if (chunk.type === 'message.sent') sent.push(chunk.by);
    });
    session.subagents.send(id, { content: 'Hurry' }, { by: 'bob' });
    session.subagents.send(id, { content: 'Please' });
    await environment.settle();
    session.subagents.cancel(id, 'too dear', { by: 'bob' });
    await environment.settle();
    expect(sent).toEqual(['bob', 'alice']);
    const byOf = (name: string) =>
      entriesOf(name).map(({ event }) => (event as { by?: string }).by);
    expect(byOf('user.said')).toEqual(['alice']);
    expect(byOf('subagent.message')).toEqual(['bob', 'alice']);
    expect(byOf('subagent.cancel')).toEqual(['bob']);
    expect(byOf('delivery.dismissed')).toEqual(['bob']);
  });

  test("reaches the lead agent's tools", async () => {
    const seen: Who[] = [];
    const look = defineTool({
      name: 'look',
      description: 'Looks',
      parameters: z.object({}),
      execute: (_, { requester, approver }) => seen.push({ requester, approver }),
    });
    const { type, session, environment } = await talk({ tools: [look], user: 'alice' });
    await type('use look');
    await session.sendText('use look', { by: 'bob' });
    await environment.settle();
    expect(seen).toEqual([
      { requester: 'alice', approver: null },
      { requester: 'bob', approver: null },
    ]);
  });

  test('survives a crash, including who may answer and who did', async () => {
    const environment = simulatedEnvironment();
    const journal = memoryJournal();
    const ran: Who[] = [];
    const begin = async () => {
      const runtime = createRuntime({ environment, journal });
      const made = textTalk({
        environment,
        runtime,
        sessionId: 'ses',
        subagents: cast(ran),
        user: 'alice',
      });
      await made.start();
      return made;
    };
    const first = await begin();
    await first.type('use pay');
    const before = first.question();
    const leaving = first.session.suspend();
    await environment.settle();
    await leaving;
    const second = await begin();
    const after = second.question();
    expect(after).toMatchObject({ requestId: before?.requestId, answerableBy: ['manager'] });
    const answered = async (by: string) => {
      const receipt = second.session.answer(after?.requestId ?? '', { approved: true }, { by });
      await environment.settle();
      return receipt;
    };
    expect(await answered('alice')).toEqual(NOT_ALLOWED);
    expect(await answered('manager')).toEqual({ accepted: true, by: 'manager' });
    expect(ran).toEqual([{ requester: 'alice', approver: 'manager' }]);
    expect(second.state().subagents[0]?.outcome?.toolLedger).toEqual([
      expect.objectContaining({ approval: 'given', answeredBy: 'manager' }),
    ]);
  });
});

describe("a question that the session's user may not answer", () => {
  const beside = async (options: TalkOptions = {}) => {
    const ran: Who[] = [];
    const prompts: string[] = [];
    const made = await talk({
      user: 'ann',
      subagents: besideCast(ran),
      onModelCall: (who, { prompt }) => who === 'lead' && prompts.push(JSON.stringify(prompt)),
      ...options,
    });
    await made.type('use pay and name');
    return { ...made, ran, prompts };
  };

  test('QUESTION-14: opens at once, beside the question that has the floor', async () => {
    const { environment, questionOf, type, ran, outcomeOf } = await beside();
    const dueAt = environment.clock.now() + 120_000;
    expect(questionOf('pay')).toMatchObject({ state: 'open', dueAt });
    expect(questionOf('name')).toMatchObject({ state: 'open' });
    await type('Ada');
    expect(questionOf('name')).toMatchObject({ state: 'answered', answer: 'Ada' });
    expect(outcomeOf('name')?.status).toBe('completed');
    expect([questionOf('pay')?.state, ran]).toEqual(['open', []]);
  });

  test('QUESTION-14: expires by its own timeout, even if its people never come', async () => {
    const { environment, questionOf, session, ran } = await beside();
    await environment.advance(119_999);
    expect(questionOf('pay')?.state).toBe('open');
    const leave = session.attach({ by: 'manager' });
    leave();
    await environment.advance(1);
    expect([questionOf('pay')?.state, ran]).toEqual(['expired', []]);
  });

  test('QUESTION-14: opens and expires even if no client shows it', async () => {
    const environment = simulatedEnvironment();
    const { session, state } = textTalk({ environment, user: 'ann', subagents: besideCast([]) });
    await session.start();
    await session.sendText('use pay and name');
    await environment.settle();
    const stateOf = (name: string) =>
      state().questions.find((one) => one.subagentName === name)?.state;
    // The client of the session's user shows only the user's own question.
    for (const { requestId, subagentName } of state().questions)
      if (subagentName === 'name') session.questionShown(requestId, { by: 'ann' });
    await environment.settle();
    expect([stateOf('pay'), stateOf('name')]).toEqual(['open', 'open']);
    await environment.advance(120_000);
    expect(stateOf('pay')).toBe('expired');
  });

  test.each(['manager', 'ann'])(
    'keeps its state and time while %s comes and leaves',
    async (by) => {
      const { environment, questionOf, session } = await beside();
      const { state, dueAt } = questionOf('pay') ?? {};
      await environment.advance(1000);
      const leave = session.attach({ by });
      await environment.settle();
      expect(questionOf('pay')).toMatchObject({ state, dueAt });
      leave();
      await environment.settle();
      expect(questionOf('pay')).toMatchObject({ state, dueAt });
    },
  );

  test("accepts a named identity's answer while the user's own question is open", async () => {
    const { answer, idOf, questionOf, ran } = await beside();
    const yes = { approved: true };
    expect(await answer(idOf('pay'), yes)).toEqual(NOT_ALLOWED);
    expect(await answer(idOf('pay'), yes, { by: 'manager' })).toMatchObject({ accepted: true });
    expect(ran).toEqual([{ requester: 'ann', approver: 'manager' }]);
    expect(await answer(idOf('pay'), yes, { by: 'manager' })).toMatchObject({ reason: 'over' });
    expect(questionOf('name')?.state).toBe('open');
    expect(await answer(idOf('name'), { text: 'Ada' })).toEqual({ accepted: true, by: 'ann' });
  });

  test("does not make the user's own approval ambiguous (USER-WORDS-3)", async () => {
    const own: Who[] = [];
    const { pay } = cast(own, ['ann']);
    const { type, questionOf } = await beside({ subagents: { ...besideCast([]), name: pay } });
    await type('yes');
    expect(questionOf('name')).toMatchObject({ state: 'answered', answeredBy: 'ann' });
    expect(questionOf('pay')?.state).toBe('open');
    expect(own).toHaveLength(1);
  });

  test('never takes words of the user for an answer, nor lets the lead model settle it', async () => {
    const { type, idOf, questionOf, ran, prompts, session, environment } = await beside({
      subagents: { pay: cast([]).pay },
      lead: (given) =>
        given.user === 'yes' && given.prompt.at(-1)?.role === 'user'
          ? calls(['settle_question', { action: 'answer', text: 'yes', quote: 'yes' }])
          : leadScript(given),
    });
    expect(idOf('pay')).not.toBe('');
    await type('yes');
    await type('no');
    expect([questionOf('pay')?.state, ran]).toEqual(['open', []]);
    const told = prompts.at(-1) ?? '';
    expect(told).toContain(NOT_FOR_THE_USER);
    expect(told).toContain('not_open');
    expect(told).not.toContain("only the user's own");
    expect(told).not.toContain('manager');
    await environment.settle();
    await session.close();
  });

  test('takes the floor as before if the session has no user', async () => {
    const { questionOf, entriesOf } = await beside({ user: undefined });
    expect(questionOf('pay')?.state).toBe('open');
    expect(questionOf('name')?.state).toBe('queued');
    expect(entriesOf('question.asked').some(({ event }) => 'beside' in event)).toBe(false);
  });

  test('P9: resumes after a kill at each entry, and is noted once', async () => {
    const play = async (kill?: (of: World) => void) => {
      const of = world();
      kill?.(of);
      const ran: Who[] = [];
      for (;;) {
        const life = textLife(of, { user: 'ann', subagents: besideCast(ran) });
        const questionOf = (name: string) =>
          life.state().questions.findLast(({ subagentName }) => subagentName === name);
        void life.start().catch(() => {});
        await of.environment.settle();
        for (let round = 0; round < 10 && life.isAlive(); round += 1) {
          const said = of.entries.filter(({ event }) => event.type === 'user.said').length;
          const next = ['use pay', 'use name'][said];
          if (next !== undefined && (said === 0 || questionOf('pay')))
            void life.session.sendText(next).catch(() => {});
          await of.environment.settle();
          const open = questionOf('pay');
          if (open?.state === 'answered') break;
          if (open?.state !== 'open') continue;
          expect(open.dueAt).toBe(open.askedAt + 120_000);
          if (questionOf('name')?.state === 'open')
            void life.session.sendText('Ada').catch(() => {});
          else if (questionOf('name')?.state === 'answered')
            void life.session
              .answer(open.requestId, { approved: true }, { by: 'manager' })
              .catch(() => {});
          await of.environment.settle();
        }
        if (!life.isAlive()) continue;
        const ends = [questionOf('name')?.answer, questionOf('pay')?.answeredBy];
        const notes = of.entries.filter(
          ({ event }) =>
            event.type === 'conversation.noted' && JSON.stringify(event).includes(NOT_FOR_THE_USER),
        );
        const { written } = of;
        await life.close();
        return { ends, ran: ran.length, notes: notes.length, written };
      }
    };
    const { written, ...whole } = await play();
    expect(whole).toEqual({ ends: ['Ada', 'manager'], ran: 1, notes: 1 });
    for (const [when, entry] of instantsOf(written)) {
      const { written: _, ran, ...rest } = await play((of) => of.killAt(entry, when));
      expect({ when, entry, ...rest }).toEqual({ when, entry, ends: whole.ends, notes: 1 });
      expect(ran).toBeLessThanOrEqual(2);
    }
  }, 120_000);
});
