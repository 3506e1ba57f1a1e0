// Where the agent of these tests is.

import { fileURLToPath } from 'node:url';

export const AGENT = fileURLToPath(new URL('agent.ts', import.meta.url));
