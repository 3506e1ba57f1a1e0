// What is simulated: an app's own agents, tools and policies. Only its models are replaced.

import type { SessionOptions } from '../../../actors/session/lifecycle/session-options.ts';
import type { Environment } from '../../../actors/ports/environment.ts';
import type { SubagentConfig } from '../../../actors/contracts/config.ts';
import type { Runtime } from '../../../actors/admission/runtime.ts';
import type { ThinkingSoundOptions } from '../../../voice/output/thinking-sound.ts';
import type { VoiceOptions, VoiceSession } from '../../../voice/voice-session.ts';
import type { PromptStyle } from '../../../actors/session/state/synthetic-turns.ts';
import type { TextSession } from '../../../actors/session/view/text-session.ts';

/** The options of a session, voice or text, but for what the simulation supplies. */
export interface SimulatedApp extends Omit<SessionOptions, 'sessionId' | 'model'> {
  readonly voice?: Partial<VoiceOptions>;
  readonly thinkingSound?: ThinkingSoundOptions;
  readonly promptStyle?: PromptStyle;
  /** What each process does beside the session, from when it begins. */
  readonly program?: (host: ProgramHost) => SimulatedProgram;
}

export interface ProgramHost {
  /** On the journal of the process. */
  readonly runtime: Runtime;
  readonly session: AnySession;
}

/**
 * What runs beside a session. It dies with its process. What the subagents of its services have come to
 * it takes (`await`, `check`): that each result is had once is a promise.
 */
export interface SimulatedProgram {
  /** What it still has to do, each in a sentence: a run goes on until there is nothing more. */
  unfinished(): readonly string[];
  /** The run is over. What it rejects with ends the simulation. */
  close(): Promise<void>;
}

/** What an app may use that is made anew for each process of each run. */
export interface AppContext {
  /** Time and chance of the process. Tools that take time wait for it, and for nothing real. */
  readonly environment: Environment;
  readonly seed: number;
  /**
   * The same configuration with a generated model, and its tools watched: for one that only a tool
   * of yours knows (`createSubAgentTool`, `createParentSubagentToolset({ agent })`).
   */
  simulated<Config extends Partial<SubagentConfig>>(config: Config): Config;
}

/** An app, or what makes one: called for each process, as a program that starts would. */
export type SimulatedAppLike = SimulatedApp | ((context: AppContext) => SimulatedApp);

export type AnySession = TextSession | VoiceSession;
