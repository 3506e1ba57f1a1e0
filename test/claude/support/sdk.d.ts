// The types of sdk.js for installs without the SDK.

import type { ClaudeQuery } from '../../../src/adapters/claude/index.ts';

export const query: ClaudeQuery;
