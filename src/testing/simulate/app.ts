// What is simulated: an app's own agents, tools and policies. Only its models are replaced.

import type { SessionOptions } from '../../actors/session/session-options.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { ThinkingSoundOptions } from '../../voice/thinking-sound.ts';
import type { VoiceOptions } from '../../voice/voice-session.ts';
import type { PromptStyle } from '../../actors/session/synthetic-turns.ts';

/** The options of a session, voice or text, but for what the simulation supplies. */
export interface SimulatedApp extends Omit<SessionOptions, 'sessionId' | 'model'> {
  readonly voice?: Partial<VoiceOptions>;
  readonly thinkingSound?: ThinkingSoundOptions;
  readonly promptStyle?: PromptStyle;
}

/** What an app may use that is made anew for each process of each run. */
export interface AppContext {
  /** Time and chance of the process. Tools that take time wait for it, and for nothing real. */
  readonly environment: Environment;
  readonly seed: number;
}

/** An app, or what makes one: called for each process, as a program that starts would. */
export type SimulatedAppLike = SimulatedApp | ((context: AppContext) => SimulatedApp);
