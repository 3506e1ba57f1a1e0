// The core of a session with a lead agent that only records: state that is kept and deleted, progress, and a failure
// inside the unit.

import { describe, expect, test } from 'vitest';
import { waitFor } from 'xstate';
import { z } from 'zod';
import { codeOf } from '../../../../src/values/errors.ts';
import type {
  Offer,
  Speaker,
  SpokenTo,
  ToolAnswer,
} from '../../../../src/actors/session/lead/speaker.ts';
import type { LeadSession } from '../../../../src/actors/session/lead/lead-agents.ts';
import { SessionCore } from '../../../../src/actors/session/lifecycle/session-core.ts';
import { JournalError } from '../../../../src/entries/journal.ts';
import { replaySession } from '../../../../src/entries/replay.ts';
import type { SessionOptions } from '../../../../src/actors/session/lifecycle/session-options.ts';
import {
  createRuntime,
  defineTool,
  memoryJournal,
  type Journal,
  type SessionEvent,
} from '../../../../src/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';
import { gatedJournal } from '../../../support/journals.ts';
import { calls, never, say, simpleTool, steps } from '../../../support/subagent-runs.ts';
import { agentOf, castOf, configsOf, type TalkOptions } from '../../../support/text-talk.ts';

/** A lead agent that connects and records its input. */
class NotingLead implements Speaker {
  readonly said: string[] = [];
  readonly offers: Offer[] = [];
  core!: LeadSession;
  connect = (): void => this.core.receive('session', { type: 'transport.ready' });
  disconnect = (forGood: boolean): void => void this.said.push(forGood ? 'disconnect' : 'hang up');
  transfer = (_: string, to: string): void => void this.said.push(`transfer to ${to}`);
  transferEnded = (): void => void this.said.push('transfer ended');
  begin = (owes: 'greeting' | 'reply' | null): void => {
    if (owes !== 'greeting') this.said.push(owes === null ? 'resume' : 'resume, owes');
  };
  configure = (): void => void this.said.push('configure');
  say = (offer: Offer): void => void this.offers.push(offer);
  stop = (generation: number | null): void =>
    void this.said.push(generation === null ? 'interrupt' : `abandon ${generation}`);
  answer = (callId: string, answer: ToolAnswer | null): void => {
    const how = answer?.respond === false ? ' silently' : '';
    this.said.push(`${answer === null ? 'defer' : 'answer'} ${callId}${how}`);
  };
  note = (text: string, respond: boolean): void =>
    void this.said.push(respond ? 'reply to a note' : text);
  heard = (_: unknown, to: SpokenTo | null): void =>
    void this.said.push(to === null ? 'heard user' : 'overheard');
}

async function coreTalk(
  options: TalkOptions = {},
  {
    journal,
    onUnfoldable,
    ...more
  }: Partial<SessionOptions> & {
    readonly journal?: Journal;
    readonly onUnfoldable?: 'set_aside' | 'lose';
  } = {},
) {
  const environment = simulatedEnvironment();
  const lead = new NotingLead();
  const errors: string[] = [];
  const ended: unknown[] = [];
  const core = new SessionCore({
    runtime: createRuntime({
      environment,
      ...(journal && { journal }),
      ...(onUnfoldable && { onUnfoldable }),
    }),
    agents: [agentOf(options)],
    subagentConfigs: configsOf(options),
    model: castOf(options),
    hooks: {
      onError: (_, where) => errors.push(where),
      onSessionEnd: ({ error }) => ended.push(error?.code ?? null),
    },
    outbox: { quietMs: 0, offerTimeoutMs: 1000, playTimeoutMs: 1000, maxAttempts: 2 },
    settleTimeoutMs: 0,
    maxReconnects: 0,
    canInterrupt: true,
    hasVoice: false,
    makeLead(made) {
      lead.core = made;
      return lead;
    },
    ...more,
  });
  const events: SessionEvent[] = [];
  core.projection.events.subscribe((event) => events.push(event));
  await core.life.start();
  core.userInput.attach();
  await environment.settle();
  let number = 0;
  return {
    core,
    lead,
    errors,
    ended,
    events,
    environment,
    state: () => core.projection.store.getSnapshot().context,
    async call(name: string, callId = `call_${(number += 1)}`) {
      const input = JSON.stringify({ callId });
      core.receive('calls', { type: 'tool.called', callId, name, arguments: input });
      await environment.settle();
      return callId;
    },
    /** Reports that the current offer has been heard. */
    async hear() {
      const { generation } = lead.offers.at(-1) as Offer;
      core.receive('outbox', { type: 'delivery.playing', generation });
      core.receive('outbox', { type: 'delivery.heard', generation, grade: 'assumed' });
      await environment.settle();
    },
  };
}

const quick = { script: () => say('done') };
const hanging = { script: () => calls(['hang']), config: { tools: { hang: simpleTool(never) } } };
const asking = {
  script: steps(calls(['ask_user', { question: 'Well?' }]), say('done')),
  config: { interactive: true },
};

describe('SESSION-RECORDS-1: ended records (P7)', () => {
  test(
    'disappear after calls, results, questions and notices',
    { tags: ['R15', 'BW31'] },
    async () => {
      const { core, call, hear, environment, lead } = await coreTalk({
        subagents: { quick, hanging, asking, late: { ...quick, pending: null } },
        tools: [
          defineTool({
            name: 'count',
            description: 'Counts',
            parameters: z.looseObject({}),
            execute: () => 1,
          }),
        ],
      });
      for (const name of ['quick', 'late']) {
        await call(name);
        await hear();
      }
      for (const name of ['count', 'unknown', 'hanging', 'hanging']) {
        await call(name);
      }
      for (const subagent of core.tree.live) subagent.cancel('enough');
      await call('asking');
      core.userInput.shown(lead.offers.at(-1)?.deliveryId ?? '');
      await environment.settle();
      core.receive('user', {
        type: 'user.said',
        utteranceId: 'u',
        text: 'The blue one',
        channel: 'typing',
        startedAt: 0,
      });
      await environment.settle();
      await hear();
      core.notifyBackground('A notice');
      await environment.settle();
      core.userInput.dismiss(lead.offers.at(-1)?.deliveryId ?? '');
      await environment.settle();
      const { records, unit } = core;
      expect({
        calls: records.calls.size,
        deliveries: records.deliveries.size,
        questions: records.questions.size,
        callLives: unit.calls.ids,
        questionLives: unit.questions.ids,
        live: core.tree.live,
      }).toEqual({
        calls: 0,
        deliveries: 0,
        questions: 0,
        callLives: [],
        questionLives: [],
        live: [],
      });
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('stay visible if they are among the latest or belong to running work', async () => {
    const { call, core, state, environment } = await coreTalk(
      { subagents: { quick, hanging } },
      { limits: { maxLivePerSession: 1000, maxDeliveries: 1000, maxConcurrentPerSession: 1000 } },
    );
    await call('hanging');
    for (let index = 0; index < 105; index += 1)
      core.receive('calls', {
        type: 'tool.called',
        callId: `q${index}`,
        name: 'quick',
        arguments: JSON.stringify({ index }),
      });
    await environment.settle();
    expect(state().subagents).toHaveLength(101);
    expect(state().subagents[0]).toMatchObject({ name: 'hanging', state: 'running' });
    expect(state().subagents[1]?.callId).toBe('q5');
  });
});

test('SESSION-UNIT-4 OUTBOX-6: frees only one place for a call that is both refused and cancelled', async () => {
  const journal = gatedJournal();
  const { core, call, events, environment } = await coreTalk(
    {
      subagents: { hanging: { ...hanging, config: { ...hanging.config, duplicates: 'reject' } } },
      tools: [],
    },
    { journal },
  );
  const reserved = () => core.unit.outbox.snapshot.context.reserved;
  await call('hanging', 'first');
  expect(reserved()).toBe(1);
  core.projection.events.subscribe((event) => {
    if (event.type !== 'tool.called') return;
    // The call is cancelled while its validation is being written, before the tool receives it.
    journal.shut();
    queueMicrotask(() => {
      core.receive('call:second', { type: 'call.cancel' });
      journal.open();
    });
  });
  core.receive('calls', {
    type: 'tool.called',
    callId: 'second',
    name: 'hanging',
    arguments: '{"callId":"first"}',
  });
  await environment.settle();
  expect(events.at(-1)).toMatchObject({ type: 'tool.answered', status: 'cancelled' });
  expect(reserved()).toBe(1);
});

describe('OUTBOX-7: progress', () => {
  const progress = (text: string, subagentId: string) => ({
    type: 'notice.posted' as const,
    deliveryId: `p_${text}`,
    kind: 'progress' as const,
    priority: 'normal' as const,
    label: 'PROGRESS',
    text,
    prompt: text,
    subagentId,
    ttlMs: null,
    reserved: false,
  });

  test('offers only the latest progress of each subagent, and does not offer a repeated report again', async () => {
    const { core, lead, environment, hear, state } = await coreTalk();
    core.receive('session', { type: 'response.requested' });
    for (const [text, id] of [
      ['10%', 'a'],
      ['20%', 'a'],
      ['5%', 'b'],
      ['30%', 'a'],
      ['30%', 'a'],
    ] as const)
      core.receive('notices', progress(text, id));
    core.receive('session', { type: 'response.ended' });
    await environment.settle();
    await hear();
    await hear();
    expect(lead.offers.map(({ text }) => text)).toEqual(['5%', '30%']);
    expect(state().deliveries.map(({ text, state: now, dropped }) => [text, now, dropped])).toEqual(
      [
        ['10%', 'dropped', 'replaced'],
        ['20%', 'dropped', 'replaced'],
        ['5%', 'delivered', null],
        ['30%', 'delivered', null],
      ],
    );
  });
});

describe('an offer', () => {
  test('ignores a repeated message', async () => {
    const { core, lead, environment, state } = await coreTalk();
    const notice = {
      type: 'notice.posted' as const,
      deliveryId: 'n',
      kind: 'notice' as const,
      priority: 'normal' as const,
      label: 'UPDATE',
      text: 'A notice',
      prompt: 'A notice',
      subagentId: null,
      ttlMs: null,
      reserved: false,
    };
    core.receive('notices', notice);
    await environment.settle();
    core.receive('notices', notice);
    await environment.settle();
    expect(lead.offers).toHaveLength(1);
    expect(state().deliveries).toEqual([expect.objectContaining({ state: 'offered' })]);
  });

  test('ends as abandoned when its delivery is dismissed, even if an end event arrives later', async () => {
    const { core, lead, environment, state } = await coreTalk();
    const deliveryId = core.notifyBackground('A notice');
    await environment.settle();
    const { generation } = lead.offers[0] as Offer;
    core.userInput.dismiss(deliveryId);
    await environment.settle();
    expect(lead.said).toContain(`abandon ${generation}`);
    core.receive('outbox', { type: 'delivery.heard', generation, grade: 'assumed' });
    await environment.settle();
    expect(state().deliveries[0]).toMatchObject({ state: 'dismissed' });
  });

  test('gets repeated a limited number of times, each with a new generation, if there is no response', async () => {
    const { core, lead, environment, state } = await coreTalk();
    core.notifyBackground('A notice');
    await environment.advance(1000);
    expect(lead.offers.map(({ generation, attempt }) => [generation, attempt])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    // The end of the first attempt does not end the second.
    core.receive('outbox', { type: 'delivery.heard', generation: 1, grade: 'assumed' });
    await environment.settle();
    expect(state().deliveries[0]).toMatchObject({ state: 'offered' });
    await environment.advance(1000);
    expect(state().deliveries[0]).toMatchObject({ state: 'pending', card: true });
    expect(environment.pendingTimers).toBe(0);
  });
});

const broken = async ({ core, environment }: Awaited<ReturnType<typeof coreTalk>>) => {
  // The machine would accept this event, but it lacks a field that the records store.
  core.receive('calls', { type: 'tool.called', callId: 'broken', name: 'slow', arguments: '{}' });
  // @ts-expect-error: it has no error.
  core.receive('call:broken', { type: 'call.invalid' });
  await environment.settle();
};

/** Returns the value of a promise, or the code of its error. */
const settled = (promise: Promise<unknown>) =>
  promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ code: codeOf(error) }),
  );

describe('COMMIT-UNIT-2: an event that cannot be handled', () => {
  /** Creates a session with working subagents, an open question and a running tool. */
  async function busy(more: Parameters<typeof coreTalk>[1] = {}, journal = memoryJournal()) {
    const signals: AbortSignal[] = [];
    const slow = defineTool({
      name: 'slow',
      description: 'Hangs',
      parameters: z.looseObject({}),
      execute: (_, { abortSignal }) => {
        if (abortSignal) signals.push(abortSignal);
        return never();
      },
    });
    const talk = await coreTalk(
      { subagents: { hanging, asking }, tools: [slow] },
      { journal, ...more },
    );
    await talk.call('hanging');
    await talk.call('asking');
    await talk.call('slow');
    return { ...talk, journal, signals };
  }

  test('fails with a named error, without writing an entry or changing the session', async () => {
    const talk = await busy();
    const { core, environment, ended, errors, events, journal, signals, state } = talk;
    core.receive('calls', { type: 'tool.called', callId: 'broken', name: 'slow', arguments: '{}' });
    const parts = () => ({
      machine: core.unit.session.snapshot.value,
      questions: state().questions,
      owner: core.unit.owner,
      items: core.records.conversation.items,
      calls: core.unit.calls.ids
        .filter((id) => id !== 'broken')
        .map((id) => [id, core.unit.calls.stateOf(id)?.value]),
    });
    const before = parts();
    await broken(talk);
    expect(parts()).toEqual(before);
    // The call itself was valid and continues.
    expect(core.unit.calls.stateOf('broken')?.value).toEqual({ executing: 'awaited' });
    expect(ended).toEqual([]);
    expect(errors).toEqual([`${core.id}: \`call.invalid\` for call:broken`]);
    expect(signals.every(({ aborted }) => !aborted)).toBe(true);
    expect(journal.read().some(({ event }) => event.type === 'call.invalid')).toBe(false);
    expect(events.find(({ type }) => type === 'error.reported')).toMatchObject({
      code: 'INTERNAL',
      message: expect.stringContaining('`call.invalid`') as unknown,
    });
    const requestId = state().questions[0]?.requestId ?? '';
    core.userInput.questionShown(requestId);
    await environment.settle();
    expect(await core.userInput.answer(requestId, { text: 'well' })).toEqual({ accepted: true });
    const closed = core.life.close();
    await environment.advance(60_000);
    await closed;
    expect(ended).toEqual([null]);
    expect(environment.pendingTimers).toBe(0);
  });

  test('throws once for each record of a conversation, but does not stop the session', async () => {
    let number = 0;
    for (let isOver = false; !isOver && number < 60;) {
      number += 1;
      let left = number;
      let planted = '';
      const talk = await busy();
      const { core, environment, ended, state } = talk;
      const { actor: view } = core.unit;
      const seen: string[] = [];
      let completions = 0;
      const kept = (type: string): number =>
        talk.journal.read().filter(({ event }) => event.type === type).length;
      view.subscribe({
        next: ({ value }) => seen.push(value.connection),
        complete: () => (completions += 1),
      });
      const fold = core.records.fold.bind(core.records);
      core.records.fold = (received) => {
        left -= 1;
        if (left === 0) {
          planted = received.event.type;
          throw new TypeError('planted');
        }
        return fold(received);
      };
      await talk.call('asking', 'again');
      // USER-INPUT-2: a refused input is never reported as accepted, and its caller does not wait forever.
      const said = settled(core.userInput.say('hello'));
      await environment.settle();
      expect(await said).toEqual(
        kept('user.said') === 0 ? { code: 'INTERNAL' } : { value: undefined },
      );
      for (const { requestId } of state().questions) {
        const before = kept('answer.given');
        core.userInput.questionShown(requestId);
        await environment.settle();
        const answer = settled(core.userInput.answer(requestId, { text: 'well' }));
        await environment.settle();
        const isRefused = kept('answer.given') === before;
        expect(await answer).toMatchObject(isRefused ? { code: 'INTERNAL' } : { value: {} });
      }
      isOver = left > 0;
      expect(ended).toEqual([]);
      expect(view).toBe(core.unit.actor);
      const { value, context } = core.unit.session.snapshot;
      expect(view.getSnapshot()).toMatchObject({ value, context });
      const closed = core.life.close();
      await environment.advance(60_000);
      await closed;
      // ACTORS-1, ACTORS-2: observers learn that the session has ended, whichever actor ended first.
      expect(completions).toBe(1);
      expect(seen).not.toContain('created');
      expect(seen).not.toContain('connecting');
      if (planted !== 'session.close') expect(seen.at(-1)).toBe('closed');
      // The session cannot continue after it has ended.
      expect(ended).toEqual([planted === 'session.close' ? 'INTERNAL' : null]);
      for (const { view } of replaySession(talk.journal.read({ scope: core.id })))
        expect(view.connection).toBeDefined();
    }
    expect(number).toBeGreaterThan(12);
    expect(number).toBeLessThan(60);
  });

  test('fails even with `onUnfoldable: "lose"`', async () => {
    const talk = await busy({ onUnfoldable: 'lose' });
    await broken(talk);
    expect(talk.ended).toEqual([]);
    expect(talk.journal.read().map(({ event }) => event.type)).not.toContain('call.invalid');
  });

  test('COMMIT-UNIT-9: refuses a malformed event before it is written', async () => {
    const { core, environment, events, journal, state } = await busy();
    const before = journal.read().length;
    const requestId = state().questions[0]?.requestId ?? '';
    // @ts-expect-error: a number is no text.
    core.receive('answers', { type: 'answer.given', ticket: 't', requestId, text: 42 });
    // @ts-expect-error: words that were said have a text, and a time.
    core.receive('user', { type: 'user.said', utteranceId: 'u', text: null, channel: 'speech' });
    // @ts-expect-error: a word is no outcome.
    core.receive('call:call_1', { type: 'subagent.ended', outcome: 'done' });
    await environment.settle();
    expect(journal.read()).toHaveLength(before);
    const codes = events.flatMap((event) => (event.type === 'error.reported' ? [event.code] : []));
    expect(codes).toEqual(['MALFORMED_EVENT', 'MALFORMED_EVENT', 'MALFORMED_EVENT']);
  });

  test('USER-INPUT-2: does not report input as accepted if the journal refuses it', async () => {
    const journal = memoryJournal();
    let isFenced = false;
    const append: typeof journal.append = (entry) => {
      if (isFenced)
        throw new JournalError('FENCED', 'Another process has it', { retryable: false });
      return journal.append(entry);
    };
    const { core, environment } = await busy({}, { ...journal, append });
    isFenced = true;
    const said = settled(core.userInput.say('hello'));
    await environment.settle();
    expect(await said).toEqual({ code: 'FENCED' });
  });

  test('USER-INPUT-2: does not report unwritten input as accepted when the session is unloaded', async () => {
    const gate = gatedJournal();
    const { core, environment, state } = await busy({}, gate as never);
    gate.shut();
    const said = settled(core.userInput.say('hello'));
    const answered = settled(
      core.userInput.answer(state().questions[0]?.requestId ?? '', { text: 'a' }),
    );
    await environment.settle();
    core.life.leave(null);
    expect(await said).toEqual({ code: 'SUSPENDED' });
    expect(await answered).toEqual({ code: 'SUSPENDED' });
  });

  test('ACTORS-1: lets an existing subscriber follow the restored actor', async () => {
    const first = await busy();
    const suspended = first.core.life.suspend();
    await first.environment.advance(1000);
    await suspended;
    const { environment } = first;
    const lead = new NotingLead();
    const core = new SessionCore({
      runtime: createRuntime({ environment, journal: first.journal }),
      sessionId: first.core.id,
      agents: [agentOf({ subagents: { hanging, asking } })],
      subagentConfigs: configsOf({ subagents: { hanging, asking } }),
      model: castOf({ subagents: { hanging, asking } }),
      outbox: { quietMs: 0, offerTimeoutMs: 1000, playTimeoutMs: 1000, maxAttempts: 2 },
      settleTimeoutMs: 0,
      maxReconnects: 0,
      canInterrupt: true,
      hasVoice: false,
      makeLead(made) {
        lead.core = made;
        return lead;
      },
    });
    const { actor: view } = core.unit;
    const seen: string[] = [];
    let isComplete = false;
    view.subscribe({
      next: ({ value }) => seen.push(value.connection),
      complete: () => (isComplete = true),
    });
    const active = waitFor(
      view as never,
      ({ value }: { value: { connection: string } }) => value.connection === 'active',
    );
    await core.life.start();
    await active;
    expect(view.getSnapshot().value.connection).toBe('active');
    expect(seen.at(-1)).toBe('active');
    expect(isComplete).toBe(false);
    const closed = core.life.close();
    await environment.advance(60_000);
    await closed;
    expect(seen.at(-1)).toBe('closed');
    expect(isComplete).toBe(true);
  });
});
