// The state of a new session.

import type { SessionState } from '../../src/index.ts';

export const emptyState: SessionState = {
  connection: 'active',
  outage: null,
  floor: 'nobody',
  agent: 'lead',
  transcript: [],
  subagents: [],
  questions: [],
  deliveries: [],
  schedules: [],
  present: [],
  usage: {
    lead: { inputTokens: null, outputTokens: null },
    subagents: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    total: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  },
  limits: [],
};
