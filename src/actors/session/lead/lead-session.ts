// What the parts of a session see of it: narrow faces, so that no part knows the whole.

import type { Delegation } from '../../subagents/delegation.ts';
import type { NoteMarks } from '../../notes/note-marks.ts';
import type { UnitEvent } from '../../runtime/commit-unit.ts';
import type { Host } from '../../runtime/host.ts';
import type { Awaited } from './awaited.ts';
import type { Books } from '../state/books.ts';
import type { SessionHooks } from './hooks.ts';
import type { Leads } from './leads.ts';
import type { Projection } from '../state/projection.ts';
import type { SessionInputEvent } from '../../contracts/records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { UserDoor } from '../questions/user-door.ts';

/** What a lead agent sees of its session. */
export interface LeadSession {
  readonly id: string;
  /** Who leads, what each agent is told and may call. */
  readonly leads: Leads;
  readonly host: Host;
  readonly books: Books;
  /** How the lead model is told things. */
  readonly notes: NoteMarks;
  readonly unit: SessionUnit;
  readonly delegation: Delegation;
  readonly projection: Projection;
  readonly hooks: SessionHooks;
  /** What the user and their screens do. */
  readonly door: UserDoor;
  /** What the app waits for. */
  readonly awaited: Awaited;
  /** Puts an event into the session's mailbox. */
  receive(actor: string, event: UnitEvent & Record<string, unknown>): void;
  /** Words and new lives, checked by their type. */
  tell(actor: string, event: SessionInputEvent): void;
  /** Something went wrong that the session survives. */
  reportError(error: unknown, where: string): void;
}
