// A session that only records the calls of the lead agent's tools.

import type { LeadSession } from '../../../examples/voice-demo/agents/lead-agent.ts';
import { emptyState } from '../../support/session-state.ts';

export class FakeSession implements LeadSession {
  /** Every call, as `[method, ...arguments]`. */
  readonly calls: unknown[][] = [];
  state = emptyState;
  readonly store = { getSnapshot: () => ({ context: this.state }) };
  readonly subagents = {
    list: () => this.state.subagents,
    cancel: (id: string, reason: string) => this.calls.push(['cancel', id, reason]),
  };
}
