// The demo's agents in a text session, in simulated time; the person types the lines.

import { TextSession, type TextSessionOptions } from '../../../src/index.ts';
import type { VoiceSession } from '../../../src/voice-session.ts';
import { simulatedEnvironment, type SimulatedEnvironment } from '../../../src/testing/index.ts';
import type { DialogueStage } from '../record.ts';
import { demoParts } from './demo-parts.ts';

/** Creates the options for a session; the function may read `session` once the session has started. */
export type StageParts = (
  environment: SimulatedEnvironment,
  session: () => TextSession | VoiceSession,
) => Omit<TextSessionOptions, 'runtime'>;

export async function textStage(parts: StageParts = demoParts): Promise<DialogueStage> {
  const environment = simulatedEnvironment();
  const session: TextSession = new TextSession({
    ...parts(environment, () => session),
    environment,
  });
  const errors: string[] = [];
  const said: string[] = [];
  session.events.subscribe((event) => {
    if (event.type === 'error.reported') errors.push(`${event.code}: ${event.message}`);
  });
  session.parts.subscribe((part) => {
    if (part.type === 'text.done') said.push(part.text);
    if (part.type === 'question.asked') said.push(part.question);
  });
  const state = () => session.store.getSnapshot().context;
  await session.start();
  await environment.advance(1000);
  return {
    name: 'text',
    get state() {
      return state();
    },
    get now() {
      return environment.clock.now();
    },
    sounds: null,
    pass: (ms) => environment.advance(ms),
    async says(text) {
      const at = environment.clock.now();
      await session.sendText(text);
      await environment.settle();
      return { beganAt: at, endedAt: at };
    },
    finish: async () => ({ sounds: [], yielded: [], errors, said }),
    async close() {
      const closed = session.close();
      await environment.advance(60_000);
      await closed;
    },
  };
}
