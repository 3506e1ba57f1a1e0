// The stage for the suite: a relay, and an agent behind it that performs acts.

import type { Relay } from '../../../src/actors/ports/relay.ts';

/** A fault that an agent on a stage can have. */
export type RelayFault =
  /** The agent's process ends. */
  | 'die'
  /** The agent neither cancels a turn nor exits when it is asked to. */
  | 'deaf'
  /** The agent sends messages that its protocol does not allow. */
  | 'garbage';

export interface RelayStage {
  readonly relay: Relay;
  /** Returns the number of agents, processes and connections that are still open. */
  running(): number | Promise<number>;
  close?(): void | Promise<void>;
}

export interface RelayConformanceSetup {
  /** The name of the relay for error messages. */
  readonly name: string;
  /** The faults that the stage's agent can have. */
  readonly shows: readonly RelayFault[];
  /** How long the agent gets to stop before it is killed, in milliseconds. */
  readonly graceMs: number;
  /**
   * The number of event loop turns in which the agent must react. A process needs more than code in memory.
   * @defaultValue 20,000
   */
  readonly patience?: number;
  /**
   * The interval at which the relay polls its agent, in milliseconds. This much time passes now and then while the
   * suite is waiting. `graceMs` must be a few hundred times as long as this interval. @defaultValue no time passes
   */
  readonly pollMs?: number;
  /** Opens a stage for one case. The stage's agent performs the acts in a prompt (`perform`). */
  open(): RelayStage | Promise<RelayStage>;
}
