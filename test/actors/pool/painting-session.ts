import type { Runtime, TextSession } from '../../../src/index.ts';
import type { SimulatedEnvironment } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

export interface PaintingOptions {
  readonly sessionId: string;
  readonly runtime: Runtime;
  readonly environment: SimulatedEnvironment;
  /** So long it waits for an answer. */
  readonly askMs: number;
  /** So long `slow` takes. */
  readonly slowMs: number;
  /** May `slow` be done again after a crash? @defaultValue false */
  readonly idempotent?: boolean;
  /** Learns of each message, as `id: text`. */
  readonly said: string[];
}

/** A session whose subagents are `paint`, which asks for a colour, and `slow`, which takes a while. */
export function paintingSession(options: PaintingOptions): TextSession {
  const { sessionId, runtime, environment, askMs, slowMs, idempotent = false, said } = options;
  const waits = () =>
    new Promise((resolve) => void environment.scheduler.schedule(() => resolve('done'), slowMs));
  const { session } = textTalk({
    sessionId,
    runtime,
    environment,
    subagents: {
      paint: {
        script: turns(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
          say(`Painted: ${JSON.stringify(results.at(-1))}`),
        ),
        config: { interactive: true, inputTimeout: askMs },
      },
      slow: {
        script: turns(calls(['wait', {}]), say('It took a while.')),
        config: { tools: { wait: simpleTool(waits, { idempotent }) } },
      },
    },
  });
  session.parts.subscribe((part) => {
    if (part.type === 'text.done') said.push(`${sessionId}: ${part.text}`);
  });
  return session;
}
