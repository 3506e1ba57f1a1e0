// One run of a program whose subagent needs an approval, with its sessions on SQLite.
//
// Arguments: the journal's folder, the SMTP server's port, and `asks` (sends the approval by e-mail, and ends) or
// `serves` (serves the page of the link, and writes what happens).

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { emailChannel } from '../../../../src/adapters/email/index.ts';
import { sqliteJournal } from '../../../../src/adapters/sqlite-journal/index.ts';
import { createSessionPool } from '../../../../src/entries/journal.ts';
import { createRuntime, type TextSession } from '../../../../src/index.ts';
import { answerLinks, serve } from '../../../../src/serve/index.ts';
import { turns } from '../../../support/crashes.ts';
import { calls, say } from '../../../support/subagent-runs.ts';
import { textTalk } from '../../../support/text-talk.ts';
import { createTransport } from './post-office.ts';

const [folder = '', port = '', does = ''] = process.argv.slice(2);
const environment = nodeEnvironment();
const journal = sqliteJournal({ path: join(folder, 'a.journal'), environment });
const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
const mail = emailChannel({
  transport: createTransport({ host: '127.0.0.1', port: Number(port), secure: false }),
  from: 'bot@example.com',
  to: 'ada@example.com',
});
const links = answerLinks({ secret: 's'.repeat(32), url: 'https://app.example.com/answer' });
const pay = {
  description: 'Pays',
  inputSchema: z.object({ amount: z.number() }),
  needsApproval: true,
  execute({ amount }: { readonly amount: number }) {
    console.log(`paid ${amount}`);
    return 'paid';
  },
};
const pool = createSessionPool<TextSession>({
  runtime,
  open(sessionId) {
    const { session } = textTalk({
      sessionId,
      runtime,
      user: 'ada',
      reach: { channels: { mail }, steps: [{ afterUnheardMs: 30, by: 'mail' }], links },
      subagents: {
        pay: {
          script: turns(calls(['pay', { amount: 5 }]), say('Paid.')),
          config: { tools: { pay } },
        },
      },
    });
    session.events.subscribe((event) => {
      if (event.type === 'subagent.ended') console.log(`ended ${event.outcome.status}`);
    });
    return session;
  },
});
await pool.start();
if (does === 'asks') {
  await pool.use('ses', async (session) => {
    const sent = new Promise<void>((resolve) => {
      session.events.subscribe((event) => {
        if (event.type === 'delivery.changed' && event.delivery.reach?.state === 'spent') resolve();
      });
    });
    await session.sendText('use pay');
    await sent;
  });
  await pool.close();
  journal.close();
  console.log('asked');
} else {
  const web = serve({
    pool,
    links,
    authorize: ({ headers, sessionId }) => {
      const user = headers.get('cookie')?.replace('user=', '');
      return user === undefined || sessionId === null ? null : { sessionId, user, role: 'user' };
    },
  });
  const http = createServer((request, response) => web.handle(request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  console.log(`port ${(http.address() as AddressInfo).port}`);
}
