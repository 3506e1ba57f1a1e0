// The simulated app, with its agents, tools and policies. The simulation replaces only its models.

import type { SessionOptions } from '../../../actors/session/lifecycle/session-options.ts';
import type { Environment } from '../../../actors/ports/environment.ts';
import type { SubagentConfig } from '../../../actors/contracts/config.ts';
import type { Runtime } from '../../../actors/admission/runtime.ts';
import type { ThinkingSoundOptions } from '../../../voice/output/waiting.ts';
import type { VoiceSession } from '../../../voice-session.ts';
import type { VoiceOptions } from '../../../voice/spoken-lead.ts';
import type { PromptStyle } from '../../../actors/session/state/synthetic-turns.ts';
import type { TextSession } from '../../../actors/session/view/text-session.ts';

/** The options of a session, voice or text, without those that the simulation supplies. */
export interface SimulatedApp extends Omit<SessionOptions, 'sessionId' | 'model'> {
  readonly voice?: Partial<VoiceOptions>;
  readonly thinkingSound?: ThinkingSoundOptions;
  readonly promptStyle?: PromptStyle;
  /** Returns the app's program, which runs beside the session from the start of each process. */
  readonly program?: (host: ProgramHost) => SimulatedProgram;
}

/** The process of a simulation in which an app's program runs. */
export interface ProgramHost {
  /** The runtime on the journal of the process. */
  readonly runtime: Runtime;
  readonly session: AnySession;
}

/**
 * A program beside a session, which dies with its process. It takes the results of its services' subagents (`await`,
 * `check`): the promises require that it takes each result once.
 */
export interface SimulatedProgram {
  /** The open work, each item as a sentence: a run continues until there is none. */
  unfinished(): readonly string[];
  /** Ends the program at the end of the run. A rejection ends the simulation. */
  close(): Promise<void>;
}

/** The resources of an app in one process of one run. */
export interface AppContext {
  /** Time and randomness of the process. Tools that take time wait for this time, never for real time. */
  readonly environment: Environment;
  /** The seed of the run. */
  readonly seed: number;
  /**
   * Returns the same configuration with a generated model, and with watched tools: for a subagent that only a tool of
   * the app knows (`createSubAgentTool`, `createParentSubagentToolset({ agent })`).
   */
  simulated<Config extends Partial<SubagentConfig>>(config: Config): Config;
}

/** An app, or a function that creates one, called for each process like a program that starts. */
export type SimulatedAppLike = SimulatedApp | ((context: AppContext) => SimulatedApp);

export type AnySession = TextSession | VoiceSession;
