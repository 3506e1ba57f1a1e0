// Approval in a conversation: the approved action is exactly the one that the user heard, even if other approvals are
// waiting.

import { describe, expect, it, test } from 'vitest';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

/** Creates subagents that each ask for approval of one call. */
function spenders(...names: string[]) {
  const ran: string[] = [];
  const subagents = Object.fromEntries(
    names.map((name) => [
      name,
      {
        script: steps(calls([`do_${name}`, { to: name }]), say(`${name} is over.`)),
        config: {
          tools: { [`do_${name}`]: simpleTool(() => ran.push(name), { needsApproval: true }) },
        },
      },
    ]),
  );
  return { ran, subagents };
}

async function text(...names: string[]) {
  const { ran, subagents } = spenders(...names);
  const talk = textTalk({ subagents });
  await talk.start();
  await talk.type(`use ${names.join(' and ')}`);
  const questionOf = (name: string) =>
    talk.state().questions.findLast(({ subagentName }) => subagentName === name);
  return {
    ...talk,
    ran,
    questionOf,
    stateOf: (name: string) => questionOf(name)?.state,
    ledgerOf: (name: string) =>
      talk.state().subagents.find((view) => view.name === name)?.outcome?.toolLedger ?? [],
    put: () =>
      talk.parts.flatMap((part) => (part.type === 'question.asked' ? [part.question] : [])),
  };
}

describe('P3: one approval in text', { tags: ['B39'] }, () => {
  test('asks a blocking question with the exact action and buttons', async () => {
    const { questionOf, state } = await text('mail');
    expect(questionOf('mail')).toMatchObject({
      kind: 'approval',
      state: 'open',
      question: 'Does something, with do_mail (to: "mail"): may I do that?',
      action: { toolName: 'do_mail', input: { to: 'mail' } },
      options: [{ id: 'approve' }, { id: 'deny' }],
    });
    expect(state().subagents[0]?.state).toBe('waiting_for_input');
  });

  test.each([
    ['permission granted', 1],
    ['sounds good, please do', 1],
    ['um, yes, go ahead', 1],
    ["okay, wait, don't run that", 0],
    ["yes but don't send it", 0],
    ['stop asking', 0],
  ])('%s', async (words, times) => {
    const { type, ran, stateOf } = await text('mail');
    await type(words);
    expect(ran).toHaveLength(times);
    expect(stateOf('mail')).toBe('answered');
  });

  test('asks once more after an unclear answer, and then leaves the approval to buttons and the lead agent', async () => {
    const { type, ran, stateOf, put, said, session, questionOf, environment } = await text('mail');
    await type('yes if it is free');
    expect(put()).toHaveLength(2);
    await type('I guess so');
    expect(put()).toHaveLength(2);
    expect(said().at(-1)).toBe('You said: I guess so');
    expect([stateOf('mail'), ran]).toEqual(['open', []]);
    void session.answer(questionOf('mail')?.requestId ?? '', { optionId: 'approve' });
    await environment.settle();
    expect(ran).toEqual(['mail']);
  });

  test('accepts a clear yes even after several unclear answers if the action has been read back', async () => {
    const { type, ran, put } = await text('mail');
    for (const words of ['maybe', 'perhaps', 'hmm', 'what does it do?']) await type(words);
    expect(ran).toEqual([]);
    await type('yes');
    expect(ran).toEqual([]);
    expect(put().at(-1)).toBe(
      'To be sure: Does something, with do_mail (to: "mail"): may I do that?',
    );
    await type('yes');
    expect(ran).toEqual(['mail']);
  });
});

describe('P3: the text of an approval', () => {
  async function asking(more: Record<string, unknown>, input: Record<string, unknown>) {
    const ran: unknown[] = [];
    const confirm_ride = simpleTool(() => ran.push(input), { needsApproval: true, ...more });
    const talk = textTalk({
      subagents: {
        rides: {
          config: { tools: { confirm_ride } },
          script: steps(calls(['confirm_ride', input]), say('booked')),
        },
      },
    });
    await talk.start();
    await talk.type('use rides');
    return { ...talk, ran, question: () => talk.state().questions[0] };
  }

  it.each([
    [
      'a title',
      { title: 'Book the ride', description: 'Confirms it.' },
      'Book the ride, with confirm_ride (dollars: 24): may I do that?',
    ],
    [
      'the first sentence of a description',
      { description: 'Book the ride that the user chose. Call it once only.' },
      'Book the ride that the user chose, with confirm_ride (dollars: 24): may I do that?',
    ],
    ['its name', { description: '' }, 'May I run confirm_ride (dollars: 24)?'],
  ])('take %s, and a yes may name what they say', async (_, more, words) => {
    const { type, ran, question } = await asking(more, { dollars: 24 });
    expect(question()?.question).toBe(words);
    await type(words.includes('Book') ? 'yes, book it' : 'yes, run it');
    expect(ran).toHaveLength(1);
  });

  it('does not let a word in the arguments prevent a yes', async () => {
    const { type, ran } = await asking({ title: 'Book the ride' }, { note: 'not and if only' });
    await type('yes, book it');
    expect(ran).toHaveLength(1);
  });

  it('shows characters that a screen would hide, move or disguise', async () => {
    const { question } = await asking(
      { title: 'Book\u202e it' },
      { to: 'Anna \u202e004 ruoy roF', site: 'p\u0430ypal.com' },
    );
    expect(question()?.question).toBe(
      'Book\\u202e it, with confirm_ride (to: "Anna \\u202e004 ruoy roF", site: "p\\u0430ypal.com"): may I do that?',
    );
  });

  it('accepts only a button press or a no if its text is too long to be spoken', async () => {
    const input = { text: 'x'.repeat(2_000), then: 'delete all' };
    const { type, ran, question, session, environment } = await asking({}, input);
    expect(question()).toMatchObject({ byButton: true, action: { input } });
    expect(question()?.question).toMatch(/^Does something, .* too long to be said/);
    for (let time = 0; time < 3; time += 1) await type('yes');
    expect([ran, question()?.state]).toEqual([[], 'open']);
    void session.answer(question()?.requestId ?? '', { approved: true });
    await environment.settle();
    expect(ran).toHaveLength(1);
    const denied = await asking({}, input);
    await denied.type('no');
    expect([denied.ran, denied.question()?.state]).toEqual([[], 'answered']);
  });
});

describe('P3: several approvals at once', () => {
  test('reads the action back before it counts "approve"', async () => {
    const { type, ran, stateOf, put } = await text('mail', 'bank');
    await type('approve');
    expect([ran, stateOf('mail'), stateOf('bank')]).toEqual([[], 'open', 'queued']);
    expect(put().at(-1)).toBe(
      'To be sure: Does something, with do_mail (to: "mail"): may I do that?',
    );
    await type('yes');
    expect(ran).toEqual(['mail']);
    // Only the other approval is waiting. The lead agent reported the first result after it had asked for that
    // approval.
    expect(put().at(-1)).toBe('Does something, with do_bank (to: "bank"): may I do that?');
    await type('yes');
    expect(ran).toEqual(['mail']);
    expect(put().at(-1)).toBe(
      'To be sure: Does something, with do_bank (to: "bank"): may I do that?',
    );
    await type('yes');
    expect(ran).toEqual(['mail', 'bank']);
  });

  test('approves neither action if the reply names the other action', async () => {
    const { type, ran, stateOf, put } = await text('mail', 'bank');
    await type('yes, do the bank');
    expect([ran, stateOf('mail')]).toEqual([[], 'open']);
    expect(put().at(-1)).toBe('Does something, with do_mail (to: "mail"): may I do that?');
    await type('approve the bank');
    expect(ran).toEqual([]);
  });

  test.each(['no', 'stop asking', 'not now'])(
    'counts a no as the answer to the approval that was presented: %s',
    async (words) => {
      const { type, ran, stateOf, ledgerOf } = await text('mail', 'bank');
      await type(words);
      expect(ledgerOf('mail')).toEqual([expect.objectContaining({ approval: 'denied' })]);
      expect([ran, stateOf('bank')]).toEqual([[], 'open']);
      // The lead agent reported the end of the first subagent after the second one's question was asked.
      await type('yes');
      expect(ran).toEqual([]);
      await type('yes');
      expect(ran).toEqual(['bank']);
    },
  );

  test('accepts a button press immediately because the button names its approval', async () => {
    const { session, environment, ran, questionOf, type } = await text('mail', 'bank');
    await type('approve');
    const receipt = session.answer(questionOf('mail')?.requestId ?? '', { optionId: 'approve' });
    await environment.settle();
    expect(await receipt).toEqual({ accepted: true });
    expect(ran).toEqual(['mail']);
  });

  test('refuses a yes to an approval that is still queued', async () => {
    const { session, environment, ran, questionOf } = await text('mail', 'bank');
    const receipt = session.answer(questionOf('bank')?.requestId ?? '', { approved: true });
    await environment.settle();
    expect(await receipt).toEqual({ accepted: false, reason: 'queued' });
    expect(ran).toEqual([]);
  });
});

describe('an approval without an answer', () => {
  test('expires as denied, and states the reason', async () => {
    const { environment, ran, ledgerOf } = await text('mail');
    await environment.advance(120_000);
    expect(ledgerOf('mail')).toEqual([
      expect.objectContaining({
        status: 'denied',
        approval: 'expired',
        output: expect.stringContaining('did not respond in time'),
      }),
    ]);
    expect(ran).toEqual([]);
  });
});

describe('P3: approvals by voice', () => {
  async function voice(...names: string[]) {
    const { ran, subagents } = spenders(...names);
    const talk = voiceTalk({ subagents });
    await talk.start();
    await talk.use(...names);
    await talk.pause();
    expect(talk.asked()).toContain(`Does something, with do_${names[0]}`);
    return {
      ...talk,
      ran,
      stateOf: (name: string) =>
        talk.state().questions.findLast(({ subagentName }) => subagentName === name)?.state,
      /** Makes the user speak while the lead agent is asking the question, which stops it. */
      async interrupt(words: string) {
        const putting = talk.model().begin('May I', 2000);
        await talk.play(putting.itemId, 700);
        await talk.environment.advance(10);
        talk.model().speechStarted(words);
        await talk.environment.settle();
        putting.end('cancelled');
        talk.model().speechEnded(words, words);
        await talk.play(putting.itemId, 750);
      },
    };
  }

  test.each(['yes', 'go ahead', 'no'])(
    'ignores a reply that interrupts its question, but accepts the same reply later: %s',
    async (words) => {
      const { interrupt, stateOf, ran, pause, asked, speak, say: utter } = await voice('mail');
      await interrupt(words);
      expect([stateOf('mail'), ran]).toEqual(['presenting', []]);
      await pause();
      expect(asked()).toContain('Does something, with do_mail');
      await speak('May I send it?');
      await utter(words);
      expect(stateOf('mail')).toBe('answered');
      expect(ran).toHaveLength(words === 'no' ? 0 : 1);
    },
  );

  test('asks the question again and states that the answer was not clear', async () => {
    const { speak, say: utter, pause, model, stateOf } = await voice('mail');
    const told = () => JSON.stringify(model().commands);
    await speak('May I send it?');
    expect(told()).not.toContain('The answer was not clear.');
    await utter('perhaps');
    await pause();
    expect(stateOf('mail')).toBe('open');
    expect(told()).toContain('The answer was not clear.');
  });

  test('ignores speech that began before the question was played', async () => {
    const { model, environment, stateOf, ran } = await voice('mail');
    const putting = model().begin('May I', 2000);
    model().speechStarted('early');
    await environment.advance(100);
    model().speechEnded('early', 'yes');
    putting.end('cancelled');
    await environment.settle();
    expect([stateOf('mail'), ran]).toEqual(['presenting', []]);
  });

  test('reads the action back after a yes if two approvals are open', async () => {
    const { speak, say: utter, pause, asked, ran, stateOf } = await voice('mail', 'bank');
    await speak('May I send the mail?');
    await utter('yes');
    await utter('go ahead');
    expect([stateOf('mail'), ran]).toEqual(['open', []]);
    await pause();
    expect(asked()).toContain('To be sure: Does something, with do_mail');
    await speak('Just the mail: may I?');
    await utter('yes');
    expect(ran).toEqual(['mail']);
    await pause();
    await speak('And the bank?');
    await utter('no');
    expect(ran).toEqual(['mail']);
    expect(stateOf('bank')).toBe('answered');
  });

  test('QUESTION-6: ignores a yes that interrupts the read-back', async () => {
    const { speak, say: utter, pause, interrupt, ran, stateOf } = await voice('mail', 'bank');
    await speak('May I send the mail?');
    await utter('yes');
    await pause();
    await interrupt('yes');
    expect([stateOf('mail'), ran]).toEqual(['open', []]);
    await pause();
    await speak('Just the mail: may I?');
    await utter('yes');
    expect(ran).toEqual(['mail']);
  });
});
