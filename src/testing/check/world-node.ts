// One state of a whole system as the explorer stores it: the state of each actor, the packets in flight and the ghost.
// Equal parts are stored only once and shared.

import type { AnyEventObject, AnyMachineSnapshot } from 'xstate';
import type { ActorState } from './pure-actor.ts';
import type { Machines, Message, World } from './types.ts';

/** A message in flight. Equal messages are the same object. */
export interface Packet extends Message {
  /** The number of this message and its channel, in the order in which the explorer first met them. */
  readonly number: number;
  /** The sender's index. */
  readonly sender: number;
  /** The receiver's index. */
  readonly receiver: number;
  /** The channel from sender to receiver. Channels are ordered by this number. */
  readonly channel: number;
  /** The canonical text of the event; events with the same text are equal. */
  readonly eventKey: string;
  /** Whether the packet has been delivered and will be delivered once more. */
  readonly repeated: boolean;
}

/** A ghost value. Equal values are the same object. */
export interface GhostCell {
  readonly number: number;
  readonly value: unknown;
}

/** A possible next event for an actor. Equal choices are the same object. */
export interface Choice {
  /** The cause of the event. `repeat`: a message that will be delivered again. */
  readonly kind: 'environment' | 'timer' | 'message' | 'repeat';
  /** The actor's index. */
  readonly actor: number;
  /** The event that the actor would handle. */
  readonly event: AnyEventObject;
  /** The canonical text of the event; events with the same text are equal. */
  readonly eventKey: string;
  /** The packet that is delivered, if the choice is a delivery. */
  readonly packet?: Packet;
}

export class WorldNode implements World<Machines, unknown> {
  readonly states: readonly ActorState[];
  readonly inFlight: readonly Packet[];
  readonly cell: GhostCell;
  readonly #ids: readonly string[];
  #actors: Record<string, AnyMachineSnapshot> | undefined;

  constructor(
    ids: readonly string[],
    states: readonly ActorState[],
    inFlight: readonly Packet[],
    cell: GhostCell,
  ) {
    this.#ids = ids;
    this.states = states;
    this.inFlight = inFlight;
    this.cell = cell;
  }

  get ghost(): unknown {
    return this.cell.value;
  }

  get actors(): Record<string, AnyMachineSnapshot> {
    if (this.#actors === undefined) {
      this.#actors = {};
      let index = 0;
      for (const { snapshot } of this.states) this.#actors[this.#ids[index++] ?? ''] = snapshot;
    }
    return this.#actors;
  }

  /** Drops the cached snapshots. They can be created again on demand. */
  release(): void {
    this.#actors = undefined;
  }
}
