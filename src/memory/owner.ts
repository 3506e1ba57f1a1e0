// Whose memory a tool call works on.

import { callerOf, type Caller } from '../actors/model/caller.ts';
import { THE_LEAD } from '../actors/contracts/service-types.ts';
import type { MemoryOwner } from '../actors/ports/working-memory.ts';

/** The agent whose call this is, by the options of its `execute`; null outside Offstage. */
export function memoryOwnerOf(options: unknown): MemoryOwner | null {
  const caller = callerOf(options as object | undefined);
  return caller ? { sessionId: caller.sessionId, path: pathOf(caller) } : null;
}

/** From the lead agent's own subagent down to the caller. Whoever runs has ancestors that run. */
function pathOf({ subagentId, parentId, service }: Caller): readonly string[] {
  const path = subagentId === null ? [] : [subagentId];
  for (let id = parentId; id !== null;) {
    path.unshift(id);
    const checked = service.check(id, THE_LEAD);
    id = checked.ok ? checked.report.parentId : null;
  }
  return path;
}
