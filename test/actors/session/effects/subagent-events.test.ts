// How subagents report to readers and listeners of a text session, and how the lead agent uses a result.
import { describe, expect, test } from 'vitest';
import { TextSession, type TextPart } from '../../../../src/index.ts';
import { resultsIn, calls, counting, say, steps } from '../../../support/subagent-runs.ts';
import { agentOf, castOf, configsOf, textTalk } from '../../../support/text-talk.ts';
import { voiceTalk } from '../../../support/voice-talk.ts';

const reportsIn = (parts: readonly TextPart[]) =>
  parts.filter((part) => part.type === 'subagent.reported');

describe('in a text session', () => {
  test(
    'passes on progress unchanged, without a model call or a conversation entry',
    { tags: ['R31', 'RW1'] },
    async () => {
      const { subagent, next } = counting();
      const histories: string[] = [];
      const { start, type, parts, environment } = textTalk({
        subagents: { report: subagent },
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') histories.push(JSON.stringify(prompt));
        },
      });
      await start();
      await type('use report');
      const before = histories.length;
      next();
      await environment.settle();
      expect(reportsIn(parts)).toEqual(
        ['10 of 30', '20 of 30'].map((text) => ({
          type: 'subagent.reported',
          kind: 'progress',
          subagentId: 'sub_1',
          agentName: 'subagent-sub_1',
          subagentName: 'report',
          text,
          final: false,
        })),
      );
      expect(histories).toHaveLength(before);
      // Only the note on running work contains the latest progress, in case the user asks about it.
      await type('hello');
      expect(histories.at(-1)?.match(/\d+ of 30/g)).toEqual(['20 of 30']);
    },
  );

  test(
    '`turn`: records the raw result, then a user turn that contains it, then the reply',
    { tags: ['R32', 'R33'] },
    async () => {
      const histories: unknown[][] = [];
      const { start, type, parts } = textTalk({
        promptStyle: 'turn',
        subagents: { report: { script: () => say('Sales are up.') } },
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') histories.push([...prompt]);
        },
      });
      await start();
      await type('use report');
      const [raw] = reportsIn(parts);
      expect(raw).toMatchObject({ kind: 'result', text: 'Sales are up.', final: false });
      const told = parts.findIndex((part) => part.type === 'text.done' && part.deliveryId !== null);
      expect(parts.indexOf(raw as TextPart)).toBeLessThan(told);
      await type('thanks');
      const turns = histories.at(-1)?.slice(-3) as { role: string; content: unknown }[];
      expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
      expect(turns[0]?.content).toMatchObject([
        {
          text: expect.stringMatching(
            /^\[Subagent task sub_1 completed\]: "Sales are up\." \[data \S+\]$/,
          ),
        },
      ]);
    },
  );

  test('records no raw result in the default style', { tags: ['R33'] }, async () => {
    const { start, type, parts } = textTalk({
      subagents: { report: { script: () => say('Sales are up.') } },
    });
    await start();
    await type('use report');
    expect(reportsIn(parts)).toEqual([]);
  });

  test(
    'TEXT-LEAD-6: does not restart finished work when the lead agent replies to its result',
    { tags: ['RW12'] },
    async () => {
      let tries = 0;
      const { start, type, session, state } = textTalk({
        subagents: { report: { script: () => say('Sales are up.') } },
        lead: (prompt) => {
          if (prompt.user.includes('Sales are up.')) {
            tries += 1;
            return calls(['report']);
          }
          return prompt.user === 'go' && prompt.results.length === 0
            ? calls(['report'])
            : say('On it.');
        },
      });
      await start();
      await type('go');
      expect(tries).toBeGreaterThan(0);
      expect(session.subagents.list()).toHaveLength(1);
      expect(state().deliveries).toMatchObject([{ state: 'delivered', grade: 'assumed' }]);
    },
  );

  test(
    "records a result as the output of its call, and a failure as the call's error",
    { tags: ['B18'] },
    async () => {
      const seen: unknown[] = [];
      const fail = { script: () => ({ error: new Error('no such quarter') }), pending: null };
      const { start, type } = textTalk({
        consolidation: 'off',
        subagents: { report: { script: () => say('Sales are up.'), pending: null }, fail },
        onModelCall: (who, prompt) => {
          if (who !== 'lead') return;
          const last = prompt.prompt.findLast(({ role }) => role === 'tool');
          seen.push(last && resultsIn({ ...prompt, prompt: [last] }));
        },
      });
      await start();
      await type('use report');
      await type('use fail');
      await type('hello');
      expect(JSON.stringify(seen)).toContain('Sales are up.');
      expect(JSON.stringify(seen.at(-1))).toContain('no such quarter');
    },
  );
});

test(
  'presents a question to the lead model as a question, before any results',
  { tags: ['B48'] },
  async () => {
    const { start, use, pause, asked, state } = voiceTalk({
      subagents: {
        ride: {
          script: steps(calls(['ask_user', { question: 'Economy or Premium?' }]), say('Booked.')),
          config: { interactive: true },
        },
        report: { script: () => say('Sales are up.') },
      },
    });
    await start();
    await use('report', 'ride');
    await pause();
    expect(asked()).toContain('"question":"Economy or Premium?"');
    expect(state().deliveries.find(({ kind }) => kind === 'question')?.priority).toBe('high');
  },
);

describe('spoken progress', { tags: ['B39', 'B48', 'R30'] }, () => {
  test('stays silent unless the app enables it', async () => {
    const { subagent } = counting();
    const { start, use, pause, asked } = voiceTalk({ subagents: { report: subagent } });
    await start();
    await use('report');
    await pause();
    expect(asked()).toBeNull();
  });

  test(
    '`all`: plays as an update during a pause, at most once per pace interval',
    { tags: ['B48'] },
    async () => {
      const { subagent, next } = counting(['10 of 30', '20 of 30', '30 of 30']);
      const { start, use, pause, asked, speak, environment } = voiceTalk({
        speakProgress: 'all',
        subagents: { report: subagent },
      });
      await start();
      await use('report');
      await pause();
      expect(asked()).toContain('"label":"SUBAGENT UPDATE","subagent":"report","text":"10 of 30"');
      await speak('The report is a third done.');
      next();
      await pause();
      expect(asked()).toBeNull();
      await environment.advance(30_000);
      next();
      await pause();
      expect(asked()).toContain('30 of 30');
    },
  );

  test("follows the subagent's own setting", async () => {
    const loud = counting(['loud']);
    const quiet = counting(['quiet']);
    const { start, use, pause, asked, speak } = voiceTalk({
      speakProgress: 'all',
      subagents: {
        loud: loud.subagent,
        quiet: {
          ...quiet.subagent,
          config: { ...quiet.subagent.config, speakProgress: 'off' },
        },
      },
    });
    await start();
    await use('quiet', 'loud');
    await pause();
    expect(asked()).toContain('loud');
    await speak('loud');
    await pause();
    expect(asked()).toBeNull();
  });

  test('disappears without being delivered if the result arrives first', async () => {
    const { subagent, next } = counting(['10 of 30']);
    const { start, use, pause, asked, speak, model, environment, state } = voiceTalk({
      speakProgress: 'all',
      subagents: { report: subagent },
    });
    await start();
    await use('report');
    model().speechStarted('u1');
    next();
    await environment.settle();
    model().speechEnded('u1', 'hello');
    await environment.settle();
    await speak('Hello.');
    await pause();
    expect(asked()).toContain('Sales are up.');
    expect(state().deliveries.find(({ kind }) => kind === 'progress')).toMatchObject({
      state: 'dropped',
      dropped: 'replaced',
    });
  });

  test('`turn`: becomes a user turn in a text session', { tags: ['R30'] }, async () => {
    const { subagent } = counting(['10 of 30']);
    const { start, type, said } = textTalk({
      promptStyle: 'turn',
      speakProgress: 'all',
      subagents: { report: subagent },
    });
    await start();
    await type('use report');
    expect(said().at(-1)).toMatch(
      /^Told: \[Subagent task sub_1 reports\]: "10 of 30" \[data \S+\]$/,
    );
  });

  test('refuses an invalid option at construction', () =>
    expect(
      () =>
        new TextSession({
          model: castOf({}),
          agents: [agentOf({})],
          subagentConfigs: configsOf({}),
          speakProgress: 'loud' as never,
        }),
    ).toThrow(/`speakProgress`.*"off"\|"milestones"\|"all", got "loud"/));
});

describe('consolidation in a voice session', { tags: ['R34'] }, () => {
  const found = (name: string) => ({ script: () => say(`${name} is found`) });

  test('stays off by default, so that results arrive one by one, each in its own pause', async () => {
    const { start, use, pause, asked, speak } = voiceTalk({
      subagents: { flight: found('flight'), hotel: found('hotel') },
    });
    await start();
    await use('flight', 'hotel');
    await pause();
    expect(asked()).toContain('flight is found');
    expect(asked()).not.toContain('hotel is found');
    await speak('A flight.');
    await pause();
    expect(asked()).toContain('hotel is found');
  });

  test('P4: delivers all results together when enabled, and repeats all of them after a barge-in', async () => {
    const { start, use, pause, asked, speak, play, model, state, environment } = voiceTalk({
      consolidation: 'batch',
      subagents: { flight: found('flight'), hotel: found('hotel') },
    });
    await start();
    await use('flight', 'hotel');
    await pause();
    expect(asked()).toMatch(/flight is found.*hotel is found/s);
    const item = model().speak('I found a flight and a hotel.', 4000);
    await play(item, 1000);
    expect(state().deliveries.map(({ state: now }) => now)).toEqual(['playing', 'playing']);
    model().speechStarted('barge');
    await play(item, 1100);
    model().speechEnded('barge', 'one moment');
    await environment.settle();
    expect(state().deliveries.map(({ state: now }) => now)).toEqual(['pending', 'pending']);
    await speak('Yes?');
    await pause();
    expect(asked()).toMatch(/say it again.*flight is found.*hotel is found/s);
    await speak('A flight and a hotel are found.');
    expect(state().deliveries.map(({ state: now, grade }) => [now, grade])).toEqual([
      ['delivered', 'played'],
      ['delivered', 'played'],
    ]);
    await pause();
    expect(asked()).toBeNull();
  });
});
