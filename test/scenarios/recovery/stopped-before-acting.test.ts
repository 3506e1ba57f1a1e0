// A call was running when its process ended. The next process stops the work before the work has an instance.

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { SubagentConfig } from '../../../src/index.ts';
import { textLife, world } from '../../support/crashes.ts';
import { calls, never, say } from '../../support/subagent-runs.ts';
import { instructionsOf, type TalkOptions } from '../../support/text-talk.ts';

/**
 * Creates a subagent that pays 900, and pays 5 when it reads a message. The next process waits until `makesInstance`
 * resolves.
 */
function paying(ran: unknown[], makesInstance?: Promise<void>): TalkOptions {
  const config: SubagentConfig = {
    name: 'bank',
    instructions: instructionsOf('bank'),
    tools: {
      pay: {
        description: 'Pays',
        inputSchema: z.object({ dollars: z.number() }),
        execute: (input: unknown) => {
          ran.push(input);
          return ran.length === 1 ? never() : 'paid';
        },
      },
    },
  };
  return {
    subagents: {
      bank: {
        script: ({ prompt }) => {
          const text = JSON.stringify(prompt);
          if (text.includes('Pay five') && !text.includes('"dollars":5'))
            return calls(['pay', { dollars: 5 }]);
          return text.includes('"dollars":900') ? say(text) : calls(['pay', { dollars: 900 }]);
        },
        config: makesInstance
          ? { ...config, createInstance: () => makesInstance.then(() => config) }
          : config,
      },
    },
  };
}

async function crashedWhilePaying(ran: unknown[], makesInstance: Promise<void>) {
  const of = world();
  const first = textLife(of, paying(ran));
  await first.start();
  await first.type('use bank');
  expect(ran).toEqual([{ dollars: 900 }]);
  first.kill();
  const doubtful: unknown[] = [];
  const second = textLife(of, {
    ...paying(ran, makesInstance),
    hooks: { onCallInDoubt: ({ input }) => void doubtful.push(input) },
  });
  await second.start();
  const id = second.state().subagents[0]?.id ?? '';
  return { second, doubtful, id };
}

describe('a call that was running when the process ended', () => {
  it('becomes in doubt if its subagent is cancelled before its instance has been recreated', async () => {
    const { second, doubtful, id } = await crashedWhilePaying([], never());
    second.session.subagents.cancel(id);
    await second.environment.advance(1000);
    expect(doubtful).toEqual([{ dollars: 900 }]);
  });

  it('becomes in doubt only once if a message interrupts it, and does not block the next call', async () => {
    const ran: unknown[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const { second, doubtful, id } = await crashedWhilePaying(ran, promise);
    void second.session.subagents.send(id, { content: 'Pay five', mode: 'interrupt' });
    await second.environment.advance(1000);
    resolve();
    await second.environment.advance(1000);
    expect(doubtful).toEqual([{ dollars: 900 }]);
    expect(ran).toEqual([{ dollars: 900 }, { dollars: 5 }]);
  });
});
