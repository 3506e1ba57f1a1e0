// The engine in a program's process, given as a text such as `restate http://127.0.0.1:8080`.

import { restateJobs } from '../../../src/adapters/restate/index.ts';
import { temporalJobs } from '../../../src/adapters/temporal/index.ts';
import type { Jobs } from '../../../src/entries/jobs.ts';

export async function engineOf(named: string): Promise<Jobs> {
  const [engine, address = ''] = named.split(' ');
  if (engine === 'restate') return restateJobs({ ingress: address });
  if (engine === 'temporal') {
    const { connect } = await import('./temporal-client.js');
    const { client } = await connect(address);
    return temporalJobs({ client, heartbeatTimeoutMs: 1_000 });
  }
  throw new Error(`unknown engine ${named}`);
}
