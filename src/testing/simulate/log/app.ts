// The app under simulation, with its agents, tools and policies. The simulation replaces only the models of the app.

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
  /** The speech options of a voice session; a text session ignores them. @defaultValue those of `VoiceSession` */
  readonly voice?: Partial<VoiceOptions>;
  /** The sound that a voice session plays while the user waits for a reply or a tool. @defaultValue none */
  readonly thinkingSound?: ThinkingSoundOptions;
  /** The form in which results reach the lead model of a text session. @defaultValue 'notice' */
  readonly promptStyle?: PromptStyle;
  /** Returns the app's program, which runs together with the session in each process. */
  readonly program?: (host: ProgramHost) => SimulatedProgram;
}

/** The simulated process in which an app's program runs. */
export interface ProgramHost {
  /** The runtime that uses the journal of the process. */
  readonly runtime: Runtime;
  /** The session of the process. It has been asked to start, but may not be connected yet. */
  readonly session: AnySession;
}

/**
 * A program that runs together with a session and dies with its process. It receives the results of its services'
 * subagents (`await`, `check`). The promises require that it receives each result exactly once.
 */
export interface SimulatedProgram {
  /** Describes each piece of unfinished work in a sentence. A run continues until the list is empty. */
  unfinished(): readonly string[];
  /** Stops the program at the end of the run. If the promise that it returns rejects, the simulation ends. */
  close(): Promise<void>;
}

/** The resources of an app in one process of one run. */
export interface AppContext {
  /** The time and randomness of the process. Tools that take time must use this clock and never real time. */
  readonly environment: Environment;
  /** The run's seed. */
  readonly seed: number;
  /**
   * Returns the same configuration, but replaces its model with a generated one and watches its tools. Use it for a
   * subagent that only one of the app's tools knows (`createSubAgentTool`, `createParentSubagentToolset({ agent })`).
   */
  simulated<Config extends Partial<SubagentConfig>>(config: Config): Config;
}

/** An app, or a function that creates one. The function is called for each process, as each process starts anew. */
export type SimulatedAppLike = SimulatedApp | ((context: AppContext) => SimulatedApp);

export type AnySession = TextSession | VoiceSession;
