// A lasting permission on the real Claude Code (CLAUDE-SESSION-3): the same call runs again without a question, even in
// later processes, while another call asks.

import { expect, onTestFinished, test } from 'vitest';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import type { RelayEvent } from '../../src/entries/subagents.ts';
import { actsPrompt } from '../../src/testing/doubles/relay-acts.ts';
import { claudeStage } from './support/claude-stage.ts';
import { query } from './support/sdk.js';

const permission = (path: string) => ({
  permission: { title: 'ask', kind: 'other', input: { path } },
});

test('does not ask again about a call that has lasting permission, but asks about other calls', async () => {
  const { relay, endpoint, close } = await claudeStage(query);
  onTestFinished(close);
  const { scheduler, ids } = nodeEnvironment();
  const asked: unknown[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<RelayEvent>();
  const session = await relay.start({
    subagentId: 'sub_1',
    signal: new AbortController().signal,
    scheduler,
    ids,
    receive(event) {
      if (event.type === 'permission') {
        asked.push(event.input);
        const isFirst = asked.length === 1;
        session.answer(
          event.requestId,
          isFirst ? { type: 'permitted', lasting: true } : { type: 'denied', words: 'No' },
        );
      } else if (event.type === 'turn_ended' || event.type === 'closed') resolve(event);
    },
    report: () => {},
  });
  const acts = [permission('a'), permission('a'), permission('b'), permission('a')];
  session.prompt({ key: 'k', text: actsPrompt(...acts, { say: 'Done.' }) });
  expect(await ended).toMatchObject({ type: 'turn_ended', reason: 'completed' });
  await session.release('ended');
  expect(asked).toEqual([{ path: 'a' }, { path: 'b' }]);
  expect(endpoint.results).toEqual(['permitted. ', 'permitted. ', 'denied. ', 'permitted. ']);
});
