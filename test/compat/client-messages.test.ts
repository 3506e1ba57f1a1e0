// The JSON messages to clients, and the messages that clients may send.

import { Subject } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  clientMessages,
  receiveClientMessage,
  type ClientMessage,
} from '../../src/compat/index.ts';
import { defineTool, type SessionEvent } from '../../src/index.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const options = [
  { id: 'eco', label: 'Economy' },
  { id: 'pre', label: 'Premium' },
];

const asks = {
  script: steps(calls(['ask_user', { question: 'Which?', options }]), say('Booked.')),
  config: { interactive: true },
};

function clientTalk(more: TalkOptions = {}) {
  const talk = textTalk(more);
  const messages: ClientMessage[] = [];
  clientMessages(talk.session).subscribe((message) => messages.push(message));
  return {
    ...talk,
    messages,
    of: <T extends ClientMessage['type']>(type: T) =>
      messages.filter(
        (message): message is Extract<ClientMessage, { type: T }> => message.type === type,
      ),
    send: (message: unknown) => receiveClientMessage(talk.session, message),
  };
}

describe('a question', { tags: ['B46', 'B90'] }, () => {
  test(
    'reaches the client once with its buttons and is answered by a button press',
    { tags: ['B46'] },
    async () => {
      const { start, type, of, send, state, environment, question } = clientTalk({
        subagents: { ride: asks },
      });
      await start();
      await type('use ride');
      const requestId = question()?.requestId ?? '';
      const [view] = state().subagents;
      expect(of('subagent.question')).toEqual([
        {
          type: 'subagent.question',
          requestId,
          subagentId: view?.id,
          subagentName: 'ride',
          toolCallId: view?.callId,
          text: 'Which?',
        },
      ]);
      expect(of('ui.payload')).toEqual([
        { type: 'ui.payload', payload: { type: 'choice', requestId, data: { options } } },
      ]);
      const click = { type: 'ui.response', requestId, selectedOptionId: 'pre' };
      // The click as the text of a WebSocket frame.
      expect(await send(JSON.stringify(click))).toEqual({ accepted: true });
      await environment.settle();
      expect(question()?.answer).toBe('Premium');
      expect(of('subagent.question.closed')).toEqual([
        { type: 'subagent.question.closed', requestId, state: 'answered', answer: 'Premium' },
      ]);
      // [BW18] Repeating the click does not answer any other question.
      expect(await send(click)).toEqual({ accepted: false, reason: 'over' });
    },
  );

  test('reaches the client when it leaves the queue', { tags: ['B52'] }, async () => {
    const { start, type, of, send, environment } = clientTalk({
      subagents: { ride: asks, table: asks },
    });
    await start();
    await type('use ride and table');
    expect(of('subagent.question').map(({ subagentName }) => subagentName)).toEqual(['ride']);
    await send({
      type: 'ui.response',
      requestId: of('subagent.question')[0]?.requestId,
      selectedOptionId: 'eco',
    });
    await environment.settle();
    expect(of('subagent.question').map(({ subagentName }) => subagentName)).toEqual([
      'ride',
      'table',
    ]);
  });

  test(
    'reaches the client as a confirmation if it is an approval, and accepts form fields as text',
    { tags: ['B47'] },
    async () => {
      const { start, type, of, send, environment, question } = clientTalk({
        subagents: {
          pay: {
            script: steps(calls(['charge']), say('Paid.')),
            config: {
              interactive: true,
              tools: { charge: simpleTool(() => 'ok', { needsApproval: true }) },
            },
          },
          form: {
            script: steps(calls(['ask_user', { question: 'Your address?' }]), say('Thanks.')),
            config: { interactive: true },
          },
        },
      });
      await start();
      await type('use pay');
      expect(of('ui.payload')[0]?.payload).toMatchObject({ type: 'confirmation' });
      expect(
        await send({ type: 'ui.response', requestId: question()?.requestId, approved: true }),
      ).toEqual({ accepted: true });
      await environment.settle();
      await type('use form');
      const requestId = question()?.requestId;
      const formData = { street: 'Ring 1', floor: 3 };
      expect(await send({ type: 'ui.response', requestId, formData })).toEqual({ accepted: true });
      await environment.settle();
      expect(question()?.answer).toBe('{"street":"Ring 1","floor":3}');
    },
  );
});

describe('the subagents', { tags: ['B89', 'B90'] }, () => {
  test('report progress when it changes, and the end of each subagent once with its call', async () => {
    const go: (() => void)[] = [];
    const { start, type, of, environment, state } = clientTalk({
      subagents: {
        report: {
          script: steps(calls(['work']), say('Sales are up.')),
          config: {
            tools: {
              work: simpleTool(async function* work() {
                for (const progress of ['half', 'half', 'done']) {
                  yield { progress };
                  await new Promise<void>((resolve) => {
                    go.push(resolve);
                  });
                }
                yield 'worked';
              }),
            },
          },
        },
      },
    });
    await start();
    await type('use report');
    for (let round = 0; round < 3; round += 1) {
      go.shift()?.();
      await environment.settle();
    }
    expect(of('subagent.progress').map(({ text }) => text)).toEqual(['half', 'done']);
    const [view] = state().subagents;
    expect(of('subagent.completion')).toEqual([
      {
        type: 'subagent.completion',
        subagentId: view?.id,
        toolCallId: view?.callId,
        status: 'success',
        summaryText: 'Sales are up.',
        artifacts: [],
        metadata: {
          configName: 'report',
          durationMs: expect.any(Number),
          stepCount: 2,
          lifetime: 'ephemeral',
        },
      },
    ]);
  });

  test(
    'report the reason for each failure once, but do not report a cancellation as a failure',
    { tags: ['B87', 'BW24'] },
    async () => {
      const { start, type, of, environment, state, send } = clientTalk({
        subagents: { fails: { script: () => ({ error: new Error('it broke') }) }, ride: asks },
      });
      await start();
      await type('use ride');
      const id = state().subagents[0]?.id;
      expect(await send({ type: 'subagent.cancel', subagentId: id })).toEqual({ accepted: true });
      await environment.settle();
      expect(await send({ type: 'subagent.cancel', subagentId: id })).toEqual({
        accepted: false,
        reason: 'unknown',
      });
      await type('use fails');
      await environment.advance(120_000);
      expect(
        of('subagent.completion').map(({ status, summaryText }) => [status, summaryText]),
      ).toEqual([
        ['cancelled', expect.any(String)],
        ['failure', expect.stringContaining('it broke')],
      ]);
      expect(of('subagent.question.closed')[0]?.state).toBe('withdrawn');
    },
  );

  test(
    'state which subagent a call runs, which one asked a question and how many are active',
    { tags: ['B36', 'R20'] },
    async () => {
      const { start, type, session, events, question } = clientTalk({ subagents: { ride: asks } });
      await start();
      expect(session.subagents.activeCount).toBe(0);
      await type('use ride');
      const delegated = events.find((event) => event.type === 'subagent.delegated');
      expect(delegated).toMatchObject({ agentName: 'lead', subagentName: 'ride' });
      const callId = delegated?.type === 'subagent.delegated' ? delegated.callId : '';
      expect(session.subagents.ofCall(callId)?.name).toBe('ride');
      expect(session.subagents.ofQuestion(question()?.requestId ?? '')?.callId).toBe(callId);
      expect(session.subagents.ofCall('other')).toBeUndefined();
      expect(session.subagents.ofQuestion('other')).toBeUndefined();
      expect(session.subagents.activeCount).toBe(1);
      // [B23] The call is pending until its result arrives, and [B22] it can be cancelled.
      expect(session.pendingToolCalls).toEqual([callId]);
      expect(session.cancelToolCall(callId)).toBe(true);
      expect(session.cancelToolCall('other')).toBe(false);
    },
  );
});

describe('tool calls', { tags: ['B23'] }, () => {
  test("pass an error's cause and each call's result to their hooks", async () => {
    const cause = new Error('no line');
    const thrown: unknown[] = [];
    const results: string[] = [];
    const bad = defineTool({
      name: 'bad',
      description: 'Fails',
      parameters: z.object({}),
      execute: () => {
        throw cause;
      },
    });
    const { start, type } = clientTalk({
      tools: [bad],
      subagents: { ride: asks },
      hooks: {
        onToolError: ({ error }) => thrown.push(error),
        onToolResult: ({ name, status }) => results.push(`${name} ${status}`),
      },
    });
    await start();
    await type('use bad and missing and ride');
    expect(thrown).toEqual([cause]);
    expect(results.toSorted()).toEqual(['bad failed', 'missing invalid', 'ride pending']);
  });
});

describe('the conversation', { tags: ['B62', 'B63'] }, () => {
  test(
    'sends partial and final transcripts without marking any as corrected',
    { tags: ['B63'] },
    async () => {
      const talk = voiceTalk();
      const messages: ClientMessage[] = [];
      clientMessages(talk.session).subscribe((message) => messages.push(message));
      await talk.start();
      talk.model().speechStarted('u1');
      const heard = (text: string, final: boolean) =>
        talk.model().events.next({ type: 'utterance.transcribed', utteranceId: 'u1', text, final });
      heard('hel', false);
      talk.model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
      heard('hello', true);
      await talk.environment.settle();
      const said = messages.flatMap((message) =>
        message.type === 'transcript' ? [[message.text, message.partial, message.corrected]] : [],
      );
      expect(said).toEqual([
        ['hel', true, false],
        ['hello', false, false],
      ]);
    },
  );

  test(
    'reports each new lead agent, and the end of each turn before its hooks run',
    { tags: ['B62'] },
    async () => {
      const order: string[] = [];
      const { start, type, session, events, messages } = clientTalk({
        others: [{ name: 'billing' }],
        agent: { onTurnCompleted: () => order.push('onTurnCompleted') },
        hooks: { onTurnEnd: ({ turn }) => order.push(`onTurnEnd ${turn}`) },
      });
      session.events.subscribe(({ type: kind }) => {
        if (kind === 'turn.ended') order.push(kind);
      });
      await start();
      await type('hello');
      expect(order).toEqual(['turn.ended', 'onTurnEnd 1', 'onTurnCompleted']);
      await session.transfer('billing');
      await type('hello again');
      expect(events.filter((event) => event.type === 'turn.ended')).toEqual([
        { type: 'turn.ended', turn: 1, agentName: 'lead' },
        { type: 'turn.ended', turn: 2, agentName: 'billing' },
      ]);
      expect(messages.filter((message) => message.type === 'agent.changed')).toEqual([
        { type: 'agent.changed', agentName: 'lead', from: null },
        { type: 'agent.changed', agentName: 'billing', from: 'lead' },
      ]);
      expect(await session.transfer('nobody')).toMatchObject({ code: 'UNKNOWN_AGENT' });
    },
  );

  test('passes on JSON from an agent or a tool', { tags: ['B7', 'B9'] }, async () => {
    const show = defineTool({
      name: 'show',
      description: 'Shows',
      parameters: z.object({}),
      execute: (_, { sendJsonToClient }) => sendJsonToClient({ chart: [1, 2] }),
    });
    const { start, type, of } = clientTalk({
      tools: [show],
      agent: { onEnter: (context) => context.sendJsonToClient('hi') },
    });
    await start();
    await type('use show');
    expect(of('json').map(({ data }) => data)).toEqual(['hi', { chart: [1, 2] }]);
  });
});

test(
  'marks a final transcript that replaces an earlier final transcript',
  { tags: ['B63'] },
  () => {
    const { session } = textTalk();
    const events = new Subject<SessionEvent>();
    const messages: ClientMessage[] = [];
    Object.defineProperty(session, 'events', { value: events });
    clientMessages(session).subscribe((message) => messages.push(message));
    const said = (text: string, more: { final: boolean; interrupted?: boolean }) =>
      events.next({
        type: 'transcript.changed',
        item: { id: 'u1', role: 'user', text, at: 0, ...more },
      });
    said('to Pairs', { final: false });
    said('to Pairs', { final: true });
    said('to Pairs', { final: true });
    said('to Paris', { final: true });
    said('to', { final: true, interrupted: true });
    expect(
      messages.flatMap((one) => (one.type === 'transcript' ? [[one.text, one.corrected]] : [])),
    ).toEqual([
      ['to Pairs', false],
      ['to Pairs', false],
      ['to Pairs', false],
      ['to Paris', true],
      ['to', false],
    ]);
  },
);

describe('messages of clients', { tags: ['B55', 'B63'] }, () => {
  test('carry typed text and report that a result was displayed or dismissed', async () => {
    const { start, send, said, environment, session, state } = clientTalk();
    await start();
    expect(await send({ type: 'text_input', text: ' hello ' })).toEqual({ accepted: true });
    await environment.settle();
    expect(said()).toEqual(['You said: hello']);
    const deliveryId = session.notifyBackground('News');
    expect(await send({ type: 'delivery.dismissed', deliveryId })).toEqual({ accepted: true });
    await environment.settle();
    expect(state().deliveries.at(-1)).toMatchObject({ state: 'dismissed' });
  });

  test.each([
    ['no JSON', '{"type":'],
    ['nothing', null],
    ['an unknown type', { type: 'ui.click' }],
    ['no answer', { type: 'ui.response', requestId: 'r' }],
    ['two answers', { type: 'ui.response', requestId: 'r', text: 'x', selectedOptionId: 'y' }],
    ['no words', { type: 'text_input', text: '  ' }],
    ['too many words', { type: 'text_input', text: 'x'.repeat(20_001) }],
    [
      'a form that is too large',
      { type: 'ui.response', requestId: 'r', formData: { a: 'x'.repeat(20_000) } },
    ],
    [
      'a form that nobody could look at',
      `{"type":"ui.response","requestId":"r","formData":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
    ],
  ])('%s is refused with what was expected, and reported', async (_, message) => {
    const { start, send, errors, state } = clientTalk();
    await start();
    expect(await send(message)).toMatchObject({ accepted: false, reason: 'invalid' });
    expect(errors.map(({ error }) => (error as { code?: string }).code)).toEqual([
      'INVALID_CLIENT_MESSAGE',
    ]);
    expect(state().connection).toBe('active');
  });

  test('fail before the start or if the question is unknown', async () => {
    const { start, send } = clientTalk();
    expect(await send({ type: 'text_input', text: 'hello' })).toMatchObject({
      accepted: false,
      reason: 'refused',
    });
    await start();
    expect(await send({ type: 'ui.response', requestId: 'r', text: 'x' })).toEqual({
      accepted: false,
      reason: 'unknown',
    });
  });
});

test('reach late subscribers', { tags: ['B91'] }, async () => {
  const ignored: string[] = [];
  const { start, session, environment } = clientTalk({
    hooks: { onIgnored: ({ actor, type }) => ignored.push(`${actor} ${type}`) },
  });
  await start();
  session.shown('dlv_9');
  await environment.settle();
  expect(ignored).toContainEqual(expect.stringContaining('delivery.shown'));
});
