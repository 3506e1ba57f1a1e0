// Usage: npm run example examples/15-simulate-your-agents.ts
//
// How to simulate your own agents, tools and policies without a key and without waiting. A simulation plays whole
// conversations in which the process dies, the model fails and the user changes the subject; its seed reproduces each
// of them. The models are replaced; the tools are real. The simulation first finds the bug in a shop that charges
// twice, and then plays a correct shop.

import assert from 'node:assert/strict';
import { tool } from 'ai';
import { z } from 'zod';
import { defineTool } from 'offstage';
import { simulate, SimulationError, type PromiseCheck, type SimulatedApp } from 'offstage/testing';

/** How many times the provider has charged for each key. */
type Ledger = Map<string, number>;

/** A shop whose subagent charges a card. `keyOf` returns the key that is sent to the payment provider with a charge. */
function shop(ledger: Ledger, keyOf: (key: string) => string): SimulatedApp {
  const charge = {
    ...tool({
      description: 'Charges the card of the user',
      inputSchema: z.object({ amount: z.number().int().min(1).max(500) }),
      execute(_input, options) {
        const key = keyOf((options as unknown as { idempotencyKey: string }).idempotencyKey);
        ledger.set(key, (ledger.get(key) ?? 0) + 1);
        return { charged: key };
      },
    }),
    // The provider charges only once per key, so the call may be repeated after a crash.
    idempotent: true,
  };
  return {
    agents: [
      {
        name: 'shop',
        instructions: 'You sell tea.',
        tools: [
          defineTool({
            name: 'order',
            description: 'Orders something',
            parameters: z.object({ item: z.string() }),
            execution: 'background',
            pendingMessage: 'I see to it.',
          }),
        ],
      },
    ],
    subagentConfigs: {
      order: { name: 'order', instructions: 'You order tea.', tools: { charge }, maxSteps: 4 },
    },
  };
}

/** The shop's promise: the provider has charged once for each call of the tool. */
function chargedOnce(ledger: Ledger): PromiseCheck {
  return function* (record) {
    const calls = new Set(record.effects.map(({ key }) => key));
    if (ledger.size > calls.size)
      yield { promise: 'CHARGED ONCE', what: `${ledger.size} charges for ${calls.size} calls` };
    ledger.clear();
  };
}

// A key that the tool generates is different after a crash.
{
  const ledger: Ledger = new Map();
  let made = 0;
  const app = shop(ledger, () => `charge ${(made += 1)}`);
  try {
    await simulate({ app, seeds: 200, session: 'text', checks: [chargedOnce(ledger)] });
    assert.fail('It was not found');
  } catch (error) {
    assert.ok(error instanceof SimulationError, String(error));
    const { broken, shrunk } = error.failure;
    console.log(`found: ${broken[0]?.promise}: ${broken[0]?.what}`);
    console.log(`needed: ${shrunk.strikes.map(({ point }) => point).join(', ')}`);
  }
}

// The call's idempotency key is the same in every attempt and every process.
{
  const ledger: Ledger = new Map();
  const app = shop(ledger, (key) => key);
  const { runs, work } = await simulate({
    app,
    seeds: 100,
    session: 'text',
    checks: [chargedOnce(ledger)],
  });
  assert.ok(work.crashes > 20 && work.effects > 50);
  console.log(`ok: ${runs} runs, with crashes, and every charge was made once`);
}
