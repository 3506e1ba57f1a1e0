// The body of a commit unit, and the messages and effects that pass through it.
//
// Does not: determine the order of events and effects (commit-unit.ts).

import type { Stamped } from '../../machines/index.ts';
import type { Effect } from './hosting.ts';
import type { EventShapes } from './event-shapes.ts';
import type { OffstageError } from '../../values/errors.ts';
import type { SetAsideEntry } from '../contracts/session-views.ts';

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

/** An event that a unit takes. */
export interface Taken {
  /** The event as its entry keeps it: with the facts of this moment, of which a later version of the code may derive others. */
  readonly entry: UnitEvent & Stamped;
  /** Applies it, once its entry is written; its effects are posted to the unit meanwhile. */
  apply(): void;
}

/** The content of a unit. */
export interface UnitBody {
  /** The shapes of its events: an event that does not match is refused, and set aside in a refold. */
  readonly shapes?: EventShapes;
  /** Returns what this event leads to; null: nothing. Must not change anything itself. */
  take(actor: string, event: UnitEvent & Stamped): Taken | null;
  /**
   * Reports an event without effect. `error`: the unit could not judge or keep it, or set its entry aside; null: it
   * was meant for a state that is over.
   */
  readonly ignored?: ((event: UnitEvent, error: OffstageError | null) => void) | undefined;
  /** Applies an event of the journal, whether or not it would be taken now; its effects are posted to the unit meanwhile. */
  apply(actor: string, event: UnitEvent & Stamped): void;
  /**
   * Returns the messages within the unit that an effect causes; they are delivered in the same transaction.
   */
  route?(posted: Posted): readonly Message[];
  /**
   * Called when the transaction has no more messages: returns the messages that follow from the new state as
   * a whole.
   */
  settle?(at: number): readonly Message[];
  /** Carries out an effect, after the commit. */
  release(posted: Posted): void;
  /**
   * Reports that the unit cannot continue in this process: a half folded entry is set aside and `restoreWithout` is
   * absent or failed.
   */
  crashed(error: unknown): void;
  /**
   * Restores the unit without an entry that was half folded and then set aside. No event is handled until it
   * resolves. Absent: the unit ends in this process, by `crashed`.
   */
  readonly restoreWithout?: ((entry: SetAsideEntry) => Promise<void>) | undefined;
  /**
   * Called in a refold if the unit of an earlier version had ended with an entry that was set aside. Absent: the next
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
