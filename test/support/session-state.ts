// The state of a session in which nothing has happened yet.

import type { SessionState } from '../../src/index.ts';

export const emptyState: SessionState = {
  connection: 'active',
  floor: 'nobody',
  agent: 'lead',
  transcript: [],
  subagents: [],
  questions: [],
  deliveries: [],
  usage: { inputTokens: null, outputTokens: null },
  limits: [],
};
