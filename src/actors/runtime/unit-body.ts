// What a commit unit consists of, and the messages and effects that go through it.
//
// Does not: say in which order anything happens (commit-unit.ts).

import type { Stamped } from '../../machines/index.ts';
import type { Effect } from './hosting.ts';
import type { EventShapes } from './event-shapes.ts';
import type { SetAsideEntry } from '../contracts/session-views.ts';

export type UnitEvent = { readonly type: string };

/** An event for one actor of the unit. */
export interface Message {
  readonly actor: string;
  readonly event: UnitEvent;
}

/** What a unit consists of. */
export interface UnitBody {
  /** The shapes of its events: one that does not have its own is refused, and set aside in a refold. */
  readonly shapes?: EventShapes;
  /** Would this event change anything? Must not change anything itself. */
  accepts(actor: string, event: UnitEvent & Stamped): boolean;
  /** What its entry says besides, of what is so now: a later version of the code may find otherwise. */
  enrich?<T extends UnitEvent & Stamped>(actor: string, event: T): T;
  /**
   * This event changes nothing. `error`: the unit could not judge it, or set its entry aside; null: it was
   * meant for a state that is over.
   */
  ignored?(event: UnitEvent, error: Error | null): void;
  /** Takes the event in. Effects are posted to the unit while it does. */
  apply(actor: string, event: UnitEvent & Stamped): void;
  /** What an effect means within the unit; delivered in the same transaction. */
  route?(posted: Posted): readonly Message[];
  /** Called when the transaction has come to rest: what follows from the new state as a whole. */
  settle?(at: number): readonly Message[];
  /** Carries an effect out, after the commit. */
  release(posted: Posted): void;
  /**
   * `apply` threw, or an entry is set aside that was taken in by half, and there is no `goesOnWithout`, or
   * that failed: the unit is beyond repair in this process.
   */
  crashed(error: unknown): void;
  /**
   * An entry was set aside that was taken in by half: goes back to what the unit is without it. Nothing is
   * taken in until it resolves. Absent: the unit ends in this process, by `crashed`.
   */
  goesOnWithout?(entry: SetAsideEntry): Promise<void>;
  /** In a refold: it had ended, with an entry that was set aside. Absent: the next process goes on with it. */
  endedBy?(reason: string): void;
  /** The journal refuses for good (COMMIT-UNIT-7): whoever writes it now goes on with the unit. */
  journalRefused(error: unknown): void;
}

/** What a unit is in the journal. */
export interface UnitIdentity {
  readonly id: string;
  /** What it is recovered with. */
  readonly scope: string;
  /** Whose definition it is: `session`, `subagent`, `service`. */
  readonly kind: string;
  readonly definitionVersion: number;
}

/** An effect and the actor that posted it. */
export interface Posted {
  readonly actor: string;
  readonly effect: Effect;
}
