// What the parts of a session see of it: narrow faces, so that no part knows the whole.

import type { Delegation } from '../delegation/delegation.ts';
import type { ScopePorts } from '../delegation/scope-ports.ts';
import type { NoteMarks } from '../notes/note-marks.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import type { Host } from '../runtime/host.ts';
import type { SessionServices } from '../service/session-services.ts';
import type { SubagentConfig } from '../subagent/config.ts';
import type { Awaited } from './awaited.ts';
import type { Books } from './books.ts';
import type { SessionHooks } from './hooks.ts';
import type { Lead } from './lead.ts';
import type { Leads } from './leads.ts';
import type { SpeakProgress } from './progress-pace.ts';
import type { Projection } from './projection.ts';
import type { SessionInputEvent } from './records.ts';
import type { SessionLife } from './session-life.ts';
import type { SessionUnit } from './session-unit.ts';
import type { Snapshots } from './snapshots.ts';
import type { TopicBook } from './subagent-messages.ts';
import type { UserDoor } from './user-door.ts';

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

/** What the effects of a session see of it. */
export interface EffectsSession extends LeadSession {
  readonly lead: Lead;
  readonly services: SessionServices;
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /** Whom the subagents of background calls work for. */
  readonly ofCalls: ScopePorts;
  readonly startedAt: number;
  readonly topics: TopicBook;
  readonly snapshots: Snapshots;
  /** Is progress said aloud, where its subagent does not say? */
  readonly speakProgress: SpeakProgress;
  /** The lead model cannot leave a call open: each is answered at once. */
  readonly acknowledgesCalls: boolean;
  /** A result is shown as it is before it is put into words. */
  readonly showsRawResults: boolean;
  /** To the clients. */
  sendJson(data: unknown): void;
  /** The model has said what it had to say. */
  turnEnded(): void;
  /** The floor may be free: what tools returned to the lead agent is told by now, or was not. */
  settleTold(): void;
  readonly life: SessionLife;
}
