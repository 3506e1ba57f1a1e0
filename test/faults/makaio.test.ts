// The faults of a toolset for parents and children, by number, except for those that a test of the service covers.
// `README.md` lists the faults that cannot occur here.

import { expect, test } from 'vitest';
import { scriptedModel } from '../../src/testing/index.ts';
import { puppets } from '../support/puppets.ts';

test(
  "emits an event that matches a subagent's final state, however the subagent ends",
  { tags: ['MW8'] },
  async () => {
    const stage = puppets({ graceMs: 1000 });
    const { service, environment, chunks, look } = stage;
    // The model fails, a call is killed, and the service is closed.
    const model = scriptedModel([{ error: new Error('the session of the adapter is closed') }]);
    const gone = stage.spawn('gone', { config: { model, retry: { maxAttempts: 1 } } });
    await environment.settle();
    const killed = stage.spawn('killed');
    service.cancel(killed, { subagentId: null }, 'killed');
    await environment.settle();
    const closed = stage.spawn('closed');
    await environment.settle();
    const closing = service.close();
    await environment.advance(1000);
    await closing;
    const ends = chunks.flatMap((chunk) =>
      chunk.type === 'ended' ? [[chunk.subagentId, chunk.outcome.status]] : [],
    );
    expect(ends).toEqual([
      [gone, 'failed'],
      [killed, 'cancelled'],
      [closed, 'cancelled'],
    ]);
    expect([gone, killed, closed].map((id) => look(id)?.outcome?.status)).toEqual(
      ends.map(([, status]) => status),
    );
  },
);
