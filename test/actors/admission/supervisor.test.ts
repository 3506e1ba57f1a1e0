// Admission: each limit is tested below, at and above its value, in one step, with an error that names the limit.

import { describe, expect, test } from 'vitest';
import { sessionLimits, type SessionLimits } from '../../../src/actors/admission/limits.ts';
import { Supervisor } from '../../../src/actors/admission/supervisor.ts';

function supervised(limits: Partial<SessionLimits> = {}, maxTotalActive = 50) {
  const supervisor = new Supervisor(maxTotalActive);
  supervisor.open('s', sessionLimits(limits));
  const running: string[] = [];
  return {
    supervisor,
    running,
    admit: (id: string) => supervisor.admit('s', id),
    run: (id: string) => supervisor.requestSlot('s', id, false, () => running.push(id)),
  };
}

const accepted = null;
const rejected = (code: string, ...words: string[]) => ({
  code,
  message: expect.stringMatching(new RegExp(words.join('.*'))),
});

describe('SUPERVISOR-1: decides on each request exactly once', () => {
  test('maxLivePerSession: counts subagents that have not ended', { tags: ['M26'] }, () => {
    const { supervisor, admit } = supervised({ maxLivePerSession: 2 });
    expect(admit('1')).toEqual(accepted);
    expect(admit('2')).toEqual(accepted);
    expect(admit('3')).toEqual(rejected('SESSION_LIMIT', '2 subagents', 'maxLivePerSession is 2'));
    // SUPERVISOR-2: an ended subagent no longer counts.
    supervisor.ended('s', '1');
    expect(admit('4')).toEqual(accepted);
  });

  test("maxTotalPerSession: counts all subagents over the session's whole life", () => {
    const { supervisor, admit } = supervised({ maxTotalPerSession: 2 });
    for (const id of ['1', '2']) {
      expect(admit(id)).toEqual(accepted);
      supervisor.ended('s', id);
    }
    expect(admit('3')).toEqual(rejected('SESSION_LIMIT', 'maxTotalPerSession is 2'));
  });

  test('maxTotalPerSession: counts all subagents from an earlier process, including ended ones', () => {
    const { supervisor, admit } = supervised({ maxTotalPerSession: 4 });
    supervisor.readmit('s', '1');
    supervisor.remember('s', 2);
    expect(admit('4')).toEqual(accepted);
    expect(admit('5')).toEqual(rejected('SESSION_LIMIT', 'has had 4'));
  });

  test('does not count a subagent that is retracted in the same step', () => {
    const { supervisor, admit } = supervised({ maxTotalPerSession: 1 });
    expect(admit('1')).toEqual(accepted);
    supervisor.retract('s', '1');
    expect(admit('2')).toEqual(accepted);
    expect(admit('3')).toEqual(rejected('SESSION_LIMIT', 'has had 1'));
  });

  test('frees the slot of a subagent that is waiting for something else', () => {
    const { supervisor, admit } = supervised({ maxConcurrentPerSession: 1, whenFull: 'reject' });
    expect(admit('1')).toEqual(accepted);
    expect(admit('2')).toEqual(rejected('SESSION_LIMIT'));
    supervisor.waitsElsewhere('s', '1');
    expect(admit('2')).toEqual(accepted);
  });

  test('refuses subagents for a session that is not open', () => {
    const { supervisor, admit } = supervised();
    supervisor.close('s');
    expect(admit('1')).toEqual(rejected('SESSION_CLOSED', 'closed'));
  });
});

describe('whenFull', () => {
  test('queue: accepts the request, and waits for a slot', () => {
    const { supervisor, admit, run, running } = supervised({ maxConcurrentPerSession: 1 });
    expect(admit('1')).toEqual(accepted);
    run('1');
    expect(admit('2')).toEqual(accepted);
    run('2');
    expect(running).toEqual(['1']);
    supervisor.ended('s', '1');
    expect(running).toEqual(['1', '2']);
  });

  test('reject: applies maxConcurrentPerSession below, at and above the limit', () => {
    const { supervisor, admit, run } = supervised({
      maxConcurrentPerSession: 2,
      whenFull: 'reject',
    });
    for (const id of ['1', '2']) {
      expect(admit(id)).toEqual(accepted);
      run(id);
    }
    expect(admit('3')).toEqual(rejected('SESSION_LIMIT', 'maxConcurrentPerSession is 2'));
    supervisor.ended('s', '1');
    expect(admit('4')).toEqual(accepted);
  });

  test(
    'SUPERVISOR-1: reject: gives the last place to only one of two simultaneous requests',
    { tags: ['R12', 'RW7'] },
    () => {
      const { supervisor, admit, run } = supervised({
        maxConcurrentPerSession: 1,
        whenFull: 'reject',
      });
      expect(admit('1')).toEqual(accepted);
      // The first has not requested its slot yet, because it is still being prepared.
      expect(admit('2')).toEqual(rejected('SESSION_LIMIT', 'maxConcurrentPerSession is 1'));
      // The first one ends before then, so its place is free again.
      supervisor.ended('s', '1');
      expect(admit('3')).toEqual(accepted);
      run('3');
      // A subagent that is waiting for the user holds no slot (SLOTS-3), so another may take its place.
      supervisor.releaseSlot('s', '3');
      expect(admit('4')).toEqual(accepted);
    },
  );

  test('SUPERVISOR-1: reject: gives the last place across all sessions to only one request', () => {
    const { supervisor, admit } = supervised({ whenFull: 'reject' }, 2);
    supervisor.open('t', sessionLimits({ whenFull: 'reject' }));
    expect(admit('1')).toEqual(accepted);
    expect(supervisor.admit('t', '2')).toEqual(accepted);
    expect(admit('3')).toEqual(rejected('GLOBAL_LIMIT', 'maxTotalActive is 2'));
    supervisor.ended('t', '2');
    expect(admit('4')).toEqual(accepted);
  });

  test('SUPERVISOR-2: frees the place of a closed session', () => {
    const { supervisor, admit } = supervised({ whenFull: 'reject' }, 1);
    supervisor.open('t', sessionLimits({ whenFull: 'reject' }));
    expect(supervisor.admit('t', '1')).toEqual(accepted);
    supervisor.close('t');
    expect(admit('2')).toEqual(accepted);
  });
});

test('SLOTS-2: shares the free slots among sessions in order', () => {
  const { supervisor } = supervised({}, 2);
  supervisor.open('t', sessionLimits({}));
  const running: string[] = [];
  const run = (session: string, id: string): void => {
    supervisor.admit(session, id);
    supervisor.requestSlot(session, id, false, () => running.push(id));
  };
  for (const [session, id] of [
    ['s', 's1'],
    ['s', 's2'],
    ['s', 's3'],
    ['t', 't1'],
    ['s', 's4'],
    ['t', 't2'],
  ] as const)
    run(session, id);
  for (const [session, id] of [
    ['s', 's1'],
    ['s', 's2'],
    ['s', 's3'],
    ['t', 't1'],
  ] as const)
    supervisor.ended(session, id);
  expect(running).toEqual(['s1', 's2', 's3', 't1', 's4', 't2']);
});

describe('limits', () => {
  test('default to the documented values', { tags: ['R40', 'M26'] }, () => {
    expect(sessionLimits()).toEqual({
      maxConcurrentPerSession: 10,
      maxLivePerSession: 100,
      maxTotalPerSession: 1000,
      maxDepth: 3,
      whenFull: 'queue',
      maxDeliveries: 200,
      maxSchedules: 100,
      defaultRequestTimeoutMs: 60_000,
      defaultAwaitTimeoutMs: 300_000,
      stateRetentionMs: 1_800_000,
      inactivityTimeoutMs: 0,
      sweepIntervalMs: 60_000,
      allowedAdapters: [],
      allowedModels: [],
    });
  });

  test.each([
    [{ maxDepth: 0 }, 'maxDepth'],
    [{ maxLivePerSession: 1.5 }, 'maxLivePerSession'],
    [{ whenFull: 'wait' as never }, 'whenFull'],
    [{ stateRetentionMs: -1 }, 'stateRetentionMs'],
    [{ defaultAwaitTimeoutMs: 0 }, 'defaultAwaitTimeoutMs'],
    [{ allowedModels: [''] }, 'allowedModels'],
    [{ maxConcurrent: 3 } as never, 'maxConcurrent'],
  ])('refuses an impossible limit and names it in the error: %o', (limits, name) => {
    expect(() => sessionLimits(limits)).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringContaining(name),
      }),
    );
  });
});
