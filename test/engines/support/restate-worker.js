// A worker's process: the service of restateJobService. Its hands are those of `jobs.js`, by the name in HANDS.

import * as restate from '@restatedev/restate-sdk';
import { restateJobService } from '../../../src/adapters/restate/index.ts';
import { handsOf } from './worker-hands.ts';

const service = restateJobService({ restate, hands: handsOf(process.env) });
await restate.serve({ services: [service], port: Number(process.env.PORT) });
