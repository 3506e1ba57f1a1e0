// A scenario with real machines, watched through the receiver of `@statelyai/inspect`.

import { afterEach, describe, expect, test } from 'vitest';
import { createInspector, type Inspector } from '../../../src/adapters/inspect/index.ts';
import type { InspectorOptions } from '../../../src/adapters/inspect/inspector.ts';
import { questionMachine, subagentMachine } from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { receive } from './support/receiver.ts';
import {
  SECRET,
  stamped,
  startInteraction,
  startQuestion,
  startSession,
  startSubagent,
} from './support/ride.ts';

let inspector: Inspector | undefined;

afterEach(async () => {
  await inspector?.stop();
  inspector = undefined;
});

/** Creates an inspector with a relay and a connected viewer. */
async function watched(options: Partial<InspectorOptions> = {}) {
  // Tasks that are due at once need no time to pass.
  const environment = simulatedEnvironment();
  inspector = await createInspector({ environment, flushMs: 0, ...options });
  const { inspect, streamUrl } = inspector;
  const here = startSession(inspect, 'here');
  const view = receive(streamUrl!);
  await view.until(({ ids }) => ids.includes('here'));
  here.stop();
  return { environment, inspect, view, inspector };
}

/** A subagent asks a question, which waits, is put to the user, and is answered with a sentence. */
function ride(inspect: Inspector['inspect']): void {
  const session = startSession(inspect);
  const interaction = startInteraction(inspect);
  const subagent = startSubagent(inspect);
  session.send(stamped({ type: 'session.start' as const }));
  session.send(stamped({ type: 'transport.ready' as const }));
  subagent.send(stamped({ type: 'subagent.prepared' as const }));
  subagent.send(stamped({ type: 'slot.granted' as const }));
  subagent.send(
    stamped({
      type: 'model.responded' as const,
      step: 1,
      calls: [{ callId: 'call_1', kind: 'question' as const }],
      messages: [{ role: 'assistant', content: [{ type: 'text', text: SECRET }] }],
    }),
  );
  const question = startQuestion(inspect, 'q1');
  interaction.send({ type: 'interaction.request', id: 'q1' });
  question.send(stamped({ type: 'question.granted' as const, epoch: 1 }));
  question.send(stamped({ type: 'question.shown' as const, startsClock: true }));
  question.send(
    stamped({
      type: 'question.answer' as const,
      channel: 'typing' as const,
      utteranceStartedAt: null,
      decisive: true,
      text: SECRET,
    }),
  );
  interaction.send({ type: 'interaction.release', id: 'q1', epoch: 1 });
  const answered = { type: 'question.answered' as const, requestId: 'sub_1.q1', answer: SECRET };
  subagent.send(stamped(answered));
  subagent.send(stamped({ type: 'slot.granted' as const }));
  subagent.send(
    stamped({
      type: 'model.failed' as const,
      step: 2,
      error: { code: 'NO_SUCH_MODEL', message: SECRET, retryable: false },
    }),
  );
  session.send(stamped({ type: 'session.close' as const }));
}

const isOver = ({
  snapshots,
}: {
  snapshots: (id: string) => readonly { event: { type: string } }[];
}) => snapshots('ses_1').some(({ event }) => event.type === 'session.close');

describe('an inspected scenario', () => {
  test('shows its actors as one tree, each with its definition', async () => {
    const { inspect, view } = await watched();
    ride(inspect);
    await view.until(isOver);
    const tree = view.ids
      .filter((id) => id.startsWith('ses_1'))
      .map((id) => [id, view.actor(id)?.parentId, view.actor(id)?.name]);
    expect(tree).toEqual(
      expect.arrayContaining([
        ['ses_1', undefined, 'ses_1'],
        ['ses_1/interaction', 'ses_1', 'interaction'],
        ['ses_1/sub_1', 'ses_1', 'sub_1'],
        ['ses_1/question:q1', 'ses_1', 'question:q1'],
      ]),
    );
    for (const { type, sessionId, rootId, _version, createdAt } of view.messages) {
      if (!sessionId.startsWith('ses_1')) continue;
      expect([rootId, _version, Number(createdAt) > 0, typeof type]).toEqual([
        'ses_1',
        '0.7.2',
        true,
        'string',
      ]);
    }
    // The same states, events and targets as in the machine itself.
    const definition = JSON.parse(view.actor('ses_1/question:q1')!.definition) as {
      states: Record<string, { on: object; invoke: object }>;
    };
    expect(Object.keys(definition.states)).toEqual(Object.keys(questionMachine.config.states!));
    expect(definition.states['open']).toMatchObject({
      on: {
        'question.answer': { guard: { type: 'mayAnswerOpen' }, target: 'answered' },
        'client.detached': 'parked',
      },
      exit: [{ type: 'stopClock' }, { type: 'stopActivity' }],
    });
    const subagent = JSON.parse(view.actor('ses_1/sub_1')!.definition) as { states: object };
    expect(Object.keys(subagent.states)).toEqual(Object.keys(subagentMachine.config.states!));
  });

  test('shows each actor with its events and states, in order', async () => {
    const { inspect, view } = await watched();
    ride(inspect);
    await view.until(isOver);
    const states = (id: string) => view.snapshots(id).map(({ snapshot }) => snapshot.value);
    expect(view.events('ses_1/sub_1').map(({ event }) => event.type)).toEqual([
      'xstate.init',
      'subagent.prepared',
      'slot.granted',
      'model.responded',
      'question.answered',
      'slot.granted',
      'model.failed',
    ]);
    expect(states('ses_1/sub_1')).toEqual([
      'spawning',
      'ready',
      { running: 'thinking' },
      { waiting_for_input: 'asking' },
      'ready',
      { running: 'thinking' },
      'failed',
    ]);
    expect(view.snapshots('ses_1/sub_1').at(-1)?.snapshot).toMatchObject({
      status: 'done',
      output: { status: expect.any(String) },
    });
    expect(states('ses_1/interaction')).toEqual([
      'main_agent',
      'subagent_interaction',
      'main_agent',
    ]);
    // Each event comes before the state that it caused.
    const own = view.messages.filter(
      ({ sessionId, type }) => sessionId === 'ses_1/sub_1' && type !== '@xstate.actor',
    );
    for (const [index, message] of own.entries())
      expect(message.type).toBe(index % 2 === 0 ? '@xstate.event' : '@xstate.snapshot');
  });

  test('shows a single actor for a waiting question, even after it was stored and restored', async () => {
    const { inspect, view } = await watched();
    ride(inspect);
    await view.until(isOver);
    const id = 'ses_1/question:q1';
    expect(
      view.messages.filter(({ type, sessionId }) => type === '@xstate.actor' && sessionId === id),
    ).toHaveLength(1);
    expect(view.events(id).map(({ event }) => event.type)).toEqual([
      'xstate.init',
      'question.granted',
      'question.shown',
      'question.answer',
    ]);
    expect(view.snapshots(id).map(({ snapshot: { status, value } }) => [status, value])).toEqual([
      ['active', 'queued'],
      ['active', 'presenting'],
      ['active', 'open'],
      ['done', 'answered'],
    ]);
  });

  test('REDACT-1, REDACT-2: hides all text, but shows names, kinds and states', async () => {
    const { inspect, view } = await watched();
    ride(inspect);
    await view.until(isOver);
    const stream = JSON.stringify(view.messages);
    expect(stream).not.toContain('Elm Street');
    expect(stream).not.toContain('bank');
    expect(stream).toContain(`[redacted ${SECRET.length} chars]`);
    const answer = view
      .events('ses_1/question:q1')
      .find(({ event }) => event.type === 'question.answer');
    expect(answer?.event).toMatchObject({ channel: 'typing', decisive: true });
    const { context } = view.snapshots('ses_1/sub_1').at(-1)!.snapshot;
    expect(context).toMatchObject({
      id: 'sub_1',
      ending: { status: 'failed', error: { code: 'NO_SUCH_MODEL' } },
    });
    expect(
      view
        .snapshots('ses_1/interaction')
        .map(({ snapshot }) => (snapshot.context as { owner: unknown }).owner),
    ).toEqual([null, 'q1', null]);
  });

  test('shows everything without redaction', async () => {
    const { inspect, view } = await watched({ redact: false });
    ride(inspect);
    await view.until(isOver);
    expect(
      view.messages.filter((message) => JSON.stringify(message).includes(SECRET)).length,
    ).toBeGreaterThan(3);
  });
});

describe('a viewer that arrives late', () => {
  test('STREAM-2: receives every actor with its latest state, but does not receive the history', async () => {
    const { inspect, view, inspector: relay } = await watched();
    ride(inspect);
    await view.until(isOver);
    const late = receive(relay.streamUrl!);
    await late.until(({ snapshots }) => snapshots('ses_1/question:q1').length > 0);
    await late.until(({ actor }) => actor('ses_1/sub_1') !== undefined);
    expect(late.actor('ses_1/question:q1')).toMatchObject({
      parentId: 'ses_1',
      snapshot: { value: 'answered' },
    });
    expect(late.snapshots('ses_1/sub_1').map(({ snapshot }) => snapshot.value)).toEqual(['failed']);
    expect(late.messages.filter(({ type }) => type === '@xstate.event')).toEqual([]);
    // From then on, the viewer gets new events.
    const next = startInteraction(inspect, 'ses_2');
    next.send({ type: 'interaction.request', id: 'q9' });
    await late.until(({ events }) => events('ses_2/interaction').length === 2);
    expect(late.snapshots('ses_2/interaction').at(-1)?.snapshot.value).toBe('subagent_interaction');
  });

  test('STREAM-2: receives every actor, even after thousands of events', async () => {
    const { inspect, inspector: relay } = await watched({ maxQueuedLines: 100 });
    const session = startSession(inspect);
    const interaction = startInteraction(inspect);
    const subagent = startSubagent(inspect);
    for (let index = 0; index < 5000; index += 1)
      session.send(stamped({ type: 'client.attached' as const }));
    interaction.send({ type: 'interaction.request', id: 'q1' });
    subagent.send(stamped({ type: 'subagent.prepared' as const }));
    const late = receive(relay.streamUrl!);
    await late.until(({ snapshots }) => snapshots('ses_1/sub_1').length > 0);
    expect(late.ids).toEqual(expect.arrayContaining(['ses_1', 'ses_1/interaction', 'ses_1/sub_1']));
    expect(late.snapshots('ses_1/sub_1').at(-1)?.snapshot.value).toBe('ready');
  });
});
