// The engine that a program's process asks, by a text such as `restate http://127.0.0.1:8080`.

import { restateJobs } from '../../../src/adapters/restate/index.ts';
import type { Jobs } from '../../../src/entries/jobs.ts';

export async function engineOf(named: string): Promise<Jobs> {
  const [engine, address = ''] = named.split(' ');
  if (engine === 'restate') return restateJobs({ ingress: address });
  throw new Error(`unknown engine ${named}`);
}
