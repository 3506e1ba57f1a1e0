// A served session that books rides, with a SQLite journal: `<runtime> ride-server.ts <folder>`. Prints its link.

import process from 'node:process';
import { join } from 'node:path';
import { createRuntime, TextSession } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { serveLocally } from '../../src/serve/index.ts';
import { rideConfig, rideScript } from '../support/ride.ts';
import { agentsOf, castOf, configsOf } from '../support/text-talk.ts';

const [folder = ''] = process.argv.slice(2);
const environment = nodeEnvironment();
const journal = sqliteJournal({ path: join(folder, 'journal.sqlite'), environment });
const talk = {
  subagents: {
    book_ride: {
      script: rideScript,
      config: { tools: rideConfig.tools ?? {}, interactive: true },
    },
  },
};
const session = new TextSession({
  sessionId: 's1',
  runtime: createRuntime({ environment, journal }),
  model: castOf(talk),
  agents: agentsOf(talk),
  subagentConfigs: configsOf(talk),
});
const { url } = await serveLocally({
  session,
  page: () => (_request, response) => void response.end('the page'),
  port: 0,
  tokenFile: join(folder, '.token'),
});
process.stdout.write(`${url}\n`);
