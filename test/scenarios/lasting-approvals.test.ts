// A lasting approval: later calls of the same kind run without a question, in the task or in the session, until the
// user revokes the approval (APPROVAL-6, SETTLE-2, QUESTION-13).

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { UnloadedSession } from '../../src/actors/replay/unloaded-session.ts';
import { addAnswerLanguage } from '../../src/entries/language.ts';
import { replaySession } from '../../src/entries/replay.ts';
import { createSubAgentTool } from '../../src/index.ts';
import { scriptedRelay, type Script } from '../../src/testing/index.ts';
import { instantsOf, textLife, turns, world, type World } from '../support/crashes.ts';
import { calls, say, subagentRuns } from '../support/subagent-runs.ts';
import {
  instructionsOf,
  leadScript,
  settle,
  settling,
  textTalk,
  type TalkOptions,
} from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

interface Mail {
  readonly to: string;
  readonly text: string;
}

const ANNA = { to: 'anna@example.com', text: 'Hi' };
const ANNA_AGAIN = { ...ANNA, text: 'Again' };
const BEN = { ...ANNA, to: 'ben@example.com' };

const QUESTION =
  'Sends a mail, with send_mail (to: "anna@example.com", text: "Hi"): may I do that?';
const LASTING = `To be sure: ${QUESTION} A yes also lets it do exactly this again without asking, until this task is done.`;

/** Subagents that send these emails one after the other, and the list of the emails that were sent. */
function mailing(sent: unknown[], mails: readonly Mail[], tool: object = {}): TalkOptions {
  const send_mail = {
    description: 'Sends a mail',
    inputSchema: z.object({ to: z.string(), text: z.string() }),
    needsApproval: true,
    idempotent: true,
    execute: (input: unknown) => {
      sent.push(input);
      return 'sent';
    },
    ...tool,
  };
  const script = turns(...mails.map((mail) => calls(['send_mail', mail])), say('Done.'));
  const config = { tools: { send_mail } };
  return { subagents: { mail: { script, config }, post: { script, config } } };
}

async function text(
  mails: readonly Mail[] = [ANNA, ANNA],
  tool: object = {},
  more: TalkOptions = {},
  first = 'use mail',
) {
  const sent: unknown[] = [];
  const talk = textTalk({ ...mailing(sent, mails, tool), ...more });
  await talk.start();
  await talk.type(first);
  const open = () => talk.state().questions.filter(({ state }) => state === 'open');
  const answer = async (
    given: Parameters<typeof talk.session.answer>[1],
    by?: string,
    requestId = open()[0]?.requestId ?? '',
  ) => {
    const receipt = talk.session.answer(requestId, given, by === undefined ? {} : { by });
    await talk.environment.settle();
    return receipt;
  };
  return {
    ...talk,
    sent,
    open,
    answer,
    lasting: () =>
      talk.state().questions.filter(({ state, lasts }) => state === 'answered' && lasts),
    put: () =>
      talk.parts.flatMap((part) => (part.type === 'question.asked' ? [part.question] : [])),
    ledger: () => talk.state().subagents.map(({ outcome }) => outcome?.toolLedger ?? []),
  };
}

describe('a lasting approval', () => {
  it('APPROVAL-6: covers later identical calls, whose ledger entries name the approval', async () => {
    const { answer, sent, open, lasting, ledger } = await text([ANNA, ANNA, BEN]);
    const [asked] = open();
    expect(await answer({ approved: true, lasts: 'session' })).toEqual({ accepted: true });
    expect(sent).toEqual([ANNA, ANNA]);
    expect(open()).toMatchObject([{ action: { input: BEN } }]);
    await answer({ approved: true });
    expect(sent).toEqual([ANNA, ANNA, BEN]);
    expect(ledger()[0]).toMatchObject([
      { approval: 'given' },
      { approval: 'lasting', approvalId: asked?.requestId },
      { approval: 'given' },
    ]);
    expect(lasting()).toMatchObject([{ requestId: asked?.requestId, lasts: 'session' }]);
  });

  it('does not cover later calls if `lasts` is not set', async () => {
    const { answer, sent, open } = await text();
    await answer({ approved: true });
    expect([sent, open().length]).toEqual([[ANNA], 1]);
  });

  it("ignores differences in arguments that the tool's author has marked as free", async () => {
    const tool = { lasting: { free: ['text'] } };
    const { answer, sent, open } = await text([ANNA, ANNA_AGAIN, BEN], tool);
    expect(open()).toMatchObject([{ mayDiffer: ['text'] }]);
    await answer({ approved: true, lasts: 'task' });
    expect(sent).toEqual([ANNA, ANNA_AGAIN]);
    expect(open()).toMatchObject([{ action: { input: BEN } }]);
  });

  it("does not cover a different text unless the tool's author has marked the text as free", async () => {
    const { answer, sent, open } = await text([ANNA, ANNA_AGAIN]);
    await answer({ approved: true, lasts: 'session' });
    expect([sent, open().length]).toEqual([[ANNA], 1]);
  });

  it("has no effect if the tool's author does not allow it", async () => {
    const { answer, sent, open, type } = await text([ANNA, ANNA], { lasting: false });
    expect(await answer({ approved: true, lasts: 'task' })).toEqual({
      accepted: false,
      reason: 'invalid_option',
    });
    expect([sent, open().length]).toEqual([[], 1]);
    await type("Yes, and don't ask me again.");
    expect([sent, open().length]).toEqual([[ANNA], 1]);
  });

  it('covers the call as changed by the user', async () => {
    const { answer, sent, open } = await text([ANNA, BEN, ANNA]);
    await answer({ approved: true, input: BEN, lasts: 'session' });
    expect(sent).toEqual([BEN, BEN]);
    expect(open()).toMatchObject([{ action: { input: ANNA } }]);
  });

  it('ends with its task', async () => {
    const { answer, sent, open, lasting, type, ledger } = await text();
    await answer({ approved: true, lasts: 'task' });
    expect(sent).toEqual([ANNA, ANNA]);
    expect(ledger()).toHaveLength(1);
    expect(lasting()).toEqual([]);
    await type('use mail');
    expect([sent.length, open().length]).toEqual([2, 1]);
  });

  it("covers a later task of the same agent in the session, but no other agent's task", async () => {
    const { answer, sent, open, type } = await text();
    await answer({ approved: true, lasts: 'session' });
    await type('use mail');
    expect(sent).toEqual([ANNA, ANNA, ANNA, ANNA]);
    await type('use post');
    expect([sent.length, open().length]).toEqual([4, 1]);
  });

  it.each([{ approved: false }, { optionId: 'deny' }])(
    'ends when answered with %j',
    async (given) => {
      const { answer, sent, open, lasting, type } = await text();
      const id = open()[0]?.requestId;
      await answer({ approved: true, lasts: 'session' });
      expect(await answer({ approved: true }, undefined, id)).toEqual({
        accepted: false,
        reason: 'over',
      });
      expect(await answer(given, undefined, id)).toEqual({ accepted: true });
      expect(lasting()).toEqual([]);
      expect(await answer(given, undefined, id)).toEqual({ accepted: false, reason: 'over' });
      await type('use mail');
      expect([sent.length, open().length]).toEqual([2, 1]);
    },
  );

  it('replays as an answered question after it has ended', async () => {
    const of = world();
    const life = textLife(of, mailing([], [ANNA, ANNA, BEN]));
    await life.start();
    await life.type('use mail');
    const id = life.state().questions[0]?.requestId ?? '';
    await life.session.answer(id, { approved: true, lasts: 'session' });
    await of.environment.settle();
    await life.session.answer(id, { approved: false });
    const steps = [...replaySession(of.entries)];
    const facts = steps.flatMap(({ changes }) => changes[`question ${id}`] ?? []);
    expect(facts.slice(-2)).toEqual(['answered for the session: Yes', 'answered: Yes']);
    expect(steps.some(({ changes }) => changes[`question ${id}`] === null)).toBe(false);
    const { questions = [] } = steps.at(-1)?.view ?? {};
    const ended = questions.find(({ requestId }) => requestId === id);
    expect([ended?.state, ended?.lasts]).toEqual(['answered', undefined]);
    await life.close();
  });

  it('ends when the user denies an identical call', async () => {
    const { answer, sent, lasting, session, state } = await text(
      [ANNA, ANNA],
      {},
      {},
      'use mail and post',
    );
    expect(await answer({ approved: true, lasts: 'session' })).toEqual({ accepted: true });
    expect(sent).toEqual([ANNA, ANNA]);
    const other = state().questions.at(-1);
    session.questionShown(other?.requestId ?? '');
    expect(await answer({ approved: false }, undefined, other?.requestId)).toEqual({
      accepted: true,
    });
    expect(lasting()).toEqual([]);
    expect(sent).toEqual([ANNA, ANNA]);
  });

  it('WHO-1: lets only users who may answer grant it or end it', async () => {
    const { answer, sent, open, lasting, type } = await text([ANNA, ANNA], {
      answerableBy: ['boss'],
    });
    const id = open()[0]?.requestId;
    const always = { approved: true, lasts: 'session' } as const;
    expect(await answer(always, 'eve')).toMatchObject({ reason: 'not_allowed' });
    expect(await answer(always, 'boss')).toEqual({ accepted: true, by: 'boss' });
    expect(sent).toEqual([ANNA, ANNA]);
    expect(await answer({ approved: false }, 'eve', id)).toMatchObject({ reason: 'not_allowed' });
    expect(lasting()).toMatchObject([{ answeredBy: 'boss' }]);
    expect(await answer({ approved: false }, 'boss', id)).toMatchObject({ accepted: true });
    await type('use mail');
    expect([sent.length, open().length]).toEqual([2, 1]);
  });

  it('P8: does not cover a call that the author denies', async () => {
    let isDenied = false;
    const toolApproval = { send_mail: () => (isDenied ? 'denied' : 'user-approval') as never };
    const execute = () => {
      isDenied = true;
      return 'sent';
    };
    const { mail } = mailing([], [ANNA, ANNA], { execute }).subagents ?? {};
    const config = { ...mail?.config, toolApproval };
    const subagents = { mail: { script: mail?.script ?? (() => say('')), config } };
    const { answer, ledger } = await text([], {}, { subagents });
    await answer({ approved: true, lasts: 'session' });
    expect(ledger()[0]).toMatchObject([{ approval: 'given' }, { approval: 'author_denied' }]);
  });

  it('covers the descendants of the subagent that asked, and no other subagents', async () => {
    const sent: unknown[] = [];
    const { mail, post } = mailing(sent, [ANNA]).subagents ?? {};
    const child = createSubAgentTool(
      {
        name: 'child',
        instructions: instructionsOf('child'),
        outputSchema: z.object({ done: z.boolean() }),
        ...mail?.config,
      } as never,
      z.object({}),
    );
    const parent = {
      script: turns(calls(['send_mail', ANNA]), calls(['subagent__child', {}]), say('Done.')),
      config: { tools: { ...mail?.config?.tools, subagent__child: child } },
    };
    const below = { script: turns(calls(['send_mail', ANNA]), say('{"done":true}')) };
    const subagents = { mail: parent, child: below, post: post ?? below } as never;
    const { answer, open, type } = await text([], {}, { subagents });
    await answer({ approved: true, lasts: 'task' });
    expect([sent, open()]).toEqual([[ANNA, ANNA], []]);
    await type('use post');
    expect([sent.length, open().length]).toEqual([2, 1]);
  });

  it('covers a repeated permission request from an agent behind a relay', async () => {
    const edit = { permission: { title: 'Edit a.txt', kind: 'edit', input: { path: 'a.txt' } } };
    const other = { permission: { ...edit.permission, title: 'Edit b.txt' } };
    const relay = scriptedRelay({ script: () => [edit, edit, other] });
    const subagents = { mail: { script: () => say(''), config: { relay } } };
    const { answer, open, ledger } = await text([], {}, { subagents });
    await answer({ approved: true, lasts: 'session' });
    expect(open()).toMatchObject([{ action: { input: { title: 'Edit b.txt' } } }]);
    await answer({ approved: false });
    expect(ledger()[0]?.flatMap(({ approval }) => approval ?? [])).toEqual([
      'given',
      'lasting',
      'denied',
    ]);
  });

  it("requires a session and is therefore unavailable to a program's run", async () => {
    const sent: unknown[] = [];
    const { environment, errors, outcome } = subagentRuns(
      turns(calls(['send_mail', ANNA]), say('Done.')),
    );
    const { mail } = mailing(sent, []).subagents ?? {};
    const result = outcome(mail?.config ?? {}, {
      onQuestion: () => ({ approved: true, lasts: 'task' }),
    });
    await environment.settle();
    expect((await result).status).toBe('completed');
    expect(sent).toEqual([]);
    expect(errors).toMatchObject([{ error: { code: 'INVALID_ANSWER' } }]);
  });

  it.each([
    { approved: false, lasts: 'task' },
    { approved: true, lasts: 'forever' },
    { text: 'Yes', lasts: 'task' },
    { optionId: 'approve', lasts: 'session' },
    { lasts: 'session' },
  ])('throws INVALID_ANSWER for %j', async (given) => {
    const { session, open } = await text();
    const id = open()[0]?.requestId ?? '';
    await expect(session.answer(id, given as never)).rejects.toMatchObject({
      code: 'INVALID_ANSWER',
    });
    expect(open()).toHaveLength(1);
  });

  it('ends when it is denied while no process is running the session', async () => {
    const of = world();
    const sent: unknown[] = [];
    const begin = async () => {
      const life = textLife(of, mailing(sent, [ANNA, ANNA, ANNA]));
      void life.start().catch(() => {});
      await of.environment.settle();
      return life;
    };
    const first = await begin();
    await first.type('use mail');
    const id = first.state().questions[0]?.requestId ?? '';
    // The process dies before it reports the second email.
    const isSecond = of.entries.length + 5;
    of.killAt(isSecond, 'before');
    void first.session.answer(id, { approved: true, lasts: 'session' }).catch(() => {});
    await of.environment.settle();
    expect(first.isAlive()).toBe(false);
    const unloaded = await UnloadedSession.claim(of.begin().runtime.journal, 'ses', of.environment);
    expect(unloaded.view.questions).toMatchObject([{ requestId: id, lasts: 'session' }]);
    expect(await unloaded.answer(id, { approved: false })).toEqual({ accepted: true });
    await unloaded.release();
    const second = await begin();
    expect(second.state().questions.at(-1)).toMatchObject({ state: 'open' });
    expect(second.state().questions).toHaveLength(2);
    await second.close();
  });
});

describe('a lasting approval that is given in words', () => {
  const again = "Yes, and don't ask me again.";

  it('P3: counts after a simple yes to its read-back', async () => {
    const { type, sent, put, open } = await text();
    await type(again);
    expect(sent).toEqual([]);
    expect(put()).toEqual([QUESTION, LASTING]);
    expect(open()).toMatchObject([{ lasts: 'task', changed: { input: ANNA } }]);
    await type('Yes.');
    expect(sent).toEqual([ANNA, ANNA]);
  });

  it('names the arguments that the author has marked as free', async () => {
    const { type, sent, put } = await text([ANNA, ANNA_AGAIN], { lasting: { free: ['text'] } });
    await type(again);
    expect(put().at(-1)).toContain(
      'A yes also lets it do this again, whatever the text, without asking, until this task is done.',
    );
    await type('Yes.');
    expect(sent).toEqual([ANNA, ANNA_AGAIN]);
  });

  it.each([again, 'Yes, always.', 'yes always', "Yes. Don't ask me again for this!"])(
    'P3: does not take effect after "%s" alone',
    async (words) => {
      const { type, sent, open, put } = await text();
      await type(words);
      expect([sent, open().length, put().length]).toEqual([[], 1, 2]);
    },
  );

  it.each(['Yes.', 'Go ahead.', 'Yes, please do it.'])(
    'P3: needs more than a yes to the call itself: "%s"',
    async (words) => {
      const { type, sent, open, lasting } = await text();
      await type(words);
      expect([sent, open().length, lasting()]).toEqual([[ANNA], 1, []]);
    },
  );

  it('asks about the original call after a no, and accepts a yes only for that call', async () => {
    const { type, sent, open, put } = await text();
    await type(again);
    await type('No.');
    expect([sent, put().at(-1)]).toEqual([[], `To be sure: ${QUESTION}`]);
    expect(open()[0]).not.toHaveProperty('lasts');
    await type('Yes.');
    expect([sent, open().length]).toEqual([[ANNA], 1]);
  });

  it('accepts the same phrase again as a yes to the read-back', async () => {
    const { type, sent } = await text();
    await type(again);
    await type(again);
    expect(sent).toEqual([ANNA, ANNA]);
  });

  it('covers only one call if a button approves the call in the meantime', async () => {
    const { type, answer, sent, open, lasting } = await text();
    await type(again);
    expect(await answer({ approved: true })).toEqual({ accepted: true });
    expect([sent, open().length, lasting()]).toEqual([[ANNA], 1, []]);
  });

  it('takes effect immediately if a button grants it in the meantime', async () => {
    const { type, answer, sent } = await text();
    await type(again);
    expect(await answer({ approved: true, lasts: 'session' })).toEqual({ accepted: true });
    expect(sent).toEqual([ANNA, ANNA]);
  });

  it.each([
    ['de', 'Ja, und frag mich nicht mehr.', 'Ja.'],
    ['de', 'ja immer', 'Ja, mach das.'],
    ['es', 'Sí, y no me preguntes más.', 'Sí.'],
    ['fr', 'Oui, et ne me demande plus.', 'Oui.'],
    ['pt', 'Sim, e não me pergunte mais.', 'Sim.'],
  ])('P3: works in %s: %s', async (language, words, yes) => {
    addAnswerLanguage({
      code: 'pt',
      negations: ['não'],
      joints: ['e'],
      consent: {
        yes: ['sim'],
        no: ['não'],
        yesLabels: ['sim'],
        noLabels: ['não'],
        lastings: ['não me pergunte mais'],
      },
    });
    const { type, sent, put } = await text([ANNA, ANNA], {}, { agent: { language } });
    await type(words);
    expect([sent, put().at(-1)]).toEqual([[], LASTING]);
    await type(yes);
    expect(sent).toEqual([ANNA, ANNA]);
  });

  const wish = 'Always allow this.';

  it('SETTLE-2: covers the session if the lead model proposes it', async () => {
    const lead = settling(wish, settle('always', { text: 'session', quote: wish }));
    const { type, sent, put, open } = await text([ANNA, ANNA], {}, { lead });
    await type(wish);
    expect([sent, open().length]).toEqual([[], 1]);
    expect(put().at(-1)).toContain('until this conversation ends');
    await type('Yes.');
    expect(sent).toEqual([ANNA, ANNA]);
    await type('use mail');
    expect(sent).toHaveLength(4);
  });

  it('SETTLE-1: requires a message that asks for it', async () => {
    const lead = settling(
      'How is the weather?',
      settle('always', { text: 'session', quote: wish }),
    );
    const { type, put, open } = await text([ANNA, ANNA], {}, { lead });
    await type('How is the weather?');
    expect([put(), open()[0]?.lasts]).toEqual([[QUESTION], undefined]);
  });

  const back = 'Ask me again before you send mails.';

  it('ends immediately when the lead model revokes it', async () => {
    const notes: string[] = [];
    const script = settling(back, settle('revoke', { quote: back }));
    const lead: Script = (prompt) => {
      notes.push(JSON.stringify(prompt.prompt));
      return script(prompt);
    };
    const { type, answer, sent, open, lasting, said } = await text([ANNA, ANNA], {}, { lead });
    await answer({ approved: true, lasts: 'session' });
    await type(back);
    expect(notes.at(-2)).toContain('exactly this again without asking');
    expect(said().at(-1)).toContain('asked_from_now_on');
    expect(lasting()).toEqual([]);
    await type('use mail');
    expect([sent.length, open().length]).toEqual([2, 1]);
  });

  it('SETTLE-1: remains in effect unless the user asks to revoke it', async () => {
    const lead = settling('Hello.', settle('revoke', { quote: back }));
    const { type, answer, lasting } = await text([ANNA, ANNA], {}, { lead });
    await answer({ approved: true, lasts: 'session' });
    await type('Hello.');
    expect(lasting()).toHaveLength(1);
  });

  it('ends when it is revoked by its id if there are several', async () => {
    const requests: string[] = [];
    const lead: Script = (prompt) => {
      const id = requests[0];
      const named = id === undefined ? {} : { questionId: id };
      return settling(back, settle('revoke', { quote: back, ...named }))(prompt);
    };
    const { type, answer, open, lasting, said } = await text([ANNA, BEN, ANNA], {}, { lead });
    const id = open()[0]?.requestId ?? '';
    await answer({ approved: true, lasts: 'session' });
    await answer({ approved: true, lasts: 'session' });
    await type(back);
    expect(lasting()).toHaveLength(2);
    expect(said().at(-1)).toContain(id);
    requests.push(id);
    await type(back);
    expect(lasting()).toMatchObject([{ action: { input: BEN } }]);
  });

  it('remains in effect if a user who may not answer tries to revoke it', async () => {
    const lead = settling(back, settle('revoke', { quote: back }));
    const tool = { answerableBy: ['boss'] };
    const { session, environment, answer, lasting } = await text([ANNA, ANNA], tool, { lead });
    await answer({ approved: true, lasts: 'session' }, 'boss');
    await session.sendText(back, { by: 'eve' });
    await environment.settle();
    expect(lasting()).toHaveLength(1);
    await session.sendText(back, { by: 'boss' });
    await environment.settle();
    expect(lasting()).toEqual([]);
  });
});

describe('a lasting approval, by voice', () => {
  async function voice() {
    const sent: unknown[] = [];
    const talk = voiceTalk(mailing(sent, [ANNA, ANNA]));
    await talk.start();
    await talk.use('mail');
    await talk.pause();
    await talk.speak('May I send this mail?');
    await talk.say("Yes, and don't ask me again.");
    return { ...talk, sent };
  }

  it('P3: counts only after a yes to its read-back', async () => {
    const { say: utter, speak, pause, asked, sent } = await voice();
    expect(sent).toEqual([]);
    await utter('Yes.');
    expect(sent).toEqual([]);
    await pause();
    expect(asked()).toContain('exactly this again without asking');
    await speak('May I send this mail, and again without asking?');
    await utter('Yes.');
    expect(sent).toEqual([ANNA, ANNA]);
  });

  it('ends when the voice model revokes it', async () => {
    const { say: utter, speak, pause, sent, settles, state } = await voice();
    await pause();
    await speak('May I send this mail, and again without asking?');
    await utter('Yes.');
    expect(sent).toEqual([ANNA, ANNA]);
    expect(state().questions).toMatchObject([{ state: 'answered' }]);
    await utter('Ask me again before you send mails.');
    await settles({ action: 'revoke', quote: 'Ask me again before you send mails.' });
    expect(state().questions[0]).not.toHaveProperty('lasts');
  });
});

describe('a lasting approval in a process that is killed at each entry', () => {
  const wish = 'Ask me again before you send mails.';
  const lead: Script = (prompt) => {
    const last = prompt.prompt.at(-1);
    const isCutOff = prompt.user.includes('You were cut off');
    if (last?.role === 'user' && (prompt.user === wish || isCutOff))
      return calls(['settle_question', settle('revoke', { quote: wish })[1]]);
    return leadScript(prompt);
  };

  /**
   * Gives the first email a lasting approval, revokes that approval after the first task, and leaves the question about
   * the second email open.
   */
  const play = async (of: World) => {
    const sent: unknown[] = [];
    for (;;) {
      const life = textLife(of, { ...mailing(sent, [ANNA, ANNA]), lead });
      void life.start().catch(() => {});
      await of.environment.settle();
      for (let round = 0; round < 20 && life.isAlive(); round += 1) {
        const { subagents, questions, transcript } = life.state();
        const open = questions.find(({ state }) => state === 'open');
        const isLasting = questions.some(({ lasts }) => lasts === 'session');
        const isOver = subagents.every(({ endedAt }) => endedAt !== null);
        const wasTold = transcript.some(({ text: said }) => said === wish);
        if (subagents.length === 0) void life.session.sendText('use mail').catch(() => {});
        else if (open && !wasTold)
          void life.session
            .answer(open.requestId, { approved: true, lasts: 'session' })
            .catch(() => {});
        else if (isOver && isLasting) void life.session.sendText(wish).catch(() => {});
        else if (isOver && subagents.length === 1 && wasTold)
          void life.session.sendText('use mail').catch(() => {});
        await of.environment.settle();
        await of.environment.advance(1000);
      }
      if (!life.isAlive()) continue;
      const { written } = of;
      const { questions } = life.state();
      const seen = {
        open: questions.filter(({ state }) => state === 'open').length,
        lasting: questions.filter(({ state, lasts }) => state === 'answered' && lasts).length,
      };
      await life.close();
      return { ...seen, sent: [...new Set(sent.map((one) => JSON.stringify(one)))], written };
    }
  };

  for (const snapshots of [false, true])
    it(`P3: asks again after it has been revoked, but not before (snapshots: ${snapshots})`, async () => {
      const worldOf = () => world(snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});
      const { written, ...fate } = await play(worldOf());
      expect(fate).toEqual({ open: 1, lasting: 0, sent: [JSON.stringify(ANNA)] });
      for (const [when, entry] of instantsOf(written)) {
        const of = worldOf();
        of.killAt(entry, when);
        const { written: _, ...seen } = await play(of);
        expect({ when, entry, ...seen }).toEqual({ when, entry, ...fate });
      }
    });
});
