import type { Runtime, TextSession } from '../../../src/index.ts';
import type { SimulatedEnvironment } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

export interface PaintingOptions {
  readonly sessionId: string;
  readonly runtime: Runtime;
  readonly environment: SimulatedEnvironment;
  /** How long it waits for an answer, in milliseconds. */
  readonly askMs: number;
  /** How long `slow` takes, in milliseconds. */
  readonly slowMs: number;
  /** `slow` may be repeated after a crash. @defaultValue false */
  readonly idempotent?: boolean;
  /** Receives each message as `id: text`. */
  readonly said: string[];
}

/** A session with the subagents `paint`, which asks for a colour, and `slow`, which takes a while. */
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
