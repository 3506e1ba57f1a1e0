// The body of a commit unit, and the messages and effects that pass through it.
//
// Does not: determine the order of events and effects (commit-unit.ts).

import type { Stamped } from '../../machines/index.ts';
import type { Effect } from './hosting.ts';
import type { EventShapes } from './event-shapes.ts';
import type { OffstageError } from '../../values/errors.ts';

export type UnitEvent = { readonly type: string };

/** The events that each actor of a unit takes. Left out: any. */
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
  /** The shapes of its events: an event that does not match is refused, and quarantined in a refold. */
  readonly shapes?: EventShapes;
  /**
   * Returns the event as its entry keeps it: with the facts of this moment, of which a later version of the code may
   * derive others. Null: it means nothing in this state.
   */
  take(actor: string, event: UnitEvent & Stamped): (UnitEvent & Stamped) | null;
  /**
   * Reports an event without effect. `error`: the unit could not judge or keep it, or its step threw; null: it was meant
   * for a state that is over.
   */
  readonly ignored?: ((event: UnitEvent, error: OffstageError | null) => void) | undefined;
  /**
   * Takes the step of an event, whether or not it would be taken now: changes the draft of the unit, and posts the effects
   * to it. May throw.
   */
  apply(actor: string, event: UnitEvent & Stamped): void;
  /** Returns the messages within the unit that an effect causes; they belong to the same step. */
  route?(posted: Posted): readonly Message[];
  /** Called when the step has no more messages: returns those that follow from the new state as a whole. */
  settle?(at: number): readonly Message[];
  /** Carries out an effect, after the commit. */
  release(posted: Posted): void;
  /** Reports that the unit cannot continue in this process. */
  crashed(error: unknown): void;
  /**
   * Called in a refold if the unit of an earlier version had ended with an entry that was quarantined. Absent: the next
   * process continues it.
   */
  endedBy?(reason: string): void;
  /** Reports that the journal refuses permanently (COMMIT-UNIT-7): another writer continues the unit. */
  journalRefused(error: unknown): void;
}

/** The identity of a unit in the journal. */
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
