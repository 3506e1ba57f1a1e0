// The types of sdk.js where the SDK is not installed.

import type { ClaudeQuery } from '../../../src/adapters/claude/index.ts';

export const query: ClaudeQuery;
