// A suspended session has left memory but has not ended.

import { describe, expect, test } from 'vitest';
import { ProviderError, type Journal } from '../../../src/index.ts';
import { textLife, turns, voiceLife, world } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../../support/text-talk.ts';

const asking: TalkOptions = {
  subagents: {
    ride: {
      script: turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
        say(`Booked ${JSON.stringify(results[0])}`),
      ),
      config: { interactive: true },
    },
  },
};

describe('a suspended session', () => {
  test('leaves no timer running, does not cancel subagents and resumes when started again', async () => {
    const of = world();
    const disposed: string[] = [];
    const ends: string[] = [];
    const options: TalkOptions = {
      ...asking,
      hooks: { onSubagentEnd: ({ subagentName }) => void ends.push(subagentName) },
      subagents: {
        ride: {
          script: asking.subagents?.['ride']?.script ?? (() => say('')),
          config: { interactive: true, dispose: () => void disposed.push('ride') },
        },
      },
    };
    const before = textLife(of, options);
    await before.start();
    await before.type('use ride');
    await before.session.suspend();
    expect(before.events.at(-1)).toEqual({ type: 'session.suspended', error: null });
    expect(of.environment.pendingTimers).toBe(0);
    expect(disposed).toEqual(['ride']);
    expect(ends).toEqual([]);
    await before.session.suspend();
    await before.session.close();

    const after = textLife(of, options);
    await after.start();
    expect(after.question()).toMatchObject({ requestId: 'sub_1.q1', state: 'open' });
    await after.type('economy');
    expect(after.said().join('\n')).toContain('economy');
    expect(ends).toEqual(['ride']);
    await after.close();
  });

  test('frees its id immediately, even in the same process and runtime', async () => {
    const { runtime } = world().begin();
    const first = textTalk({ ...asking, runtime, sessionId: 'same' });
    await first.session.start();
    await first.session.sendText('use ride');
    await first.session.suspend();
    const second = textTalk({ ...asking, runtime, sessionId: 'same' });
    await second.session.start();
    expect(second.state().transcript).toMatchObject([{ text: 'use ride' }]);
    await second.session.suspend();
  });

  test('writes pending input first', async () => {
    const of = world();
    const before = textLife(of);
    await before.start();
    void before.session.sendText('hello');
    void before.session.sendText('and again');
    await before.session.suspend();
    const after = textLife(of);
    await after.start();
    expect(after.state().transcript.filter(({ role }) => role === 'user')).toMatchObject([
      { text: 'hello' },
      { text: 'and again' },
    ]);
    await after.close();
  });

  test('aborts a running tool and leaves its call in doubt unless it may be repeated', async () => {
    const of = world();
    let aborted = 0;
    const working: TalkOptions = {
      subagents: {
        work: {
          script: turns(calls(['wait']), ({ results }) => say(JSON.stringify(results))),
          config: {
            tools: {
              wait: simpleTool(
                ({ abortSignal }) =>
                  new Promise((_, reject) => {
                    abortSignal?.addEventListener('abort', () => {
                      aborted += 1;
                      reject(new Error('aborted'));
                    });
                  }),
              ),
            },
          },
        },
      },
    };
    const before = textLife(of, working);
    await before.start();
    await before.type('use work');
    await before.session.suspend();
    expect(aborted).toBe(1);
    const after = textLife(of, working);
    await after.start();
    expect(after.said().join('\n')).toContain('whether it was done is not known');
    await after.close();
  });

  test('closes its voice connection', async () => {
    const of = world();
    const before = voiceLife(of);
    await before.start();
    await before.session.suspend();
    expect(of.transport.current.isClosed).toBe(true);
    expect(of.environment.pendingTimers).toBe(0);
  });

  test('writes nothing if it was never started', async () => {
    const of = world();
    const talk = textLife(of);
    await talk.session.suspend();
    expect(of.entries).toEqual([]);
    await expect(talk.session.start()).rejects.toMatchObject({ code: 'SESSION_SUSPENDED' });
  });
});

describe('a session whose journal belongs to another process', () => {
  test('ends in this process with a report, without cancelling any work', async () => {
    const of = world();
    const { process } = of.begin();
    let isFenced = false;
    const entries: unknown[] = [];
    const journal: Journal = {
      append(entry) {
        if (isFenced)
          throw new ProviderError('FENCED', 'another process writes it', { retryable: false });
        entries.push(entry);
      },
      read: () => [],
    };
    const ends: string[] = [];
    const talk = textTalk({
      ...asking,
      environment: process.environment,
      journal,
      hooks: { onSubagentEnd: ({ subagentName }) => void ends.push(subagentName) },
    });
    await talk.session.start();
    await talk.session.sendText('use ride');
    await of.environment.settle();
    isFenced = true;
    const count = entries.length;
    await expect(talk.session.sendText('hello')).rejects.toMatchObject({ code: 'FENCED' });
    await of.environment.settle();
    expect(talk.events.at(-1)).toMatchObject({
      type: 'session.suspended',
      error: { code: 'FENCED' },
    });
    expect(entries).toHaveLength(count);
    expect(ends).toEqual([]);
    expect(of.environment.pendingTimers).toBe(0);
  });
});
