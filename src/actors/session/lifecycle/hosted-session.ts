// The session as seen by the parts that begin, restore and suspend it.

import type { Supervisor } from '../../admission/supervisor.ts';
import type { SetAsideEntry } from '../../contracts/session-views.ts';
import type { Upkeep } from '../../context/upkeep.ts';
import type { WorkingMemory } from '../../ports/working-memory.ts';
import type { ScopeJournal } from '../../runtime/scope-journal.ts';
import type { EffectsSession } from '../effects/effects-session.ts';
import type { SessionScope } from './session-scope.ts';
import type { Snapshots } from './snapshots.ts';

export interface HostedSession extends EffectsSession {
  /** The ports that the subagents of background calls work for. */
  readonly ofCalls: SessionScope;
  /** The ports of the subagents that the lead agent spawned by a tool. */
  readonly ofLead: SessionScope;
  /** The journal as this session sees it. */
  readonly journal: ScopeJournal;
  readonly snapshots: Snapshots;
  readonly upkeep: Upkeep;
  readonly supervisor: Supervisor;
  readonly workingMemory: WorkingMemory | undefined;
  /** Entries that this process could not apply. */
  readonly setAside: readonly SetAsideEntry[];
}
