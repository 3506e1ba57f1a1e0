// The path of the agent in these tests.

import { fileURLToPath } from 'node:url';

export const AGENT = fileURLToPath(new URL('agent.ts', import.meta.url));
