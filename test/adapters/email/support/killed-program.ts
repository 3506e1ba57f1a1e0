// One run of a program whose session sends a notice by e-mail. Its process may be killed at any time.
//
// Arguments: the journal's folder, the SMTP server's port, and whether the user is present.

import { join } from 'node:path';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { emailChannel } from '../../../../src/adapters/email/index.ts';
import { sqliteJournal } from '../../../../src/adapters/sqlite-journal/index.ts';
import { createRuntime } from '../../../../src/index.ts';
import { textTalk } from '../../../support/text-talk.ts';
import { createTransport } from './post-office.ts';

const [folder = '', port = '', user = ''] = process.argv.slice(2);
const environment = nodeEnvironment();
const journal = sqliteJournal({ path: join(folder, 'a.journal'), environment });
const mail = emailChannel({
  transport: createTransport({ host: '127.0.0.1', port: Number(port), secure: false }),
  from: 'bot@example.com',
  to: 'ada@example.com',
});
const { session } = textTalk({
  runtime: createRuntime({ environment, journal, snapshots: { trim: true } }),
  environment,
  sessionId: 'ses',
  reach: { channels: { mail }, steps: [{ afterUnheardMs: 30, by: 'mail' }] },
});

async function over(word: string): Promise<void> {
  console.log(word);
  await session.suspend();
  journal.close();
  process.exit(0);
}

session.events.subscribe((event) => {
  if (event.type !== 'delivery.changed') return;
  const { reach, state, grade } = event.delivery;
  if (user === '' && reach?.state === 'spent') void over('sent');
  if (state === 'delivered') void over(`heard ${grade}`);
});
session.parts.subscribe((part) => {
  if (user !== '' && part.type === 'text.done')
    console.log(`said ${part.text.replaceAll('\n', ' ')}`);
});
const leave = session.attach();
await session.start();
if (user === '') leave();
console.log('begun');
const isNew = !journal.read().some((entry) => JSON.stringify(entry).includes('Parcel'));
if (isNew) session.notifyBackground('Parcel');
