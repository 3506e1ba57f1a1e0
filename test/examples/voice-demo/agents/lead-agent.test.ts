import { describe, expect, test } from 'vitest';
import { leadAgent } from '../../../../examples/voice-demo/agents/lead-agent.ts';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';

function setUp() {
  const world = createWorld();
  const { tools = [] } = leadAgent(world);
  const run = (name: string, args: unknown): unknown => {
    const execute = tools.find((tool) => tool.name === name)?.execute as unknown as (
      args: unknown,
    ) => unknown;
    return execute(args);
  };
  return { world, run };
}

describe('check_order', () => {
  test('reads changes reported by the webhook', () => {
    const { run, world } = setUp();
    world.updateOrder('1041', 'on its way back');
    expect(run('check_order', {})).toMatchObject({ order: { orderId: '1041' } });
    expect(run('check_order', { orderId: 'no. 1042' })).toMatchObject({
      order: { orderId: '1042', status: 'being packed' },
    });
    expect(run('check_order', { orderId: '9' })).toEqual({ unknownOrderId: '9' });
  });
});
