// A program's process: one durable run of the rides on an engine, with immediate answers. It prints its outcome.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { createRuntime } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { engineOf } from './engine-of.ts';
import { rides } from './rides.ts';

const { JOURNAL = '', BRIDGE = '', ENGINE = '' } = process.env;
const environment = nodeEnvironment();
const runtime = createRuntime({
  environment,
  journal: sqliteJournal({ path: JOURNAL, environment }),
  jobs: await engineOf(ENGINE),
});
const { result } = runSubagent(rides(BRIDGE), 'To the airport', {
  runtime,
  id: 'ride-1',
  onQuestion: () => ({ text: 'The cheap one' }),
});
const { status, text, error, toolLedger } = await result;
const ledger = toolLedger.map(({ toolName, status: how }) => `${toolName} ${how}`);
process.stdout.write(`${JSON.stringify({ status, text, error, ledger })}\n`);
process.exit(0);
