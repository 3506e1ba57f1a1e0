// The session as its parts see it: narrow interfaces, so that no part depends on the whole.

import type { Delegation } from '../../subagents/delegation.ts';
import type { NoteMarks } from '../../notes/note-marks.ts';
import type { Host } from '../../runtime/host.ts';
import type { Awaited } from './awaited.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionHooks } from './hooks.ts';
import type { Leads } from './leads.ts';
import type { Projection } from '../state/projection.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { UserInput } from '../questions/user-input.ts';

/** The session as a lead agent sees it. */
export interface LeadSession extends Receiver {
  readonly id: string;
  /** The agents: the current one, and the instructions and tools of each. */
  readonly leads: Leads;
  readonly host: Host;
  readonly records: SessionRecords;
  /** The marks of genuine notes to the lead model. */
  readonly notes: NoteMarks;
  readonly unit: SessionUnit;
  readonly delegation: Delegation;
  readonly projection: Projection;
  readonly hooks: SessionHooks;
  /** The input of the user and their screens. */
  readonly userInput: UserInput;
  /** The waits of the app. */
  readonly awaited: Awaited;
  /** Reports an error that the session survives. */
  reportError(error: unknown, where: string): void;
}
