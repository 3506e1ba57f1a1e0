import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { postgresJournal } from '../../../src/adapters/postgres-journal/index.ts';
import { runJournalConformance } from '../../testing/journal-conformance/support/run-journal-conformance.ts';
import { connection, expireLeases, newSchema, open } from './support.ts';

/** Leases are not renewed meanwhile, so each case decides when they expire. */
const leaseMs = 600_000;

runJournalConformance({
  name: 'postgresJournal',
  offers: ['scopes', 'readAfter', 'trim', 'forget', 'claim', 'reopen', 'wakeTimes', 'desk'],
  async open() {
    const schema = newSchema();
    const another = () => open({ schema, leaseMs });
    // The journal is not closed at the end of the test, because a process that died closes nothing.
    const journal = await postgresJournal({
      connection,
      environment: nodeEnvironment(),
      schema,
      leaseMs,
    });
    return {
      journal,
      another,
      expire: () => expireLeases(schema),
      async reopen() {
        await expireLeases(schema);
        return another();
      },
      close: () => journal.close(),
    };
  },
});
