// The session as those parts of it see it that begin it, put it back from its journal and put it away.

import type { Supervisor } from '../../admission/supervisor.ts';
import type { SetAsideEntry } from '../../contracts/session-views.ts';
import type { Upkeep } from '../../context/upkeep.ts';
import type { WorkingMemory } from '../../ports/working-memory.ts';
import type { ScopeJournal } from '../../runtime/scope-journal.ts';
import type { EffectsSession } from '../effects/effects-session.ts';
import type { SessionScope } from './session-scope.ts';
import type { Snapshots } from './snapshots.ts';

export interface HostedSession extends EffectsSession {
  /** Whom the subagents of background calls work for. */
  readonly ofCalls: SessionScope;
  /** Whom the subagents that the lead agent spawned by a tool work for. */
  readonly ofLead: SessionScope;
  /** As this session sees it. */
  readonly journal: ScopeJournal;
  readonly snapshots: Snapshots;
  readonly upkeep: Upkeep;
  readonly supervisor: Supervisor;
  readonly workingMemory: WorkingMemory | undefined;
  /** Entries that could not be taken in by this process. */
  readonly setAside: readonly SetAsideEntry[];
}
