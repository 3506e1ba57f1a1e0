// The lead agent requests work that is already running.

import { describe, expect, test } from 'vitest';
import type { SubagentConfig } from '../../../../src/index.ts';
import { textTalk, type ScriptedSubagent, type TalkOptions } from '../../../support/text-talk.ts';

/** A subagent that works until the test releases it. */
function slow(config: Partial<SubagentConfig> = {}) {
  const waiting: (() => void)[] = [];
  const subagent: ScriptedSubagent = {
    script: () =>
      new Promise((resolve) => waiting.push(() => resolve({ text: `done ${waiting.length}` }))),
    config,
  };
  return { subagent, waiting };
}

function talk(duplicates?: SubagentConfig['duplicates'], pending?: null, more: TalkOptions = {}) {
  const { subagent, waiting } = slow(duplicates === undefined ? {} : { duplicates });
  const it = textTalk({
    ...more,
    subagents: { report: { ...subagent, ...(pending === null ? { pending } : {}) } },
  });
  const outputs = () =>
    it.events.flatMap((event) => (event.type === 'tool.answered' ? [event.output] : []));
  const states = () => it.state().subagents.map(({ state }) => state);
  return { ...it, waiting, outputs, states };
}

describe('users row 8: a second call for the same work', () => {
  test('join (default): does not start a second subagent, and delivers one result', async () => {
    const { start, type, states, outputs, waiting, environment, said, state, close } = talk();
    await start();
    await type('use report {"a":1,"b":2}');
    await type('use report {"b":2,"a":1}');
    expect(states()).toEqual(['running']);
    expect(outputs()[1]).toMatchObject({
      status: 'already_in_progress',
      subagentId: state().subagents[0]?.id,
      message: expect.stringMatching(/^(?!.*sub_).*once/),
    });
    waiting[0]?.();
    await environment.advance(60_000);
    expect(said().filter((text) => text.includes('done'))).toHaveLength(1);
    expect(state().deliveries).toHaveLength(1);
    await close();
  });

  test('starts separate work if its arguments differ or the first call has ended', async () => {
    const { start, type, states, waiting, environment } = talk();
    await start();
    await type('use report {"a":1}');
    await type('use report {"a":2}');
    expect(states()).toEqual(['running', 'running']);
    waiting[0]?.();
    await environment.settle();
    await type('use report {"a":1}');
    expect(states()).toEqual(['completed', 'running', 'running']);
  });

  test('reject: returns an error with the reason', async () => {
    const { start, type, states, outputs } = talk('reject');
    await start();
    await type('use report');
    await type('use report');
    expect(states()).toEqual(['running']);
    expect(outputs()[1]).toEqual({ error: expect.stringContaining('at work on exactly this') });
  });

  test('replace: cancels the first call', async () => {
    const { start, type, states, state } = talk('replace');
    await start();
    await type('use report');
    await type('use report');
    expect(states()).toEqual(['cancelled', 'running']);
    expect(state().subagents[0]?.outcome?.error?.message).toContain('asked for anew');
  });

  test('replace: keeps the first call if the new call is refused', async () => {
    const { start, type, states, outputs } = talk('replace', undefined, {
      limits: { maxLivePerSession: 1 },
    });
    await start();
    await type('use report');
    await type('use report');
    expect(states()).toEqual(['running']);
    expect(outputs()[1]).toEqual({ error: expect.stringContaining('maxLivePerSession') });
  });

  test('confirm: waits until the user speaks again', async () => {
    const { start, type, states, outputs } = talk('confirm');
    await start();
    await type('use report');
    // Both calls answer the same utterance, so the second does not confirm the first.
    await type('use report and report');
    expect(states()).toEqual(['running']);
    expect(outputs()[1]).toMatchObject({ status: 'needs_confirmation' });
    expect(outputs()[2]).toMatchObject({ status: 'needs_confirmation' });
    await type('use report');
    expect(states()).toEqual(['running', 'running']);
    // The work was confirmed once.
    await type('use report');
    expect(states()).toEqual(['running', 'running']);
  });

  test(
    'gets an immediate answer, even if the first call is still open',
    { tags: ['BW26'] },
    async () => {
      const { start, type, states, outputs, waiting, environment, said } = talk('join', null);
      await start();
      await type('use report');
      await type('use report');
      expect(outputs()).toMatchObject([{ status: 'already_in_progress' }]);
      waiting[0]?.();
      await environment.advance(60_000);
      expect(states()).toEqual(['completed']);
      expect(said().some((text) => text.includes('done'))).toBe(true);
    },
  );
});
