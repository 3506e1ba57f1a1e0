// A program with a subagent on a hosted agent. The test kills it: `node killed-program.ts <folder> <url>`.

import { a2aRelay } from '../../../../src/adapters/a2a/index.ts';
import { liveOn } from '../../../support/relay-life.ts';

const [folder = '', url = ''] = process.argv.slice(2);

await liveOn({
  folder,
  relay: a2aRelay({ url }),
  acts: [
    { progress: 'looking' },
    { permission: { title: 'Pay', kind: 'authorization', input: { amount: 3 } } },
    { question: 'First question?' },
    { question: 'Second question?' },
    { permission: { title: 'Share', kind: 'authorization', input: { with: 'all' } } },
    { say: 'Done.' },
  ],
  allowed: 'Pay',
});
