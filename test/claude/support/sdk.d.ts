// The types of sdk.js for installations without the SDK.

import type { ClaudeQuery } from '../../../src/adapters/claude/index.ts';

export const query: ClaudeQuery;
