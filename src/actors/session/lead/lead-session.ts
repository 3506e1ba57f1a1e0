// The session, as the drivers of its lead agents see it.

import type { SubagentTree } from '../../subagents/subagent-tree.ts';
import type { AgentsSession, LeadAgents } from './lead-agents.ts';

export interface LeadSession extends AgentsSession {
  /** The agents: the current one, and the instructions and tools of each. */
  readonly agents: LeadAgents;
  readonly tree: SubagentTree;
  /** The waits of the app. */
  readonly awaited: {
    /** True while an app waits for results. */
    readonly isListening: boolean;
    /** Returns whether an app waits for one of these deliveries. */
    wants(deliveryIds: readonly string[]): boolean;
  };
  /** Reports an error that does not end the session. */
  reportError(error: unknown, where: string): void;
}
