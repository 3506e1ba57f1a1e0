// The body of a commit unit, and the messages and effects that pass through it.
//
// Does not: determine the order of events and effects (commit-unit.ts).

import type { Stamped } from '../../machines/index.ts';
import type { Effect } from './hosting.ts';
import type { EventShapes } from './event-shapes.ts';
import type { OffstageError } from '../../values/errors.ts';

export type UnitEvent = { readonly type: string };

/** The events that each actor of a unit accepts; any event by default. */
export interface AnyProtocol {
  readonly [actor: string]: UnitEvent;
}

/** An event for one actor of the unit. */
export interface Message {
  readonly actor: string;
  readonly event: UnitEvent;
}

/** The content of a unit. */
export interface UnitBody {
  /** The shapes of the events: a mailbox refuses an event that does not match, and a refold quarantines its entry. */
  readonly shapes?: EventShapes;
  /**
   * Returns the event as its entry stores it: with the current facts, which later code could not derive in the same
   * way. Null if the event means nothing in this state.
   */
  take(actor: string, event: UnitEvent & Stamped): (UnitEvent & Stamped) | null;
  /**
   * Called with an event that has no effect. `error`: the unit could not judge or store the event, or its step threw;
   * null if the event belongs to a state that is over.
   */
  readonly ignored?: ((event: UnitEvent, error: OffstageError | null) => void) | undefined;
  /**
   * Takes an event's step, without checking whether `take` would accept the event now: changes the unit's draft, and
   * posts the effects. May throw.
   */
  apply(actor: string, event: UnitEvent & Stamped): void;
  /** Returns the messages that an effect causes within the unit; they belong to the same step. */
  route?(posted: Posted): readonly Message[];
  /** Called when the step has no more messages: returns the messages that follow from the new state as a whole. */
  settle?(at: number): readonly Message[];
  /** Executes an effect, after the commit. */
  release(posted: Posted): void;
  /** Called when the unit cannot continue in this process. */
  crashed(error: unknown): void;
  /**
   * Called in a refold if an earlier version ended the unit by quarantining an entry. If absent, the next process
   * continues the unit.
   */
  endedBy?(reason: string): void;
  /** Called when the journal refuses permanently (COMMIT-UNIT-7): another writer continues the unit. */
  journalRefused(error: unknown): void;
}

/** A unit's identity in the journal. */
export interface UnitIdentity {
  readonly id: string;
  /** The id of the scope with which the unit is recovered. */
  readonly scope: string;
  /** The kind of definition: `session`, `subagent`, `service`. */
  readonly kind: string;
  readonly definitionVersion: number;
}

/** An effect with the actor that posted it. */
export interface Posted {
  readonly actor: string;
  readonly effect: Effect;
}
