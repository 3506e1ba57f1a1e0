// A voice model that only reports that an action is needed. The session interprets this report from the conversation
// and continues as on any other wire.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../../src/index.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import {
  readNotes,
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import { DELEGATES, FakeTransport } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const report = { script: () => say('Sales are up.') };
const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];
const ride = {
  script: steps(calls(['ask_user', { question: 'Economy or Premium?', options }]), ({ results }) =>
    say(`Got ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true },
};

async function talkWith(lead: Script, talkOptions: VoiceTalkOptions = {}) {
  const prompts: ScriptedPrompt[] = [];
  const transport = new FakeTransport(DELEGATES);
  const talk = voiceTalk({
    ...talkOptions,
    transport,
    delegationModel: scriptedModel({
      scripts: [
        {
          when: '',
          script: (prompt) => {
            prompts.push(prompt);
            return lead(prompt);
          },
        },
      ],
    }),
  });
  await talk.start();
  return {
    ...talk,
    prompts,
    delegate: async (delegationId = 'd1') => {
      talk.model().events.next({ type: 'delegation.created', delegationId });
      await talk.environment.settle();
    },
    meant: () => [...talk.model().of('delegation.accept'), ...talk.model().of('delegation.answer')],
  };
}

const callsReport: Script = () => calls(['report', { days: 7 }]);

describe('delegations', () => {
  test('DELEGATIONS-4: become session calls, as if the voice model had made them', async () => {
    const talk = await talkWith(callsReport, { subagents: { report } });
    const { say: utter, delegate, meant, model, prompts, pause, speak, play, state } = talk;
    await utter('how are sales this week?');
    await delegate();
    const [accepted] = model().of('delegation.accept');
    const [callId = ''] = accepted?.callIds ?? [];
    expect(meant()).toEqual([{ type: 'delegation.accept', delegationId: 'd1', callIds: [callId] }]);
    expect(prompts).toHaveLength(1);
    expect(JSON.stringify(prompts[0]?.prompt)).toContain('how are sales this week?');
    // The acknowledgement answers the call once the model knows which call was meant.
    const types = model().commands.map(({ type }) => type);
    expect(types).toEqual(['delegation.accept', 'tool.answer']);
    expect(model().of('tool.answer')).toMatchObject([
      { callId, output: expect.stringContaining('On it.') },
    ]);
    expect(state().subagents).toHaveLength(1);
    await play(model().speakByItself('I am looking.'));
    await pause();
    await speak('Sales are up.');
    expect(state().deliveries[0]).toMatchObject({ state: 'delivered', label: 'report' });
  });

  test("reach the delegation model, which reads the voice model's notes as user messages", async () => {
    const talk = await talkWith(callsReport, { subagents: { report } });
    const { say: utter, delegate, meant, model, prompts, pause, speak, session, errors } = talk;
    session.notifyBackground('The shop has closed.');
    await pause();
    await speak('The shop has closed.');
    const [told] = model().of('message.add');
    expect(told).toMatchObject({ role: 'system', text: expect.stringMatching(/^\[note /) });
    await utter('how are sales this week?');
    await delegate();
    expect(errors).toEqual([]);
    expect(meant()).toMatchObject([{ type: 'delegation.accept' }]);
    const [instructions, ...others] = prompts[0]?.prompt ?? [];
    expect(instructions?.role).toBe('system');
    expect(others.map(({ role }) => role)).not.toContain('system');
    // The delegation reads the same note with the same marker.
    const texts = others.flatMap(({ role, content }) =>
      role === 'user' ? content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
    );
    expect(readNotes(texts.join('\n'))).toContainEqual({
      ...readNotes(
        model()
          .of('message.add')
          .map(({ text }) => text)
          .join('\n'),
      )[0],
    });
  });

  test('return an answer as text if no tool is needed', async () => {
    const {
      say: utter,
      delegate,
      meant,
    } = await talkWith(() => say('Today is Monday.'), {
      subagents: { report },
    });
    await utter('what day is it?');
    await delegate();
    expect(meant()).toEqual([
      { type: 'delegation.answer', delegationId: 'd1', text: 'Today is Monday.' },
    ]);
  });

  test("wait for the user's transcript; DELEGATIONS-3: continue with the known part after a timeout", async () => {
    const { model, environment, delegate, meant, prompts } = await talkWith(callsReport, {
      subagents: { report },
    });
    model().speechStarted('u1');
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'the report of',
      final: false,
    });
    await delegate();
    await environment.advance(4900);
    expect(meant()).toEqual([]);
    await environment.advance(200);
    expect(meant()).toHaveLength(1);
    expect(JSON.stringify(prompts[0]?.prompt)).toContain('the report of');
    model().speechEnded('u1', 'the report of last week');
    await delegate('d2');
    expect(JSON.stringify(prompts[1]?.prompt)).toContain('the report of last week');
  });

  test('DELEGATIONS-1: return a single answer even if they are announced again', async () => {
    const {
      say: utter,
      delegate,
      meant,
      state,
    } = await talkWith(callsReport, {
      subagents: { report },
    });
    await utter('the report');
    await delegate();
    await delegate();
    expect(meant()).toHaveLength(1);
    expect(state().subagents).toHaveLength(1);
  });

  test('DELEGATIONS-5: start a single task for the same utterance', async () => {
    const talk = await talkWith(callsReport, { subagents: { report } });
    const { say: utter, delegate, meant, model, prompts, state, environment } = talk;
    model().speechStarted('words');
    await delegate('d1');
    await delegate('d2');
    model().speechEnded('words', 'how are sales this week, and what else is there?');
    await environment.settle();
    expect(prompts).toHaveLength(1);
    expect(meant()).toMatchObject([
      { delegationId: 'd2', callIds: [] },
      { delegationId: 'd1', callIds: [expect.any(String)] },
    ]);
    expect(state().subagents).toHaveLength(1);
    // Another utterance is another request, even if it has the same words.
    await utter('how are sales this week?');
    await delegate('d3');
    expect(prompts).toHaveLength(2);
  });

  test('DELEGATIONS-5: start a second task only for a newer utterance, not for the same one', async () => {
    let finish = (): void => {};
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let asked = 0;
    const slow: Script = async () => {
      asked += 1;
      if (asked === 1) await held;
      return calls(['report', { days: asked }]);
    };
    const talk = await talkWith(slow, { subagents: { report } });
    const { say: utter, delegate, meant, prompts, environment } = talk;
    await utter('how are sales this week?');
    await delegate('d1');
    await delegate('d2');
    expect(meant()).toMatchObject([{ delegationId: 'd2', callIds: [] }]);
    await utter('and the week before?');
    await delegate('d3');
    expect(prompts).toHaveLength(2);
    finish();
    await environment.settle();
    expect(meant().filter((one) => 'callIds' in one && one.callIds.length > 0)).toHaveLength(2);
  });

  test('DELEGATIONS-2: do not start a task for an utterance that answered a subagent', async () => {
    const talk = await talkWith(() => calls(['ride', {}]), { subagents: { ride } });
    const { say: utter, delegate, meant, pause, speak, play, model, question, environment } = talk;
    await utter('a ride please');
    await delegate();
    await play(model().speakByItself('On it.'));
    await pause();
    await speak('Economy or Premium?');
    await environment.advance(100);
    await utter('premium');
    expect(question()?.state).toBe('answered');
    await delegate('d2');
    expect(meant().at(-1)).toEqual({
      type: 'delegation.accept',
      delegationId: 'd2',
      callIds: [],
    });
    expect(talk.state().subagents).toHaveLength(1);
  });

  test('USER-WORDS-7: settle the open question to which the utterance refers', async () => {
    const words = 'the cheaper one';
    const talk = await talkWith(
      ({ user, toolNames, prompt }) => {
        const isAbout = JSON.stringify(prompt).includes(words);
        if (!isAbout || !toolNames.includes('settle_question')) return calls(['ride', {}]);
        expect(user).toContain('Do now what');
        return calls(['settle_question', { action: 'answer', optionId: 'economy', quote: words }]);
      },
      { subagents: { ride } },
    );
    const { say: utter, delegate, pause, speak, play, model, question, environment } = talk;
    await utter('a ride please');
    await delegate();
    await play(model().speakByItself('On it.'));
    await pause();
    await speak('Economy or Premium?');
    await environment.advance(100);
    await utter(words);
    await delegate('d2');
    expect(question()).toMatchObject({ state: 'answered', answer: 'Economy' });
  });

  test('return an answer and report an error when they fail', async () => {
    const {
      say: utter,
      delegate,
      meant,
      errors,
    } = await talkWith(() => ({ error: new Error('overloaded') }), { subagents: { report } });
    await utter('the report');
    await delegate();
    expect(meant()).toMatchObject([{ type: 'delegation.answer', delegationId: 'd1' }]);
    expect(errors).toMatchObject([{ where: 'delegation' }]);
  });

  test('DELEGATIONS-3: return an answer and report an error when they time out', async () => {
    const {
      say: utter,
      delegate,
      meant,
      errors,
      environment,
    } = await talkWith(() => new Promise(() => {}) as never, { subagents: { report } });
    await utter('the report');
    await delegate();
    await environment.advance(30_000);
    expect(meant()).toMatchObject([{ type: 'delegation.answer' }]);
    expect(errors).toMatchObject([{ error: { code: 'DELEGATION_TIMEOUT' } }]);
  });

  test('DELEGATIONS-1: end with their connection and cause a reply to be requested on the next one', async () => {
    let answer: (words: ReturnType<typeof say>) => void = () => {};
    const talk = await talkWith(
      () => new Promise((resolve) => (answer = resolve as never)) as never,
      { subagents: { report } },
    );
    const { say: utter, delegate, model, environment, transport, asked, errors } = talk;
    await utter('the report');
    await delegate();
    model().drop();
    answer(say('Too late.'));
    await environment.advance(1000);
    expect(asked()).toBe('reply');
    for (const connection of transport.connections)
      expect(connection.of('delegation.answer')).toEqual([]);
    expect(errors).toEqual([]);
    // The next connection numbers its delegations from the start.
    await talk.speak('One moment.');
    await utter('the report, please');
    await delegate();
    answer(say('Here it is.'));
    await environment.settle();
    expect(model().of('delegation.answer')).toMatchObject([{ text: 'Here it is.' }]);
    await talk.close();
    expect(environment.pendingTimers).toBe(0);
  });

  test('end with the session', async () => {
    const {
      say: utter,
      delegate,
      meant,
      close,
      environment,
      errors,
    } = await talkWith(() => new Promise(() => {}) as never, { subagents: { report } });
    await utter('the report');
    await delegate();
    await close();
    expect(meant()).toEqual([]);
    expect(errors).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('a session without a delegation model', () => {
  const transport = () => new FakeTransport(DELEGATES);
  const toolWith = (parameters: z.ZodType, name = 'work'): ToolDefinition =>
    defineTool({ name, description: 'Does it', parameters, execute: (args) => args });

  function sessionWith(tools: readonly ToolDefinition[], wire = transport()) {
    const environment = simulatedEnvironment();
    const session = new VoiceSession({
      environment,
      transport: wire,
      agents: [{ name: 'lead', instructions: 'Help', tools }],
    });
    return { session, environment, wire };
  }

  test("passes the user's utterance to the only tool", async () => {
    const task = toolWith(z.object({ task: z.string(), note: z.string().optional() }));
    const { session, environment, wire } = sessionWith([task]);
    session.attach();
    await session.start();
    wire.current.utterance('book a table for two');
    await environment.settle();
    wire.current.events.next({ type: 'delegation.created', delegationId: 'd1' });
    await environment.settle();
    const [accepted] = wire.current.of('delegation.accept');
    expect(wire.current.of('tool.answer')).toEqual([
      {
        type: 'tool.answer',
        callId: accepted?.callIds[0],
        output: JSON.stringify({ task: 'book a table for two' }),
        // The wire has no items for calls, so their answers are notes.
        told: expect.stringMatching(/^\[note /),
      },
    ]);
    const [answer] = wire.current.of('tool.answer');
    expect(readNotes(answer?.told ?? '')).toMatchObject([
      {
        says: 'The result of a call that you made before.',
        quotes: {
          callId: accepted?.callIds[0],
          tool: 'work',
          output: JSON.stringify({ task: 'book a table for two' }),
        },
      },
    ]);
    const closed = session.close();
    await environment.advance(10_000);
    await closed;
  });

  test.each([
    ['two tools', [toolWith(z.object({ task: z.string() }), 'a'), toolWith(z.object({}), 'b')]],
    ['a number', [toolWith(z.object({ days: z.number() }))]],
    ['nothing that is required', [toolWith(z.object({ task: z.string().optional() }))]],
    ['a choice', [toolWith(z.object({ color: z.enum(['red', 'blue']) }))]],
    ['two strings', [toolWith(z.object({ from: z.string(), to: z.string() }))]],
  ])('an agent with %s cannot work, and the error says what is missing', (_, tools) => {
    expect(() => sessionWith(tools)).toThrow(
      expect.objectContaining({
        code: 'NO_DELEGATION_MODEL',
        message: expect.stringMatching(/delegationModel.*"lead".*one required string/),
      }),
    );
  });

  test('allows an agent without tools, because it has nothing to delegate to', () => {
    expect(() => sessionWith([])).not.toThrow();
  });

  test('accepts a transport that names the tools itself', () => {
    const tools = [toolWith(z.object({}), 'a'), toolWith(z.object({}), 'b')];
    expect(() => sessionWith(tools, new FakeTransport())).not.toThrow();
  });
});
