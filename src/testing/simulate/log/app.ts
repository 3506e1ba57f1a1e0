// The simulated app with its agents, tools and policies. The simulation replaces only its models.

import type { SessionOptions } from '../../../actors/session/lifecycle/session-options.ts';
import type { Environment } from '../../../actors/ports/environment.ts';
import type { SubagentConfig } from '../../../actors/contracts/config.ts';
import type { Runtime } from '../../../actors/admission/runtime.ts';
import type { ThinkingSoundOptions } from '../../../voice/output/waiting.ts';
import type { VoiceSession } from '../../../voice-session.ts';
import type { VoiceOptions } from '../../../voice/spoken-lead.ts';
import type { PromptStyle } from '../../../actors/session/state/synthetic-turns.ts';
import type { TextSession } from '../../../actors/session/view/text-session.ts';

/** The options of a voice or text session, without those that the simulation supplies. */
export interface SimulatedApp extends Omit<SessionOptions, 'sessionId' | 'model'> {
  readonly voice?: Partial<VoiceOptions>;
  readonly thinkingSound?: ThinkingSoundOptions;
  readonly promptStyle?: PromptStyle;
  /** Returns the app's program, which runs together with the session from the start of each process. */
  readonly program?: (host: ProgramHost) => SimulatedProgram;
}

/** The simulated process in which an app's program runs. */
export interface ProgramHost {
  /** The runtime on the process's journal. */
  readonly runtime: Runtime;
  readonly session: AnySession;
}

/**
 * A program that runs together with a session and dies with its process. It receives the results of its services'
 * subagents (`await`, `check`): the promises require that it receives each result once.
 */
export interface SimulatedProgram {
  /** The open work, each item as a sentence; a run continues until there is none. */
  unfinished(): readonly string[];
  /** Ends the program at the end of the run. If it rejects, the simulation ends. */
  close(): Promise<void>;
}

/** An app's resources in one process of one run. */
export interface AppContext {
  /** The process's time and randomness. Tools that take time must use this clock, never real time. */
  readonly environment: Environment;
  /** The run's seed. */
  readonly seed: number;
  /**
   * Returns the same configuration with a generated model and watched tools: for a subagent that only one of the app's
   * tools knows (`createSubAgentTool`, `createParentSubagentToolset({ agent })`).
   */
  simulated<Config extends Partial<SubagentConfig>>(config: Config): Config;
}

/** An app, or a function that creates one, which is called for each process like a program that starts. */
export type SimulatedAppLike = SimulatedApp | ((context: AppContext) => SimulatedApp);

export type AnySession = TextSession | VoiceSession;
