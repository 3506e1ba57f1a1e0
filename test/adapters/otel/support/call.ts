// A spoken conversation with a subagent whose result the user interrupts. The process may end at any point.

import type { Journal } from '../../../../src/actors/ports/journal.ts';
import { createRuntime } from '../../../../src/index.ts';
import type { SimulatedEnvironment } from '../../../../src/testing/index.ts';
import { calls, say, simpleTool } from '../../../support/subagent-runs.ts';
import { turns } from '../../../support/crashes.ts';
import { voiceTalk } from '../../../support/voice-talk.ts';

export function call(journal: Journal, environment: SimulatedEnvironment) {
  const talk = voiceTalk({
    environment,
    sessionId: 'ses_call',
    runtime: createRuntime({ environment, journal }),
    subagents: {
      report: {
        script: turns(calls(['look', {}, 'l1']), say('42 sales')),
        config: {
          tools: {
            look: simpleTool(
              () =>
                new Promise((resolve) => {
                  environment.scheduler.schedule(() => resolve('seen'), 2_000);
                }),
            ),
          },
        },
      },
    },
  });
  const { model, play } = talk;
  const plays = async (text: string, ms: number): Promise<void> => {
    const spoken = model().begin(text, ms);
    await environment.advance(50);
    await play(spoken.itemId, ms / 2);
    await environment.advance(ms / 2);
    spoken.end();
    await play(spoken.itemId, ms);
  };
  const untilDelivered = async () => {
    await environment.advance(5_000);
    const spoken = model().begin('There were 42 sales.', 2_000);
    await environment.advance(50);
    await play(spoken.itemId, 500);
    return spoken;
  };
  return {
    ...talk,
    plays,
    /** Plays until half a second of the result has been spoken. */
    untilTold: untilDelivered,
    /** Speaks as the user for a second and requests the report. */
    async asks() {
      model().speechStarted('u1');
      await environment.advance(1_000);
      model().speechEnded('u1', 'use report');
      await environment.settle();
      await environment.advance(400);
      model().call({ callId: 'call_1', name: 'report', arguments: '{}' });
      await environment.settle();
      await plays('I am on it.', 600);
    },
    /** Interrupts as the user; silence follows 120 ms later. */
    async breaksIn({ itemId, end }: Awaited<ReturnType<typeof untilDelivered>>) {
      model().speechStarted('u2');
      await environment.advance(120);
      await play(itemId, 520);
      await environment.advance(2_000);
      end('cancelled');
      model().speechEnded('u2', 'hold on, what time is it?');
      await environment.settle();
      await plays('It is noon.', 800);
    },
  };
}
