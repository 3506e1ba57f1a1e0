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

/** The part of a unit that defines its events, steps and effects. */
export interface UnitBody {
  /**
   * The shapes of the events. A mailbox refuses an event that does not match its shape, and a refold quarantines the
   * entry of such an event.
   */
  readonly shapes?: EventShapes;
  /**
   * Returns the event in the form in which its entry stores it. The entry includes the current facts, because later
   * code might derive them differently. Null if the event means nothing in this state.
   */
  take(actor: string, event: UnitEvent & Stamped): (UnitEvent & Stamped) | null;
  /**
   * Called with an event that has no effect. `error`: why the unit could not check or store the event, or why its step
   * failed. Null if the event comes too late for the current state.
   */
  readonly ignored?: ((event: UnitEvent, error: OffstageError | null) => void) | undefined;
  /**
   * Takes an event's step, without checking whether `take` would accept the event now. Changes the unit's draft and
   * posts the effects. May throw.
   */
  apply(actor: string, event: UnitEvent & Stamped): void;
  /** Returns the messages within the unit that an effect causes; they belong to the same step. */
  route?(posted: Posted): readonly Message[];
  /**
   * Called when the step has no more messages. Returns further messages that depend on the state after all of the
   * step's changes.
   */
  settle?(at: number): readonly Message[];
  /** Executes an effect, after the commit. */
  release(posted: Posted): void;
  /** Called when the unit cannot continue in this process. */
  crashed(error: unknown): void;
  /**
   * Called in a refold if an earlier version ended the unit by quarantining an entry. Without this function, the next
   * process continues the unit.
   */
  endedBy?(reason: string): void;
  /** Called when the journal refuses permanently (COMMIT-UNIT-7) because another writer continues the unit. */
  journalRefused(error: unknown): void;
}

/** Identifies a unit in the journal. */
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
