// An utterance counts at once only for the question that was put to the user last (QUESTION-10). If the lead agent has
// said something else since, an approval is read back before a yes counts, and the lead agent settles any other answer.

import { describe, expect, it, test } from 'vitest';
import type { Script } from '../../src/testing/index.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import {
  leadScript,
  settle,
  settling,
  textTalk,
  type ScriptedSubagent,
  type TalkOptions,
} from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

/** Creates a subagent that pays after an approval, and the list of its payments. */
function payer() {
  const paid: unknown[] = [];
  const subagent: ScriptedSubagent = {
    script: steps(calls(['pay', { amount: 900 }]), say('It is over.')),
    config: { tools: { pay: simpleTool((input) => paid.push(input), { needsApproval: true }) } },
  };
  return { paid, subagents: { bank: subagent } };
}

const READ_BACK = 'To be sure: Does something, with pay (amount: 900): may I do that?';

/** A script in which the lead agent offers something else when it replies to this text. */
const offering =
  (words: string): Script =>
  (prompt) =>
    prompt.user === words && prompt.prompt.at(-1)?.role === 'user'
      ? { text: 'Rain. Shall I also tell you about Sunday?' }
      : leadScript(prompt);

async function text(lead: Script = offering('How is the weather?'), more: TalkOptions = {}) {
  const { paid, subagents } = payer();
  const talk = textTalk({ ...more, subagents: { ...subagents, ...more.subagents }, lead });
  await talk.start();
  await talk.type('use bank');
  const put = () =>
    talk.parts.flatMap((part) => (part.type === 'question.asked' ? [part.question] : []));
  return { ...talk, paid, put };
}

describe('a yes after the lead agent has said something else, by text', () => {
  it.each(['Yes.', 'yes please', 'Go ahead.', 'Approve'])(
    'does not approve the action without a read-back: %s',
    async (yes) => {
      const { type, paid, put } = await text();
      await type('How is the weather?');
      await type(yes);
      expect(paid).toEqual([]);
      expect(put().at(-1)).toBe(READ_BACK);
      await type(yes);
      expect(paid).toHaveLength(1);
    },
  );

  it('does not deny the action without a read-back: a no', async () => {
    const { type, paid, put, state } = await text();
    await type('How is the weather?');
    await type('No.');
    expect(state().questions.at(-1)?.state).toBe('open');
    expect(put().at(-1)).toBe(READ_BACK);
    await type('No.');
    expect([paid, state().questions.at(-1)?.state]).toEqual([[], 'answered']);
  });

  it('does not count if the lead agent has said something else since the read-back', async () => {
    const { type, paid, put } = await text();
    await type('How is the weather?');
    await type('Yes.');
    await type('How is the weather?');
    await type('Yes.');
    expect(paid).toEqual([]);
    expect(put().filter((question) => question === READ_BACK)).toHaveLength(2);
  });

  it('does not affect a button press, which always counts', async () => {
    const { type, paid, session, state, environment } = await text();
    await type('How is the weather?');
    const { requestId = '' } = state().questions.at(-1) ?? {};
    void session.answer(requestId, { optionId: 'approve' });
    await environment.settle();
    expect(paid).toHaveLength(1);
  });

  it('causes a read-back if a result has been delivered in between', async () => {
    const other: ScriptedSubagent = { script: () => say('The report is there. Shall I read it?') };
    const { type, paid, put } = await text(leadScript, { subagents: { other } });
    await type('use other');
    await type('Yes.');
    expect(paid).toEqual([]);
    expect(put().at(-1)).toBe(READ_BACK);
  });

  it('counts without a read-back if the question was the last thing said', async () => {
    const again = 'Say the question again.';
    const { type, paid } = await text(settling(again, settle('repeat', { quote: again })));
    await type('How is the weather?');
    await type(again);
    await type('Yes.');
    expect(paid).toHaveLength(1);
  });
});

describe('an answer given after something else was said, by text', () => {
  const asking = (question: string, options: readonly object[] = []): ScriptedSubagent => ({
    script: steps(calls(['ask_user', { question, options }]), ({ results }) =>
      say(JSON.stringify(results[0])),
    ),
    config: { interactive: true },
  });
  const rides = [
    { id: 'economy', label: 'Economy' },
    { id: 'premium', label: 'Premium' },
  ];

  test.each([
    ['Berlin.', 'What is your address?', []],
    ['the second one', 'Economy or Premium?', rides],
    ['Premium', 'Economy or Premium?', rides],
  ])('reaches the lead agent: %s', async (words, question, options) => {
    const talk = textTalk({ subagents: { ride: asking(question, options) } });
    await talk.start();
    await talk.type('use ride');
    await talk.type('How is the weather?');
    await talk.type(words);
    expect(talk.state().questions.at(-1)?.state).toBe('open');
    expect(talk.said().at(-1)).toBe(`You said: ${words}`);
  });

  it('lets the lead agent settle the question', async () => {
    const words = 'Premium';
    const lead = settling(words, settle('answer', { optionId: 'premium', quote: words }));
    const talk = textTalk({ subagents: { ride: asking('Economy or Premium?', rides) }, lead });
    await talk.start();
    await talk.type('use ride');
    await talk.type('How is the weather?');
    await talk.type(words);
    expect(talk.state().subagents[0]?.outcome?.text).toContain('"optionId":"premium"');
  });
});

describe('a yes after the lead agent has said something else, by voice', () => {
  async function voice() {
    const { paid, subagents } = payer();
    const talk = voiceTalk({ subagents });
    await talk.start();
    await talk.use('bank');
    await talk.pause();
    await talk.speak('May I pay 900?');
    return { ...talk, paid };
  }

  it('does not approve the action without a read-back', async () => {
    const { say: utter, speak, pause, asked, paid } = await voice();
    await utter('How is the weather?');
    await speak('Rain. Shall I also tell you about Sunday?');
    await utter('Yes.');
    expect(paid).toEqual([]);
    await speak('Sunday is fine.');
    await pause();
    expect(asked()).toContain('To be sure: Does something, with pay');
    await speak('May I pay 900?');
    await utter('Yes.');
    expect(paid).toHaveLength(1);
  });

  it('counts without a read-back if nothing else was said in between', async () => {
    const { say: utter, paid } = await voice();
    await utter('Yes.');
    expect(paid).toHaveLength(1);
  });
});

describe('a decision followed by a request', () => {
  it.each([
    ['No, and book a table for two.', 0],
    ['Forget it, make me the report instead.', 0],
    ['Yes, and then book a table.', 1],
  ])('settles the approval and passes the message to the lead agent: %s', async (words, times) => {
    const { type, paid, state, said } = await text();
    await type(words);
    expect(state().questions.at(-1)?.state).toBe('answered');
    expect(paid).toHaveLength(times);
    expect(said()).toContain(`You said: ${words}`);
  });

  it("declines the approval through the lead agent in the user's own words", async () => {
    const words = 'Yes, but on Friday instead.';
    const decline = settle('decline', { quote: words, text: 'on Friday instead' });
    const { type, paid, state } = await text(settling(words, decline));
    await type(words);
    expect([paid, state().questions.at(-1)?.state]).toEqual([[], 'answered']);
    expect(state().questions.at(-1)).toMatchObject({ answer: 'on Friday instead' });
  });
});

describe('spoken answers', () => {
  async function voice(by?: string, answerableBy?: readonly string[]) {
    const paid: unknown[] = [];
    const tool = simpleTool((input) => paid.push(input), {
      needsApproval: true,
      ...(answerableBy && { answerableBy }),
    });
    const talk = voiceTalk({
      user: 'ann',
      subagents: {
        bank: {
          script: steps(calls(['pay', { amount: 900 }]), say('It is over.')),
          config: { tools: { pay: tool } },
        },
      },
    });
    await talk.start();
    if (by !== undefined) talk.session.attach({ by });
    await talk.use('bank');
    await talk.pause();
    return { ...talk, paid };
  }

  it("count only for the client that owns the voice: bob's yes is not ann's yes", async () => {
    const { speak, say: utter, paid, question } = await voice('bob', ['ann']);
    await speak('May I pay 900?');
    await utter('Yes.');
    expect([paid, question()?.state]).toEqual([[], 'open']);
  });

  it('attribute an approval to the client that owns the voice', async () => {
    const { speak, say: utter, paid, question } = await voice('bob');
    await speak('May I pay 900?');
    await utter('Yes.');
    expect(paid).toHaveLength(1);
    expect(question()).toMatchObject({ answeredBy: 'bob' });
  });
});
