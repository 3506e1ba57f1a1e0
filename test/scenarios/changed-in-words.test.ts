// "Yes, but on Friday": the lead agent proposes the changed call, the runtime reads the call back, and only a plain yes
// to that runs the call (SETTLE-2, QUESTION-13).

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Script } from '../../src/testing/index.ts';
import { instantsOf, textLife, turns, world, type World } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import {
  leadScript,
  settle,
  settling,
  textTalk,
  type LeadCall,
  type TalkOptions,
} from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { lexicon, wordsModel } from '../support/words-model.ts';

const WORDS = 'Yes, but on Friday.';
const THURSDAY = { day: 'Thursday', seats: 2 };
const FRIDAY = { day: 'Friday', seats: 2 };
const ASKED = 'Books a table, with book (day: "Thursday", seats: 2): may I do that?';
const READ_BACK = 'To be sure: Books a table, with book (day: "Friday", seats: 2): may I do that?';

const change = (text: unknown, quote = WORDS): LeadCall =>
  settle('change', { text: typeof text === 'string' ? text : JSON.stringify(text), quote });

/** A subagent that books a table after an approval, and the list of its bookings. */
function booking(ran: unknown[], tool: object = {}): TalkOptions {
  const book = {
    description: 'Books a table',
    inputSchema: z.object({ day: z.string().max(3000), seats: z.number().max(8) }),
    needsApproval: true,
    idempotent: true,
    execute: (input: unknown) => {
      ran.push(input);
      return 'booked';
    },
    ...tool,
  };
  const script = turns(calls(['book', THURSDAY]), ({ results }) =>
    say(`Read ${JSON.stringify(results)}`),
  );
  return { subagents: { table: { script, config: { tools: { book } } } } };
}

async function text(
  lead: Script = settling(WORDS, change({ day: 'Friday' })),
  tool: object = {},
  more: TalkOptions = {},
) {
  const ran: unknown[] = [];
  const talk = textTalk({ ...booking(ran, tool), lead, ...more });
  await talk.start();
  await talk.type('use table');
  const put = () =>
    talk.parts.flatMap((part) => (part.type === 'question.asked' ? [part.question] : []));
  const answer = async (given: Parameters<typeof talk.session.answer>[1]) => {
    const receipt = talk.session.answer(talk.question()?.requestId ?? '', given);
    await talk.environment.settle();
    return receipt;
  };
  return { ...talk, ran, put, answer };
}

describe('a yes with a change, by text', () => {
  it('P3: reads the changed call back and runs it after a simple yes', async () => {
    const { type, ran, put, question, state } = await text();
    expect(put()).toEqual([ASKED]);
    await type(WORDS);
    expect(ran).toEqual([]);
    expect(put()).toEqual([ASKED, READ_BACK]);
    expect(question()).toMatchObject({
      state: 'open',
      question: ASKED,
      action: { input: THURSDAY },
      changed: { input: FRIDAY, question: READ_BACK.replace('To be sure: ', '') },
      putAgain: { times: 2, text: READ_BACK },
    });
    await type('Yes.');
    expect(ran).toEqual([FRIDAY]);
    expect(state().questions.at(-1)).toMatchObject({
      state: 'answered',
      answer: 'Yes, with day: "Friday", seats: 2',
    });
    const { outcome } = state().subagents[0] ?? {};
    expect(outcome?.toolLedger).toMatchObject([{ input: FRIDAY, askedInput: THURSDAY }]);
    expect(outcome?.text).toContain('The user changed the arguments of this call.');
  });

  it('asks about the original call again after a no and runs it after a yes', async () => {
    const { type, ran, put, question } = await text();
    await type(WORDS);
    await type('No.');
    expect([ran, question()?.state]).toEqual([[], 'open']);
    expect(question()).not.toHaveProperty('changed');
    expect(put()).toEqual([ASKED, READ_BACK, `To be sure: ${ASKED}`]);
    await type('Yes.');
    expect(ran).toEqual([THURSDAY]);
  });

  it('denies the call after a second no', async () => {
    const { type, ran, state } = await text();
    for (const words of [WORDS, 'No.', 'No.']) await type(words);
    expect([ran, state().questions.at(-1)?.answer]).toEqual([[], 'No.']);
  });

  it.each(['no', 'wait', 'on Saturday, then', 'Friday or Saturday?', 'yes, but on Sunday', 'ok?'])(
    'runs nothing after "%s"',
    async (words) => {
      const { type, ran, question } = await text();
      await type(WORDS);
      await type(words);
      expect([ran, question()?.state]).toEqual([[], 'open']);
    },
  );

  it('reads the changed call back again if the user talks about something else', async () => {
    const { type, ran, put } = await text();
    for (const words of [WORDS, 'How is the weather?', 'Yes.']) await type(words);
    expect(ran).toEqual([]);
    expect(put().at(-1)).toBe(READ_BACK);
    await type('Yes.');
    expect(ran).toEqual([FRIDAY]);
  });

  it('replaces an earlier change with a later one', async () => {
    const later = 'Saturday would suit me better.';
    const lead: Script = (prompt) =>
      prompt.user === later
        ? settling(later, change({ day: 'Saturday' }, later))(prompt)
        : settling(WORDS, change({ day: 'Friday' }))(prompt);
    const { type, ran, put } = await text(lead);
    await type(WORDS);
    await type(later);
    await type(later);
    expect(ran).toEqual([]);
    expect(put().at(-1)).toBe(READ_BACK.replace('Friday', 'Saturday'));
    await type('Yes.');
    expect(ran).toEqual([{ day: 'Saturday', seats: 2 }]);
  });

  it.each([
    ['arguments that the tool does not take', { seats: 20 }],
    ['a text', '"Friday"'],
    ['no JSON', 'Friday'],
    ['nothing', ''],
    ['a megabyte', { day: 'x'.repeat(1_000_000) }],
  ])('leaves the call as asked for %s', async (_, given) => {
    const { type, ran, put, question, said } = await text(settling(WORDS, change(given)));
    await type(WORDS);
    expect(JSON.stringify(said())).toContain('invalid_change');
    expect(put()).toEqual([ASKED]);
    expect(question()).toMatchObject({ state: 'open', action: { input: THURSDAY } });
    expect(question()).not.toHaveProperty('changed');
    await type('Yes.');
    expect(ran).toEqual([]);
    expect(put().at(-1)).toBe(`To be sure: ${ASKED}`);
    await type('Yes.');
    expect(ran).toEqual([THURSDAY]);
  });

  it('SETTLE-1: makes only the changes that the user has asked for', async () => {
    const lead = settling('How is the weather?', change({ day: 'Friday' }, 'on Friday please'));
    const { type, ran, put } = await text(lead);
    await type('How is the weather?');
    expect(put()).toEqual([ASKED]);
    await type('Yes.');
    expect(put().at(-1)).toBe(`To be sure: ${ASKED}`);
    await type('Yes.');
    expect(ran).toEqual([THURSDAY]);
  });

  it('does not accept a verbal yes to a changed call that is too long to be spoken', async () => {
    const long = { day: 'Friday '.repeat(400) };
    const { type, ran, answer } = await text(settling(WORDS, change(long)));
    await type(WORDS);
    await type('Yes.');
    await type('Yes.');
    expect(ran).toEqual([]);
    expect(await answer({ approved: true, input: { ...long, seats: 2 } })).toMatchObject({
      accepted: true,
    });
    expect(ran).toEqual([{ ...long, seats: 2 }]);
  });

  it("reads the change back with the text that the tool's author provides", async () => {
    const approvalQuestion = ({ day }: { day: string }) => `May I book a table on ${day}?`;
    const { type, put } = await text(undefined, { approvalQuestion });
    await type(WORDS);
    expect(put()).toEqual([
      'May I book a table on Thursday?',
      'To be sure: May I book a table on Friday?',
    ]);
  });
});

describe('a yes with a change in a language without tables', () => {
  const words = 'Sim, mas na sexta.';
  const known = lexicon({ yes: ['sim'], no: ['não'], other: [words] });

  async function portuguese() {
    const talk = await text(
      settling(words, change({ day: 'Friday' }, words)),
      {},
      {
        agent: { language: 'pt' },
        consentModel: wordsModel(known).model,
      },
    );
    await talk.type(words);
    expect(talk.question()).toMatchObject({ changed: { input: FRIDAY } });
    return talk;
  }

  it('P3: runs only the changed call, after a yes to its read-back', async () => {
    const { type, ran } = await portuguese();
    await type('sim');
    await type('sim');
    expect(ran).toEqual([FRIDAY]);
  });

  it('asks about the original call again after a no', async () => {
    const { type, ran, question, put } = await portuguese();
    await type('não');
    expect([ran, question()?.state]).toEqual([[], 'open']);
    expect(question()).not.toHaveProperty('changed');
    expect(put().at(-1)).toBe(`To be sure: ${ASKED}`);
    await type('sim');
    await type('sim');
    expect(ran).toEqual([THURSDAY]);
  });

  it('P3: does not apply an earlier yes to the changed call', async () => {
    const talk = await text(
      settling(words, change({ day: 'Friday' }, words)),
      {},
      {
        agent: { language: 'pt' },
        consentModel: wordsModel(known).model,
      },
    );
    for (const each of ['sim', words, 'sim']) await talk.type(each);
    expect(talk.ran).toEqual([]);
    await talk.type('sim');
    expect(talk.ran).toEqual([FRIDAY]);
  });
});

describe('a button press while a changed call is read back', () => {
  it.each([{ approved: true }, { optionId: 'approve' }])(
    'does not count without the changed arguments: %j',
    async (given) => {
      const { type, ran, answer, question } = await text();
      await type(WORDS);
      expect(await answer(given)).toEqual({ accepted: false, reason: 'changed' });
      expect([ran, question()?.state]).toEqual([[], 'open']);
    },
  );

  it.each([[FRIDAY], [THURSDAY]])(
    'runs the call with the arguments that the button sends: %j',
    async (input) => {
      const { type, ran, answer } = await text();
      await type(WORDS);
      expect(await answer({ approved: true, input })).toEqual({ accepted: true });
      expect(ran).toEqual([input]);
    },
  );

  it('denies the call', async () => {
    const { type, ran, answer, state } = await text();
    await type(WORDS);
    expect(await answer({ approved: false })).toEqual({ accepted: true });
    expect([ran, state().questions.at(-1)?.state]).toEqual([[], 'answered']);
  });
});

describe('a yes with a change, by voice', () => {
  async function voice() {
    const ran: unknown[] = [];
    const talk = voiceTalk(booking(ran));
    await talk.start();
    await talk.use('table');
    await talk.pause();
    await talk.speak('May I book Thursday?');
    await talk.say(WORDS);
    await talk.settles({ action: 'change', text: '{"day":"Friday"}', quote: WORDS });
    return { ...talk, ran };
  }

  it('P3: runs nothing before the changed call has been heard', async () => {
    const { say: utter, ran, question } = await voice();
    await utter('Yes.');
    expect([ran, question()?.state]).toEqual([[], 'open']);
  });

  it('P3: runs the changed call after a yes to its read-back', async () => {
    const { say: utter, speak, pause, asked, ran } = await voice();
    await speak('One moment.');
    await pause();
    expect(asked()).toContain('day: \\"Friday\\"');
    await speak('May I book Friday?');
    await utter('Yes.');
    expect(ran).toEqual([FRIDAY]);
  });

  it('leaves the original call open after a no', async () => {
    const { say: utter, speak, pause, asked, ran, question } = await voice();
    await speak('One moment.');
    await pause();
    await speak('May I book Friday?');
    await utter('No.');
    expect([ran, question()?.state]).toEqual([[], 'open']);
    await pause();
    expect(asked()).toContain('day: \\"Thursday\\"');
    await speak('May I book Thursday?');
    await utter('Yes.');
    expect(ran).toEqual([THURSDAY]);
  });
});

describe('a changed call in a process that is killed at each entry', () => {
  const lead: Script = (prompt) => {
    const last = prompt.prompt.at(-1);
    const isCutOff = prompt.user.includes('You were cut off');
    if (last?.role === 'user' && (prompt.user === WORDS || isCutOff))
      return calls(['settle_question', change({ day: 'Friday' })[1]]);
    return leadScript(prompt);
  };

  const putIn = ({ parts }: ReturnType<typeof textLife>) =>
    parts.flatMap((part) => (part.type === 'question.asked' ? [part.question] : []));

  /** Answers in words, and says yes only to the read-back of the changed call. */
  const play = async (of: World) => {
    const ran: unknown[] = [];
    for (;;) {
      const life = textLife(of, { ...booking(ran), lead });
      void life.start().catch(() => {});
      await of.environment.settle();
      for (let round = 0; round < 30 && life.isAlive(); round += 1) {
        const { subagents, questions, transcript } = life.state();
        const asked = questions.at(-1);
        const saidAt = transcript.findLastIndex(({ text: said }) => said === WORDS);
        if (subagents.length === 0) void life.session.sendText('use table').catch(() => {});
        else if (asked?.state === 'open')
          if (saidAt < 0 || (!asked.changed && transcript.at(-1)?.text !== WORDS))
            void life.session.sendText(WORDS).catch(() => {});
          else if (putIn(life).at(-1) === READ_BACK)
            void life.session.sendText('Yes.').catch(() => {});
        await of.environment.settle();
        await of.environment.advance(1000);
      }
      if (!life.isAlive()) continue;
      const { written } = of;
      await life.close();
      return { ran: [...new Set(ran.map((one) => JSON.stringify(one)))], written };
    }
  };

  for (const snapshots of [false, true])
    it(`P3: runs only the changed call (snapshots: ${snapshots})`, async () => {
      const worldOf = () => world(snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});
      const { written, ...fate } = await play(worldOf());
      expect(fate).toEqual({ ran: [JSON.stringify(FRIDAY)] });
      for (const [when, entry] of instantsOf(written)) {
        const of = worldOf();
        of.killAt(entry, when);
        const { written: _, ...seen } = await play(of);
        expect({ when, entry, ...seen }).toEqual({ when, entry, ...fate });
      }
    });
});
