// The conformance suite for relays: an in-memory relay passes it, and fails it with every planted fault.

import { describe, expect, test } from 'vitest';
import { relayConformance, type RelayConformanceSetup } from './index.ts';
import { scriptedRelay } from '../../../src/testing/index.ts';
import type { Relay, RelaySession, RelayStart } from '../../../src/entries/subagents.ts';

const GRACE_MS = 1_000;

function setupOf(
  name: string,
  openQuestionSurvives = false,
  spoil: (relay: Relay) => Relay = (relay) => relay,
): RelayConformanceSetup {
  return {
    name,
    shows: ['die', 'deaf', 'garbage'],
    graceMs: GRACE_MS,
    open: () => {
      const relay = scriptedRelay({ capabilities: { openQuestionSurvives }, graceMs: GRACE_MS });
      return { relay: spoil(relay), running: () => relay.running };
    },
  };
}

describe.each([false, true])(
  'passes for an in-memory relay whose questions survive: %s',
  (survives) => {
    test.each(relayConformance(setupOf('memory', survives)))('$name', ({ run }) => run());
  },
);

/** The same relay with other events or another session. */
function spoilt(
  session: (session: RelaySession, start: RelayStart) => Partial<RelaySession>,
  start: (start: RelayStart) => Partial<RelayStart> = () => ({}),
) {
  return (relay: Relay): Relay => ({
    name: relay.name,
    capabilities: relay.capabilities,
    loop: relay.loop,
    async start(options) {
      const given = { ...options, ...start(options) };
      const made = await relay.start(given);
      const isRunning = made.isRunning;
      return { ...made, isRunning, ...session(made, options) };
    },
  });
}

describe('a planted fault is found', () => {
  const faults: Readonly<Record<string, (relay: Relay) => Relay>> = {
    'a denial is passed on as a permission': spoilt(({ answer }) => ({
      answer: (id) => answer(id, { type: 'permitted' }),
    })),
    'an answer goes to another request': spoilt(({ answer }) => ({
      answer: (id, given) => answer(id === 'request-1' ? 'request-2' : id, given),
    })),
    'an interrupt is lost': spoilt(() => ({ interrupt() {} })),
    'a release lets nothing go': spoilt(() => ({ release: () => Promise.resolve('cancelled') })),
    'events come after the release': spoilt((session, { receive }) => ({
      release: async (why) => {
        const how = await session.release(why);
        receive({ type: 'words', text: 'late' });
        return how;
      },
    })),
    'the end of a turn is not reported': spoilt(
      () => ({}),
      ({ receive }) => ({
        receive: (event) => (event.type === 'turn_ended' ? undefined : receive(event)),
      }),
    ),
    'a tool is run again after an interrupt': spoilt(({ interrupt }, { receive }) => ({
      interrupt: () => {
        receive({ type: 'tool_started', toolId: 't', title: 'x', kind: 'edit', input: null });
        interrupt();
      },
    })),
    'earlier words are replayed': spoilt((_session, { resume, receive }) => {
      if (resume !== undefined) receive({ type: 'words', text: 'One.' });
      return {};
    }),
    'an unknown session is begun anew': (relay) => ({
      name: relay.name,
      capabilities: relay.capabilities,
      loop: relay.loop,
      start: ({ resume, ...options }) =>
        relay.start(
          resume === 'no-such-session' ? options : { ...options, ...(resume && { resume }) },
        ),
    }),
    'an abort is not heeded': spoilt(
      () => ({}),
      () => ({ signal: new AbortController().signal }),
    ),
    'the loss of the connection is not reported': spoilt(
      () => ({}),
      ({ receive }) => ({
        receive: (event) => (event.type === 'closed' ? undefined : receive(event)),
      }),
    ),
    'words are lost in a flood': spoilt(
      () => ({}),
      ({ receive }) => {
        let count = 0;
        return {
          receive: (event) => {
            if (event.type !== 'words' || (count += 1) < 1_000) receive(event);
          },
        };
      },
    ),
  };
  test.each(Object.entries(faults))('%s', async (name, spoil) => {
    const failed: string[] = [];
    for (const one of relayConformance(setupOf(name, false, spoil))) {
      const found = await one.run().then(
        () => null,
        (error: unknown) => error,
      );
      if (found) {
        failed.push(one.name);
        expect(found).toMatchObject({ code: 'NOT_CONFORMANT' });
        break;
      }
    }
    expect(failed).not.toEqual([]);
  });
});

test('refuses an invalid setup', () => {
  expect(() => relayConformance({} as RelayConformanceSetup)).toThrow(/name/);
});
