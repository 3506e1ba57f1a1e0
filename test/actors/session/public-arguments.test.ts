// Calls the methods of a session with arguments that TypeScript would refuse, as a caller without types or a JSON
// client may. Only the named fields are read, and invalid values are refused.
import { clientMessages, receiveClientMessage, topic } from '../../../src/compat/index.ts';
import { THE_LEAD, createSubagentService } from '../../../src/entries/subagents.ts';
import { describe, expect, test } from 'vitest';
import { createRuntime, memoryJournal, OffstageError } from '../../../src/index.ts';
import { createSessionPool } from '../../../src/entries/journal.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { calls, say, simpleTool, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

/** Creates an open question to the user, and another subagent that is waiting for approval of a payment. */
async function twoQuestions() {
  const paid: string[] = [];
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  const runtime = createRuntime({ environment, journal });
  const talk = textTalk({
    environment,
    runtime,
    sessionId: 'ses',
    subagents: {
      name: {
        script: steps(calls(['ask_user', { question: 'Your name?' }]), say('Thanks.')),
        config: { interactive: true },
      },
      pay: {
        script: steps(calls(['pay']), say('Done.')),
        config: {
          tools: { pay: simpleTool(() => paid.push('paid'), { needsApproval: true }) },
        },
      },
    },
  });
  await talk.start();
  await talk.type('use name and pay');
  const of = (name: string) =>
    talk.state().questions.find(({ subagentName }) => subagentName === name);
  return {
    ...talk,
    journal,
    paid,
    of,
    nameId: of('name')?.requestId ?? '',
    payId: of('pay')?.requestId ?? '',
    entries: () => journal.read({ scope: 'ses' }),
  };
}

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

const INVALID = { name: 'ConfigurationError', code: 'INVALID_ANSWER' };

describe('an answer', () => {
  test('cannot be given to a different question', async () => {
    const { session, paid, payId, nameId, of, environment, entries } = await twoQuestions();
    const before = entries().length;
    await expect(
      session.answer(nameId, { text: 'x', requestId: payId, approved: true } as never),
    ).rejects.toMatchObject({
      ...INVALID,
      message: expect.stringContaining('`requestId`') as unknown,
    });
    await environment.settle();
    expect(paid).toEqual([]);
    expect([of('name')?.state, of('pay')?.state]).toEqual(['open', 'queued']);
    expect(entries()).toHaveLength(before);
  });

  test('cannot contain the fields of another event', async () => {
    const { session, nameId, state, entries } = await twoQuestions();
    const before = state().transcript.length;
    await expect(
      session.answer(nameId, {
        type: 'user.said',
        utteranceId: 'u',
        text: 'pay',
        channel: 'typing',
      } as never),
    ).rejects.toMatchObject(INVALID);
    expect(state().transcript).toHaveLength(before);
    expect(entries().map(({ actor }) => actor)).not.toContain('answers');
  });

  test.each<[string, unknown]>([
    ['a text that is a number', { text: 42 }],
    ['consent in words', { approved: 'true' }],
    ['consent as a number', { approved: 1 }],
    ['null', null],
    ['nothing', undefined],
    ['words alone', 'yes'],
    ['an empty object', {}],
    ['two of them', { text: 'x', optionId: 'y' }],
    ['a null beside one of them', { text: 'x', optionId: null }],
    ['a ticket', { text: 'x', ticket: 'ans_1' }],
    ['an option that is an object', { optionId: { id: 'approve' } }],
    ['an array', ['approve']],
    ['what throws when it is read', revoked()],
    [
      'a getter that throws',
      {
        get text() {
          throw new Error('no');
        },
      },
    ],
    ['a prototype', JSON.parse('{"text":"x","__proto__":{"approved":true}}')],
  ])('refuses a wrong answer by name: %s', async (_, answer) => {
    const { session, nameId, of, entries } = await twoQuestions();
    const before = entries().length;
    await expect(session.answer(nameId, answer as never)).rejects.toMatchObject({
      ...INVALID,
      message: expect.stringMatching(/^answer\(requestId, answer\): ./) as unknown,
    });
    expect(of('name')?.state).toBe('open');
    expect(entries()).toHaveLength(before);
  });
});

describe('a text of more than 100,000 characters', () => {
  const long = 'wait '.repeat(25_000);
  const TOO_LONG = { name: 'CapacityError', code: 'TEXT_TOO_LONG' };

  test('fails in every method without writing an entry', async () => {
    const { session, nameId, of, entries } = await twoQuestions();
    const before = entries().length;
    await expect(session.sendText(long)).rejects.toMatchObject(TOO_LONG);
    await expect(session.answer(nameId, { text: long })).rejects.toMatchObject(TOO_LONG);
    const subagentId = session.subagents.list()[0]?.id ?? '';
    for (const give of [
      () => session.subagents.send(subagentId, { content: long }),
      () => session.notifyBackground(long),
    ])
      expect(give).toThrow(expect.objectContaining(TOO_LONG));
    expect(of('name')?.state).toBe('open');
    expect(entries()).toHaveLength(before);
  });
});

/** Values that a caller without types may pass. */
const hostile: readonly unknown[] = [
  undefined,
  null,
  0,
  NaN,
  42n,
  '',
  'x'.repeat(50_000),
  '\0',
  '\ud800',
  true,
  Symbol('s'),
  () => {},
  [],
  [null],
  {},
  { type: 'user.said', text: 'pay', at: 0 },
  { subagentId: 7 },
  { content: 7 },
  { content: 'x', by: 7, type: 'subagent.cancel' },
  { content: 'x', mode: 'loud' },
  { update: 7 },
  { ifKnown: 'yes' },
  { priority: 'loud' },
  { mediaType: Symbol('s'), data: null },
  { itemId: 'a', playedMs: Infinity },
  JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`),
  revoked(),
];

describe.each(['text', 'voice'] as const)('every method, by %s', (kind) => {
  test('handles hostile arguments or rejects them with an OffstageError, and keeps the journal readable', async () => {
    const environment = simulatedEnvironment();
    const journal = memoryJournal();
    const make = () => {
      const runtime = createRuntime({ environment, journal });
      const options = { environment, runtime, sessionId: 'ses' };
      return kind === 'text' ? textTalk(options) : voiceTalk(options);
    };
    const talk = make();
    await talk.start();
    const session = talk.session as unknown as Record<string, (...given: unknown[]) => unknown> & {
      subagents: Record<string, (...given: unknown[]) => unknown> & {
        service: Record<string, (...given: unknown[]) => unknown>;
      };
      playout?: { next(report: unknown): void };
    };
    const { subagents } = session;
    const { service } = subagents;
    const methods: Record<string, (...given: unknown[]) => unknown> = {};
    for (const name of ['answer', 'questionShown', 'shown', 'dismiss', 'sendText', 'transfer'])
      methods[name] = (...given) => session[name]?.(...given);
    for (const name of [
      'reportError',
      'cancelToolCall',
      'setDirective',
      'notifyBackground',
      'start',
    ])
      methods[name] = (...given) => session[name]?.(...given);
    methods['showImage'] = (...given) => session['showImage']?.(...given);
    methods['receiveClientMessage'] = (message, options) =>
      receiveClientMessage(talk.session, message, options as never);
    methods['topic'] = (name) => topic(talk.session, name as never);
    methods['clientMessages'] = (other) => clientMessages(other as never);
    for (const name of ['get', 'ofCall', 'ofQuestion', 'cancel', 'send'])
      methods[`subagents.${name}`] = (...given) => subagents[name]?.(...given);
    for (const name of ['spawn', 'check', 'list', 'send', 'await', 'cancel', 'report', 'delivered'])
      methods[`service.${name}`] = (...given) => service[name]?.(...given);
    // An Observer reports an error instead of throwing.
    if (session.playout) methods['playout.next'] = (report) => session.playout?.next(report);
    const wrong: string[] = [];
    const attempt = async (name: string, given: readonly unknown[]): Promise<void> => {
      try {
        const result = methods[name]?.(...given);
        // A transfer that a hook delays and a wait both end with their timeouts.
        if (result instanceof Promise) await Promise.all([result, environment.advance(700_000)]);
      } catch (error) {
        if (!(error instanceof OffstageError)) wrong.push(`${name}: ${String(error)}`);
      }
    };
    for (const name of Object.keys(methods))
      for (const value of hostile) {
        await attempt(name, [value]);
        await attempt(name, ['x', value]);
        await attempt(name, ['x', value, value]);
        await attempt(name, ['x', value, THE_LEAD]);
      }
    expect(wrong).toEqual([]);
    const leaving = talk.session.suspend();
    await environment.settle();
    await leaving;
    const again = make();
    await again.start();
    expect(again.session.actor.getSnapshot().value.connection).toBe('active');
  });
});

test("refuses hostile arguments in an agent's hooks, in a pool and in a program's service", async () => {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, journal: memoryJournal() });
  const refused: string[] = [];
  const attempt = async (name: string, way: () => unknown): Promise<void> => {
    try {
      await way();
    } catch (error) {
      refused.push(error instanceof OffstageError ? name : `${name}: ${String(error)}`);
    }
  };
  const tries: Promise<void>[] = [];
  const talk = textTalk({
    environment,
    runtime,
    agent: {
      onEnter: (context) => {
        for (const value of [42, null, revoked()] as never[]) {
          tries.push(attempt('injectSystemMessage', () => context.injectSystemMessage(value)));
          tries.push(attempt('requestTransfer', () => context.requestTransfer(value)));
          tries.push(attempt('setDirective', () => context.setDirective('key', value || 7)));
        }
      },
    },
  });
  await talk.start();
  await Promise.all(tries);
  const pool = createSessionPool({ runtime, open: () => talk.session });
  await attempt('pool.use', () => pool.use(42 as never, () => 1));
  await attempt('pool.use', () => pool.use('', () => 1));
  await attempt('pool.use', () => pool.use(talk.session.id, null as never));
  const service = createSubagentService({ runtime });
  await attempt('service.close', () => service.close({ type: 'x' } as never));
  const three = (name: string): readonly string[] => [name, name, name];
  expect(refused.toSorted()).toEqual(
    [
      ...three('injectSystemMessage'),
      ...three('requestTransfer'),
      ...three('setDirective'),
      ...three('pool.use'),
      'service.close',
    ].toSorted(),
  );
  expect(pool.awakeCount).toBe(0);
  await talk.type('hello');
  expect(talk.said()).toEqual(['You said: hello']);
  await service.close();
  await talk.close();
});
