// One conversation whose process dies once at each of its entries, just before or just after the entry is written. The
// conversation ends in the same way wherever the process dies.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, createSubAgentTool } from '../../../src/index.ts';
import { instantsOf, textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { castOf, configOf, type TalkOptions } from '../../support/text-talk.ts';

/** The effects of tools, by the key of the call. */
type Done = Map<string, number>;

function story(done: Done): TalkOptions {
  const did = (key = ''): number => {
    done.set(key, (done.get(key) ?? 0) + 1);
    return done.size;
  };
  const effect = (more: Record<string, unknown> = {}) =>
    simpleTool(({ idempotencyKey }) => ({ done: did(idempotencyKey) }), more);
  const helperScript = turns(calls(['look', {}, 'l1']), say('{"found": "a map"}'));
  const model = castOf({ subagents: { helper: { script: helperScript } } });
  const helper = createSubAgentTool(
    {
      ...configOf('helper'),
      model,
      tools: { look: effect({ idempotent: true }) },
      outputSchema: z.object({ found: z.string() }),
    },
    z.object({}),
  );
  return {
    tools: [
      defineTool({
        name: 'weather',
        description: 'Looks at the sky',
        parameters: z.object({}),
        idempotent: true,
        execute: (_, { idempotencyKey }) => ({ sky: `blue ${did(idempotencyKey) > 0}` }),
      }),
    ],
    subagents: {
      ride: {
        script: turns(
          calls(['find', {}, 'r1'], ['helper', {}, 'r2']),
          calls(['ask_user', { question: 'Which class?' }, 'r3']),
          calls(['book', {}, 'r4']),
          ({ results }) => say(`Ride: ${JSON.stringify(results)}`),
        ),
        config: {
          interactive: true,
          tools: { find: effect({ idempotent: true }), book: effect(), helper },
        },
      },
      report: { script: turns(say('Report: all is well.')), pending: null },
    },
  };
}

/** Plays the user, who makes requests and answers questions, in as many processes as the story needs. */
async function live(of: World, done: Done) {
  const said: string[] = [];
  const asked = new Set<string>();
  const doubtful: string[] = [];
  let lives = 0;
  let wanted = ['use ride and weather', 'use report'];
  for (;;) {
    lives += 1;
    const talk = textLife(of, {
      ...story(done),
      hooks: { onCallInDoubt: ({ toolName }) => void doubtful.push(toolName) },
    });
    const stop = talk.session.parts.subscribe((part) => {
      if (part.type === 'text.done' && talk.isAlive()) said.push(part.text);
    });
    void talk.start().catch(() => {});
    await of.environment.settle();
    for (let round = 0; round < 30 && talk.isAlive(); round += 1) {
      const { questions, transcript } = talk.state();
      const words = new Set(
        transcript.flatMap(({ role, text }) => (role === 'user' ? [text] : [])),
      );
      wanted = wanted.filter((text) => !words.has(text));
      const open = questions.find(({ state }) => state === 'open');
      if (open) {
        asked.add(open.requestId);
        void talk.session.answer(open.requestId, { text: 'comfort' });
      } else if (wanted[0] !== undefined) void talk.session.sendText(wanted[0]).catch(() => {});
      await of.environment.settle();
      await of.environment.advance(1000);
    }
    stop.unsubscribe();
    if (talk.isAlive()) return { talk, said, asked, doubtful, lives };
  }
}

describe('a process that dies at each entry', async () => {
  const length = await (async () => {
    const of = world();
    const { talk, said } = await live(of, new Map());
    const entries = of.entries.length;
    test('completes the story and produces results if nothing is killed', () => {
      expect(said.join('\n')).toMatch(/Ride:.*done/s);
      expect(said.join('\n')).toContain('Report: all is well.');
      expect(entries).toBeGreaterThan(40);
    });
    await talk.close();
    return entries;
  })();

  const instants = instantsOf(length);

  test.each(instants)('reaches the same end after a kill %s entry %i', async (when, entry) => {
    const of = world();
    const done: Done = new Map();
    of.killAt(entry, when);
    const { talk, said, asked, doubtful, lives } = await live(of, done);
    expect(lives).toBe(2);
    // P1, P9: all work has ended, and none was lost.
    const { subagents, questions, deliveries } = talk.state();
    expect(subagents.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual([
      'helper completed',
      'report completed',
      'ride completed',
    ]);
    expect(questions.filter(({ state }) => state === 'open')).toEqual([]);
    expect(deliveries.filter(({ state }) => state === 'pending')).toEqual([]);
    // P3, P4: there was one question, and every result reached the user.
    expect(asked.size).toBe(1);
    expect(said.filter((text) => text.includes('Report: all is well.'))).not.toEqual([]);
    expect(said.filter((text) => text.includes('Ride:'))).not.toEqual([]);
    // P6: a call that must not be repeated ran once, or the user was informed that its outcome is unknown.
    const book = [...done].filter(([key]) => key.endsWith(':r4'));
    expect(book.every(([, times]) => times === 1)).toBe(true);
    expect(book.length + doubtful.filter((name) => name === 'book').length).toBeGreaterThan(0);
    expect(talk.errors).toEqual([]);
    await talk.close();
  });
});
