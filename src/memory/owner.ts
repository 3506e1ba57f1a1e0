// The owner of the memory that a tool call uses.

import { callerOf, type Caller } from '../actors/model/caller.ts';
import { THE_LEAD } from '../actors/contracts/service-types.ts';
import type { MemoryOwner } from '../actors/ports/working-memory.ts';

/** Returns the agent that made this call, by the options of its `execute`; null outside Offstage. */
export function memoryOwnerOf(options: unknown): MemoryOwner | null {
  const caller = callerOf(options as object | undefined);
  return caller ? { sessionId: caller.sessionId, path: pathOf(caller) } : null;
}

/**
 * Returns the path from the lead agent's own subagent down to the caller. The ancestors of a running subagent
 * run.
 */
function pathOf({ subagentId, parentId, service }: Caller): readonly string[] {
  const path = subagentId === null ? [] : [subagentId];
  for (let id = parentId; id !== null;) {
    path.unshift(id);
    const checked = service.check(id, THE_LEAD);
    id = checked.ok ? checked.report.parentId : null;
  }
  return path;
}
