// A pool of sessions on PostgreSQL, which several processes run.
//
// As a process: `node sleepers.ts <host> <schema> <lease in ms>` hibernates the session `asleep`, which waits an hour
// for its user, uses the session `awake` forever, and prints `ready`.

import { createRuntime, type Environment } from '../../../src/index.ts';
import { createSessionPool } from '../../../src/entries/journal.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  postgresJournal,
  type PostgresJournal,
} from '../../../src/adapters/postgres-journal/index.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

export const ASK_MS = 3_600_000;

export interface SleepersOptions {
  readonly environment: Environment;
  readonly opened?: (sessionId: string) => void;
  readonly said?: (sessionId: string, text: string) => void;
  readonly failed: (where: string) => void;
}

export function sleepersOn(
  journal: PostgresJournal,
  { environment, opened, said, failed }: SleepersOptions,
) {
  const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
  return createSessionPool({
    runtime,
    idleMs: 20,
    lookMs: 100,
    onError: (_error, where) => failed(where),
    open(sessionId) {
      opened?.(sessionId);
      const { session } = textTalk({
        sessionId,
        runtime,
        subagents: {
          paint: {
            script: turns(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
              say(`Painted: ${JSON.stringify(results.at(-1))}`),
            ),
            config: { interactive: true, inputTimeout: ASK_MS },
          },
        },
      });
      session.parts.subscribe((part) => {
        if (part.type === 'text.done') said?.(sessionId, part.text);
      });
      return session;
    },
  });
}

if (import.meta.main) {
  const [host = '', schema = '', leaseMs = ''] = process.argv.slice(2);
  const environment = nodeEnvironment();
  const journal = await postgresJournal({
    connection: { host, user: 'offstage', database: 'postgres' },
    environment,
    schema,
    leaseMs: Number(leaseMs),
  });
  const tell = (line: string): unknown => process.stdout.write(`${line}\n`);
  const pool = sleepersOn(journal, { environment, failed: tell });
  await pool.use('asleep', (session) => session.sendText('use paint'));
  await pool.use('awake', (session) => session.sendText('hello'));
  void pool.use('awake', () => new Promise(() => {}));
  const wait = (): void => {
    if (pool.awakeCount > 1) environment.scheduler.schedule(wait, 5);
    else tell('ready');
  };
  wait();
}
