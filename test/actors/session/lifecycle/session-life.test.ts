// The life of a session as an app sees it: start, greeting, hooks, close, and the calls that are refused before and
// after.
import {
  JournalError,
  type JournalEntry,
  type JournalQuery,
} from '../../../../src/entries/journal.ts';
import { describe, expect, test } from 'vitest';
import {
  createRuntime,
  memoryJournal,
  type Journal,
  type SessionEvent,
} from '../../../../src/index.ts';
import { createSubagentService } from '../../../../src/entries/subagents.ts';
import { simulatedEnvironment, type SimulatedEnvironment } from '../../../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../../../support/subagent-runs.ts';
import { failingJournal, gatedJournal } from '../../../support/journals.ts';
import { instructionsOf, textTalk } from '../../../support/text-talk.ts';

/** A journal that takes a while to claim a scope. */
function claimedJournal({ scheduler }: SimulatedEnvironment) {
  const inner = memoryJournal();
  const claimed = new Set<string>();
  const aWhile = () => new Promise<void>((resolve) => scheduler.schedule(resolve, 10));
  return {
    claimed,
    append: (entry: JournalEntry) => inner.append(entry),
    async claim(scope: string) {
      await aWhile();
      claimed.add(scope);
    },
    async read(query?: JournalQuery) {
      await aWhile();
      return inner.read(query);
    },
    release: (scope: string) => void claimed.delete(scope),
  };
}

const CLOSED = { name: 'ConfigurationError', code: 'SESSION_CLOSED' };
const SUSPENDED = { name: 'ConfigurationError', code: 'SESSION_SUSPENDED' };

const hanging = { script: () => calls(['hang']), config: { tools: { hang: simpleTool(never) } } };

describe('start', () => {
  test('resolves once the session accepts input, and a second call shares the first start', async () => {
    const log: string[] = [];
    const { session, state, environment } = textTalk({
      hooks: { onSessionStart: ({ sessionId }) => log.push(sessionId) },
    });
    await Promise.all([session.start(), session.start()]);
    await environment.settle();
    expect(state().connection).toBe('active');
    // The program that embeds the session does not count as a client.
    expect(session.isAttached).toBe(false);
    const detach = session.attach();
    expect(session.isAttached).toBe(true);
    detach();
    expect(session.isAttached).toBe(false);
    expect(log).toEqual([session.id]);
  });

  test('generates the first reply if the agent has a greeting', async () => {
    const { start, said, state } = textTalk({ greeting: 'Greet the user.' });
    await start();
    expect(said()).toEqual([expect.stringMatching(/^Told: \[note \S+\] Greet the user\.$/)]);
    expect(state().transcript.map(({ role, final }) => [role, final])).toEqual([
      ['assistant', true],
    ]);
  });

  test('does not call the model without a greeting', async () => {
    const seen: string[] = [];
    const { start } = textTalk({ onModelCall: (who) => seen.push(who) });
    await start();
    expect(seen).toEqual([]);
  });

  test('rejects for a closed session', async () => {
    const { session } = textTalk();
    await session.close();
    await expect(session.start()).rejects.toMatchObject(CLOSED);
  });

  test('rejects when the session is closed during the start', async () => {
    const { session } = textTalk();
    const started = session.start();
    await session.close();
    await expect(started).rejects.toMatchObject({ name: 'CancelledError' });
  });
});

describe('an id that many sessions use, one after another', () => {
  test('starts and recovers after the journal has dropped the earlier sessions with its id', async () => {
    const environment = simulatedEnvironment();
    const journal = memoryJournal({ keep: 60 });
    const open = async () => {
      const runtime = createRuntime({ environment, journal });
      const talk = textTalk({ environment, runtime, sessionId: 'ses' });
      await talk.start();
      return talk;
    };
    for (let life = 0; life < 30; life += 1) {
      const talk = await open();
      for (const word of ['one', 'two']) await talk.type(word);
      await talk.close();
    }
    const last = await open();
    await last.type('three');
    await last.session.suspend();
    const again = await open();
    await again.type('four');
    const said = again
      .state()
      .transcript.flatMap(({ role, text }) => (role === 'user' ? [text] : []));
    expect(said).toEqual(['three', 'four']);
    expect(again.errors).toEqual([]);
    await again.close();
  });
});

describe('SESSION-LIFE-5: start', () => {
  test('rejects after close, even while the session is still closing', async () => {
    const talk = textTalk();
    await talk.start();
    const closing = talk.session.close();
    await expect(talk.session.start()).rejects.toMatchObject(CLOSED);
    await closing;
    await expect(talk.session.start()).rejects.toMatchObject(CLOSED);
    expect(talk.state().connection).toBe('closed');
  });

  test.each(['suspend', 'hibernate'] as const)(
    'rejects after %s, and leaves the session suspended in the store',
    async (leave) => {
      const talk = textTalk();
      await talk.start();
      const leaving = talk.session[leave]();
      await expect(talk.session.start()).rejects.toMatchObject(SUSPENDED);
      await talk.environment.settle();
      await leaving;
      await expect(talk.session.start()).rejects.toThrow(
        /"ses_1" was suspended.*Make another session/,
      );
      expect(talk.state()).toMatchObject({ connection: 'suspended', floor: 'nobody' });
      expect(talk.events.at(-1)).toMatchObject({ type: 'session.suspended' });
    },
  );

  test("rejects with the first start's error after a failed connection", async () => {
    const journal: Journal = {
      append() {
        throw new JournalError('FENCED', 'taken over', { retryable: false });
      },
      read: () => [],
    };
    const environment = simulatedEnvironment();
    const { session, state } = textTalk({
      runtime: createRuntime({ environment, journal }),
      environment,
    });
    await expect(session.start()).rejects.toMatchObject({ code: 'FENCED' });
    await expect(session.start()).rejects.toMatchObject({ code: 'FENCED' });
    expect(state().connection).toBe('suspended');
  });

  test('emits a single event for repeated close() calls', async () => {
    const journal = gatedJournal();
    const ignored: string[] = [];
    const talk = textTalk({ journal, hooks: { onIgnored: ({ type }) => ignored.push(type) } });
    await talk.start();
    journal.shut();
    void talk.session.sendText('hello');
    const closings = Array.from({ length: 50 }, () => talk.session.close());
    journal.open();
    await talk.environment.advance(10_000);
    await Promise.all(closings);
    expect(ignored).toEqual([]);
  });
});

describe('SESSION-LIFE-1: a session that ends during its start', () => {
  test('writes nothing to the journal', async () => {
    const journal: Journal = {
      append() {
        throw new JournalError('FENCED', 'taken over', { retryable: false });
      },
      read: () => [],
    };
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment, journal });
    const { session } = textTalk({ runtime, environment });
    await expect(session.start()).rejects.toMatchObject({ code: 'FENCED' });
  });

  test('rejects the start when a subscriber closes the session during its recovery', async () => {
    const environment = simulatedEnvironment();
    const journal = memoryJournal();
    const begin = () => {
      const runtime = createRuntime({ environment, journal });
      return textTalk({ sessionId: 'ses', runtime, environment }).session;
    };
    const first = begin();
    void first.start();
    await environment.settle();
    void first.suspend();
    await environment.settle();
    const second = begin();
    second.events.subscribe(({ type }) => {
      if (type === 'session.recovered') void second.close();
    });
    const started = second.start().then(
      () => 'started',
      (error: Error) => error.name,
    );
    await environment.settle();
    expect(await started).toBe('CancelledError');
  });
});

describe('SESSION-LIFE-4: a session that is closed during its start', () => {
  test('does not release the claim of the next session with its id', async () => {
    const environment = simulatedEnvironment();
    const journal = claimedJournal(environment);
    const runtime = createRuntime({ environment, journal });
    const first = textTalk({ sessionId: 'ses', runtime, environment });
    const started = first.session.start();
    started.catch(() => {});
    // The claim is running.
    await environment.advance(5);
    await first.session.close();
    const { session } = textTalk({ sessionId: 'ses', runtime, environment });
    const again = session.start();
    await environment.advance(100);
    await expect(started).rejects.toMatchObject({ name: 'CancelledError' });
    await again;
    expect(journal.claimed).toEqual(new Set(['ses']));
    await session.close();
    expect(journal.claimed).toEqual(new Set());
  });

  test('does not release the claim of the next service with its id', async () => {
    const environment = simulatedEnvironment();
    const journal = claimedJournal(environment);
    const runtime = createRuntime({ environment, journal });
    const first = createSubagentService({ runtime, id: 'errands' });
    const recovered = first.recover();
    await environment.advance(5);
    const closed = first.close();
    await environment.settle();
    const service = createSubagentService({ runtime, id: 'errands' });
    const again = service.recover();
    await environment.advance(100);
    await Promise.all([closed, recovered, again]);
    expect(journal.claimed).toEqual(new Set(['errands']));
  });
});

describe('a session before start', () => {
  test('refuses input', async () => {
    const { session } = textTalk();
    const refusal = {
      code: 'SESSION_NOT_ACTIVE',
      message: expect.stringContaining('call `await session.start()` first'),
    };
    await expect(session.sendText('hello')).rejects.toMatchObject(refusal);
    await expect(session.send('hello').next()).rejects.toMatchObject(refusal);
  });

  test('accepts a notice, and delivers it once the session has started', async () => {
    const { session, start, said } = textTalk();
    session.notifyBackground('The shop is open');
    await start();
    expect(said()).toEqual([
      expect.stringContaining('"SUBAGENT UPDATE","text":"The shop is open"'),
    ]);
  });
});

describe('refuses a value that is not text', () => {
  test.each(['', '   ', 7 as never, null as never])('%j', async (text) => {
    const { session, start } = textTalk();
    await start();
    await expect(session.sendText(text)).rejects.toMatchObject({ code: 'INVALID_TEXT' });
    expect(() => session.notifyBackground(text)).toThrow(
      expect.objectContaining({ code: 'INVALID_NOTICE' }),
    );
  });

  test.each([
    { priority: 'loud' },
    { ttlMs: Number.NaN },
    { ttlMs: -1 },
    { label: ' ' },
    { label: 7 },
    { urgent: true },
  ])('a notice with %j', async (options) => {
    const { session, start } = textTalk();
    await start();
    expect(() => session.notifyBackground('News', options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_NOTICE' }),
    );
  });
});

describe('close', () => {
  test('stops subagents, timers, model calls and events', async () => {
    const seen: string[] = [];
    const ended: unknown[] = [];
    const { session, start, type, environment, events, state } = textTalk({
      subagents: { work: hanging },
      onModelCall: (who) => seen.push(who),
      hooks: { onSessionEnd: (event) => ended.push(event) },
    });
    await start();
    await type('use work');
    await environment.advance(5000);
    let completed = false;
    session.events.subscribe({ complete: () => (completed = true) });
    await session.close();
    expect(completed).toBe(true);
    expect(events.at(-1)).toEqual({ type: 'session.ended', error: null });
    expect(ended).toEqual([{ sessionId: session.id, durationMs: 5000, error: null }]);
    expect(state()).toMatchObject({
      connection: 'closed',
      subagents: [{ state: 'cancelled', outcome: { status: 'cancelled' } }],
    });
    const before = [seen.length, events.length];
    await environment.advance(3_600_000);
    expect([seen.length, events.length]).toEqual(before);
    expect(environment.pendingTimers).toBe(0);
  });

  test('succeeds before a start and when called repeatedly', async () => {
    const { session, start } = textTalk();
    const first = session.close();
    await Promise.all([first, session.close()]);
    await session.close();
    const other = textTalk();
    await other.start();
    await Promise.all([other.session.close(), other.session.close()]);
    expect(other.state().connection).toBe('closed');
    await expect(start()).rejects.toThrow();
  });

  test('SUBAGENT-TREE-4: waits for a slow dispose, but no longer than the grace period', async () => {
    let disposed: () => void = () => {};
    const config = {
      ...hanging.config,
      dispose: () => new Promise<void>((resolve) => (disposed = resolve)),
    };
    const { session, start, type, environment } = textTalk({
      subagents: { work: { ...hanging, config } },
      closeGraceMs: 2000,
    });
    await start();
    await type('use work');
    let closed = false;
    void session.close().then(() => (closed = true));
    await environment.advance(1000);
    expect(closed).toBe(false);
    disposed();
    await environment.settle();
    expect(closed).toBe(true);
    expect(environment.pendingTimers).toBe(0);
  });

  test('SUBAGENT-TREE-4: stops waiting for a hanging tool or dispose after the grace period', async () => {
    const config = { ...hanging.config, dispose: never };
    const { session, start, type, environment, state, errors } = textTalk({
      subagents: { work: { ...hanging, config } },
      closeGraceMs: 2000,
    });
    await start();
    await type('use work {"n":1} and work {"n":2}');
    let closed = false;
    void session.close().then(() => (closed = true));
    await environment.advance(1999);
    expect(closed).toBe(false);
    await environment.advance(1);
    expect(closed).toBe(true);
    expect(state().subagents.map((subagent) => subagent.state)).toEqual(['cancelled', 'cancelled']);
    // Both runs share one dispose, which is abandoned and reported; after that, nothing of it is left.
    await environment.advance(30_000);
    expect(errors.map(({ where }) => where)).toEqual(['dispose of work']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('stops an answer in progress, and does not call the model again', async () => {
    let asked = 0;
    let signal: AbortSignal | undefined;
    const { session, start, environment, said } = textTalk({
      lead: (prompt) => {
        asked += 1;
        signal = prompt.signal;
        return never();
      },
    });
    await start();
    await session.sendText('hello');
    await environment.settle();
    await session.close();
    await environment.advance(60_000);
    expect(signal?.aborted).toBe(true);
    expect(asked).toBe(1);
    expect(said()).toEqual([]);
  });

  test('prevents a model call that has not started', async () => {
    let asked = 0;
    const { session, start, environment } = textTalk({
      lead: () => {
        asked += 1;
        return say('hello');
      },
    });
    await start();
    void session.sendText('hello');
    await session.close();
    await environment.settle();
    expect(asked).toBe(0);
  });

  test('refuses input while the session is closing', async () => {
    let asked = 0;
    const config = { ...hanging.config, dispose: never };
    const { session, start, type, environment } = textTalk({
      subagents: { work: { ...hanging, config } },
      onModelCall: () => (asked += 1),
    });
    await start();
    await type('use work');
    const closed = session.close();
    const before = asked;
    await expect(session.sendText('hello')).rejects.toMatchObject({ code: 'SESSION_NOT_ACTIVE' });
    await environment.advance(5000);
    await closed;
    expect(asked).toBe(before);
  });

  test('settles all pending answers, messages and readers', async () => {
    const { session, start, type, environment, question } = textTalk({
      subagents: {
        work: {
          script: steps(calls(['ask_user', { question: 'Well?' }])),
          config: { interactive: true },
        },
      },
    });
    await start();
    await type('use work');
    const reader = session.read();
    const read = reader.next();
    const requestId = question()?.requestId ?? '';
    await session.close();
    expect(await read).toEqual({ done: true, value: undefined });
    expect(await session.answer(requestId, { text: 'yes' })).toEqual({
      accepted: false,
      reason: 'over',
    });
    expect(await session.answer('other', { text: 'yes' })).toEqual({
      accepted: false,
      reason: 'unknown',
    });
    await expect(session.sendText('hello')).rejects.toMatchObject({ code: 'SESSION_NOT_ACTIVE' });
    await environment.settle();
    expect(question()).toMatchObject({ state: 'withdrawn' });
  });

  test('kills a subagent whose end the journal refuses, and does not leave its question open', async () => {
    const journal = failingJournal('throws');
    const { session, start, type, environment, state, question } = textTalk({
      journal: {
        ...journal,
        append(entry) {
          if (entry.event.type === 'subagent.cancel') throw new Error('the disk is full');
          return journal.append(entry);
        },
      },
      subagents: {
        work: {
          script: steps(calls(['ask_user', { question: 'Well?' }])),
          config: { interactive: true, instructions: instructionsOf('work') },
        },
      },
      closeGraceMs: 1000,
    });
    await start();
    await type('use work');
    expect(question()?.state).toBe('open');
    const closed = session.close();
    await environment.advance(1000);
    await closed;
    expect(state().subagents[0]).toMatchObject({
      state: 'failed',
      outcome: { status: 'lost', error: { code: 'KILLED' } },
    });
    expect(question()?.state).toBe('withdrawn');
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('refuses conflicting options, and leaves no resources behind', () => {
  test.each([
    { closeGraceMs: Number.NaN },
    { closeGraceMs: -1 },
    { detachGraceMs: -1 },
    { sessionId: '' },
    { memoryScope: '' },
    { speakProgress: 'loudly' },
  ])('%j', (options) => {
    const [name] = Object.keys(options);
    expect(() => textTalk(options as never)).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringContaining(name as string),
      }),
    );
  });

  test('frees the id of a refused session, but not the id of an open one', async () => {
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment });
    const options = { environment, runtime, sessionId: 'mine' };
    expect(() => textTalk({ ...options, services: [{} as never] })).toThrow();
    const { start, session } = textTalk(options);
    await start();
    expect(() => textTalk(options)).toThrow(expect.objectContaining({ code: 'SESSION_ID_TAKEN' }));
    await session.close();
    await textTalk(options).start();
  });
});

describe('hooks that throw', () => {
  test(
    'cause an error report without stopping the conversation',
    { tags: ['B73', 'BW33'] },
    async () => {
      const reported: string[] = [];
      const broken = () => {
        throw new Error('the hook is broken');
      };
      const { session, start, type, said, environment, question, events } = textTalk({
        subagents: {
          work: {
            script: steps(calls(['ask_user', { question: 'Well?' }]), say('It is done.')),
            config: { interactive: true },
          },
        },
        hooks: {
          onSessionStart: broken,
          onSessionEnd: broken,
          onToolCall: broken,
          onToolResult: broken,
          onSubagentStart: broken,
          onSubagentStep: broken,
          onSubagentEnd: broken,
          onQuestion: broken,
          onDelivered: broken,
          onError: (_, where) => {
            reported.push(where);
            throw new Error('this one too');
          },
        },
      });
      await start();
      await type('use work');
      expect(question()?.state).toBe('open');
      await type('yes, well');
      await environment.settle();
      expect(said().at(-1)).toContain('It is done.');
      await session.close();
      expect(new Set(reported)).toEqual(
        new Set(
          [
            'SessionStart',
            'ToolCall',
            'ToolResult',
            'SubagentStart',
            'SubagentStep',
            'SubagentEnd',
            'Question',
            'Delivered',
            'SessionEnd',
          ].map((name) => `hook on${name}`),
        ),
      );
      const errors = events.filter((event: SessionEvent) => event.type === 'error.reported');
      expect(errors.length).toBe(reported.length - 1);
    },
  );
});

test('cause an error report even when they reject', { tags: ['B73', 'BW33'] }, async () => {
  const { start, type, said, errors } = textTalk({
    subagents: { work: { script: () => say('done') } },
    hooks: {
      // oxlint-disable-next-line typescript/no-misused-promises -- a hook may well be asynchronous
      onSubagentEnd: async () => {
        throw new Error('later');
      },
    },
  });
  await start();
  await type('use work');
  expect(said().at(-1)).toContain('done');
  expect(errors).toEqual([
    { error: expect.objectContaining({ message: 'later' }), where: 'hook onSubagentEnd' },
  ]);
});

test('the session continues even when an inspector throws', async () => {
  const { start, type, said } = textTalk({
    inspect: () => {
      throw new Error('the inspector is broken');
    },
  });
  await start();
  await type('hello');
  expect(said()).toEqual(['You said: hello']);
});
