// The claims of the Bodhi inventory about sessions, their hooks and their events that no other test cites.

import { describe, expect, test } from 'vitest';
import { calls, never, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { instructionsOf, textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { checkSubagentConfig } from '../../src/actors/subagent/config.ts';

describe('subagents', () => {
  test('have the defaults of the original design', { tags: ['B24', 'B26'] }, () => {
    expect(checkSubagentConfig({ name: 'a', instructions: 'b' })).toMatchObject({
      maxSteps: 5,
      timeout: 600_000,
      inputTimeout: 120_000,
      maxInputRetries: 3,
    });
  });

  test(
    'get one instance per handoff and dispose of it once, however the handoff ends',
    { tags: ['B27'] },
    async () => {
      let made = 0;
      const disposed: number[] = [];
      const { start, type, environment } = textTalk({
        subagents: {
          work: {
            script: steps(calls(['count']), ({ results }) =>
              results[0] === 2
                ? { error: new Error('it broke') }
                : say(`Counted ${String(results[0])}`),
            ),
            config: {
              createInstance: () => {
                made += 1;
                const number = made;
                return {
                  name: 'work',
                  instructions: instructionsOf('work'),
                  tools: { count: simpleTool(() => number) },
                  dispose: () => void disposed.push(number),
                };
              },
            },
          },
        },
      });
      await start();
      await type('use work {"n":1} and work {"n":2}');
      await environment.advance(60_000);
      expect(made).toBe(2);
      expect(disposed.toSorted((a, b) => a - b)).toEqual([1, 2]);
    },
  );

  test(
    'return their text and step count and call a hook for each step',
    { tags: ['B32', 'B34'] },
    async () => {
      const seen: unknown[] = [];
      const { start, type, state, environment } = textTalk({
        subagents: {
          report: {
            script: steps(calls(['look'], ['look']), say('Sales are up.')),
            config: { tools: { look: simpleTool(() => 'seen') } },
          },
        },
        hooks: {
          onSubagentStep: ({ subagentName, stepNumber, toolCalls, tokensUsed }) =>
            seen.push([subagentName, stepNumber, toolCalls, tokensUsed]),
        },
      });
      await start();
      await type('use report');
      await environment.settle();
      expect(state().subagents[0]?.outcome).toMatchObject({ text: 'Sales are up.', steps: 2 });
      expect(seen).toEqual([
        ['report', 1, ['look', 'look'], 15],
        ['report', 2, [], 15],
      ]);
    },
  );

  test(
    'abort at their timeout, which the lead agent reports to the user',
    { tags: ['B33'] },
    async () => {
      const aborted: boolean[] = [];
      const { start, type, environment, said } = textTalk({
        subagents: {
          slow: {
            script: steps(calls(['hang'])),
            config: {
              timeout: 1000,
              tools: {
                hang: simpleTool(({ abortSignal }) => {
                  abortSignal?.addEventListener('abort', () => aborted.push(true));
                  return never();
                }),
              },
            },
          },
          quick: { script: () => say('Done.') },
        },
      });
      await start();
      await type('use slow and quick');
      await environment.advance(2000);
      expect(aborted).toEqual([true]);
      // Each tool has its own time limit, so the other tool continues.
      expect(said().some((text) => text.includes('"result":"Done."'))).toBe(true);
      expect(said().some((text) => text.includes('"error":'))).toBe(true);
    },
  );
});

describe('notices', () => {
  test(
    'use the label SUBAGENT UPDATE and the priority normal by default',
    { tags: ['B61'] },
    async () => {
      const { start, session, said, environment, state } = textTalk();
      await start();
      session.notifyBackground('The order was sent');
      await environment.settle();
      expect(said()[0]).toContain('{"label":"SUBAGENT UPDATE","text":"The order was sent"}');
      expect(state().deliveries[0]).toMatchObject({ priority: 'normal', label: 'SUBAGENT UPDATE' });
      session.notifyBackground('Which?', { label: 'SUBAGENT QUESTION', priority: 'high' });
      await environment.settle();
      expect(said().at(-1)).toContain('{"label":"SUBAGENT QUESTION","text":"Which?"}');
      expect(state().deliveries[1]).toMatchObject({ priority: 'high' });
    },
  );
});

describe('the session', () => {
  test(
    'calls its start hook only once despite reconnects and reports how long it lasted',
    { tags: ['B67', 'B68'] },
    async () => {
      const told: unknown[] = [];
      const { start, model, environment, close } = voiceTalk({
        hooks: {
          onSessionStart: () => told.push('start'),
          onSessionEnd: ({ durationMs, error }) => told.push([durationMs >= 2000, error]),
        },
      });
      await start();
      model().drop();
      await environment.advance(2000);
      expect(told).toEqual(['start']);
      await close();
      expect(told).toEqual(['start', [true, null]]);
    },
  );

  test(
    'ignores an event that its state does not expect, and reports it',
    { tags: ['B67'] },
    async () => {
      const ignored: string[] = [];
      const { start, session, environment } = textTalk({
        hooks: { onIgnored: ({ type }) => ignored.push(type) },
      });
      await start();
      const before = session.actor.getSnapshot().value;
      const leave = session.attach();
      leave();
      leave();
      await session.start();
      await environment.settle();
      expect(session.actor.getSnapshot().value).toEqual(before);
      expect(ignored).toEqual([]);
    },
  );

  test(
    'reconnects five times in a row and doubles the delay up to its maximum',
    { tags: ['B88'] },
    async () => {
      const { session, transport, environment } = voiceTalk({
        voice: { maxReconnectDelayMs: 4000 },
      });
      transport.autoReady = false;
      const started = session.start();
      const outcome = started.catch((error: unknown) => error);
      const waits: number[] = [];
      await environment.settle();
      for (let attempt = 0; attempt < 6; attempt += 1) {
        const at = environment.clock.now();
        const connections = transport.connections.length;
        transport.current.drop();
        for (let ms = 0; ms < 40_000 && transport.connections.length === connections; ms += 50)
          await environment.advance(50);
        if (transport.connections.length > connections) waits.push(environment.clock.now() - at);
      }
      expect(await outcome).toMatchObject({ code: 'TRANSPORT_LOST' });
      expect(waits).toHaveLength(5);
      // Jitter shortens the delay by up to half, so that clients that were disconnected together do not reconnect at
      // the same time.
      for (const [index, most] of [1000, 2000, 4000, 4000, 4000].entries()) {
        expect(waits[index]).toBeLessThanOrEqual(most + 50);
        expect(waits[index]).toBeGreaterThanOrEqual(most / 2);
      }
    },
  );
});
