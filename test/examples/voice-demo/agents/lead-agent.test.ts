import { describe, expect, test } from 'vitest';
import { leadAgent } from '../../../../examples/voice-demo/agents/lead-agent.ts';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';
import type { DeliveryView, SubagentView } from '../../../../src/actors/contracts/session-views.ts';
import { FakeSession } from '../fake-session.ts';
import { emptyState } from '../../../support/session-state.ts';

const view = (id: string, toolName: string, change: Partial<SubagentView> = {}): SubagentView => ({
  id,
  name: toolName,
  parentId: null,
  depth: 1,
  hung: false,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  callId: null,
  toolName,
  task: '',
  title: '',
  state: 'running',
  step: 2,
  maxSteps: 5,
  startedAt: 0,
  endedAt: null,
  progress: null,
  outcome: null,
  ...change,
});

function setUp(...subagents: SubagentView[]) {
  const session = new FakeSession();
  session.state = { ...emptyState, subagents };
  const world = createWorld();
  const { tools = [] } = leadAgent(world, () => session);
  const run = (name: string, args: unknown): unknown => {
    const execute = tools.find((tool) => tool.name === name)?.execute as unknown as (
      args: unknown,
    ) => unknown;
    return execute(args);
  };
  return { session, world, run };
}

describe('check_progress', () => {
  test('lists running work with its progress, but nothing that has ended and was delivered', () => {
    const { run } = setUp(
      view('s1', 'book_ride', { state: 'waiting_for_input' }),
      view('s2', 'generate_report', { progress: 'Reading sales' }),
      view('s3', 'book_table', { state: 'ready' }),
      view('s4', 'book_table'),
      view('s5', 'book_ride', { state: 'completed', endedAt: 1 }),
    );
    expect(run('check_progress', {})).toEqual({
      running: [
        { work: 'the ride', doing: 'waiting for your answer' },
        { work: 'the report', doing: 'reading sales' },
        { work: 'the table', doing: 'about to start' },
        { work: 'the table', doing: 'at step 2' },
      ],
      untold: [],
    });
  });

  test('lists completed work until the user has heard the result', () => {
    const { run, session } = setUp(view('s1', 'generate_report', { endedAt: 1 }));
    const told = (state: DeliveryView['state']) => {
      const delivery = { kind: 'result', subagentId: 's1', state } as DeliveryView;
      session.state = { ...session.state, deliveries: [delivery] };
      return run('check_progress', {});
    };
    expect(told('playing')).toEqual({ running: [], untold: ['the report'] });
    expect(told('delivered')).toEqual({ running: [], untold: [] });
  });
});

describe('cancel_work', () => {
  const both = [view('s1', 'book_ride'), view('s2', 'generate_report')];

  test('stops the matching task', () => {
    const { run, session } = setUp(...both);
    expect(run('cancel_work', { work: 'ride' })).toEqual({
      stopped: ['the ride'],
      stillRunning: ['the report'],
    });
    expect(session.calls).toEqual([['cancel', 's1', 'the user asked for it']]);
  });

  test('stops all tasks', () => {
    const { run, session } = setUp(...both);
    run('cancel_work', { work: 'everything' });
    expect(session.calls.map(([, id]) => id)).toEqual(['s1', 's2']);
  });

  test('does not choose between two matching tasks', () => {
    const { run, session } = setUp(...both);
    expect(run('cancel_work', { work: 'unclear' })).toEqual({
      stopped: [],
      stillRunning: ['the ride', 'the report'],
    });
    expect(session.calls).toEqual([]);
  });

  test('accepts a vague reference if there is only one task', () => {
    const { run } = setUp(view('s1', 'book_ride'));
    expect(run('cancel_work', { work: 'unclear' })).toEqual({
      stopped: ['the ride'],
      stillRunning: [],
    });
  });
});

describe('check_order', () => {
  test('reads changes that the webhook reported', () => {
    const { run, world } = setUp();
    world.updateOrder('1041', 'on its way back');
    expect(run('check_order', {})).toMatchObject({ order: { orderId: '1041' } });
    expect(run('check_order', { orderId: 'no. 1042' })).toMatchObject({
      order: { orderId: '1042', status: 'being packed' },
    });
    expect(run('check_order', { orderId: '9' })).toEqual({ unknownOrderId: '9' });
  });
});
