// The stage on which the suite plays: a relay, and an agent behind it that performs acts.

import type { Relay } from '../../../src/actors/ports/relay.ts';

/** A fault that an agent on a stage can show. */
export type RelayFault =
  /** Its process ends. */
  | 'die'
  /** It neither cancels a turn nor ends when it is asked to. */
  | 'deaf'
  /** It sends what its protocol does not allow. */
  | 'garbage';

export interface RelayStage {
  readonly relay: Relay;
  /** Returns the number of agents, processes and connections that are not let go. */
  running(): number | Promise<number>;
  close?(): void | Promise<void>;
}

export interface RelayConformanceSetup {
  /** The name of the relay, for messages. */
  readonly name: string;
  /** The faults that its agent can show. */
  readonly shows: readonly RelayFault[];
  /** The longest time that the agent gets to stop before it is killed, in milliseconds. */
  readonly graceMs: number;
  /**
   * Turns of the event loop in which the agent has to react: a process needs more than code in memory.
   * @defaultValue 20,000
   */
  readonly patience?: number;
  /**
   * The relay asks its agent how it goes after this time, in milliseconds: so much passes now and then while the suite
   * waits. `graceMs` has to be some hundred times as long. @defaultValue no time passes
   */
  readonly pollMs?: number;
  /** Opens a stage for one case. Its agent performs the acts of a prompt (`perform`). */
  open(): RelayStage | Promise<RelayStage>;
}
