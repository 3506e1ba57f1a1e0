// For any order of the server's events and the session's requests, the adapter infers a conversation that fulfils the
// port's contract.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TransportEvent } from '../../../src/voice/connection/transport.ts';
import { startCall, type Call } from './support/called.ts';

type Act = (call: Call, index: number) => unknown;

const acts: Readonly<Record<string, Act>> = {
  sounds: ({ peer }) => peer.sounds(200),
  isQuiet: ({ peer }) => peer.pauses(300),
  pauses: ({ peer }) => peer.pauses(900),
  speaks: ({ peer }) => peer.speaks(' word'),
  hears: ({ peer }, index) => peer.hears(' yes', index * 300),
  hearsLate: ({ peer }) => peer.hears(' late', 100),
  delegates: ({ peer }, index) => peer.delegates(`d${index}`),
  takesIn: ({ peer }) => peer.takesIn(),
  fails: ({ peer }) => peer.refuses({ code: 'odd', message: 'Oh.' }),
  refuses: ({ peer }) => {
    const id = peer.appends.at(-1)?.event_id;
    peer.refuses({ code: 'odd', message: 'Oh.', ...(id && { client_event_id: id }) });
  },
  waits: ({ advance }) => advance(400),
  waitsLong: ({ advance }) => advance(5000),
  cancels: ({ send }) => send({ type: 'response.cancel' }),
  asks: ({ request }, index) => request(`r${index}`, 'Say it.', index % 2 === 0),
};

const story = fc.array(fc.constantFrom(...Object.keys(acts)), { maxLength: 40 });

test('starts and ends every response, request and utterance in a random sequence of events', async () => {
  await fc.assert(
    fc.asyncProperty(story, async (names) => {
      const call = startCall();
      const heardAt: { readonly responseId: string; readonly at: number }[] = [];
      call.connection.audio.subscribe(({ responseId = '' }) =>
        heardAt.push({ responseId, at: call.events.length }),
      );
      // The session makes one request at a time.
      const open = (): boolean => openRequests(call.events, asked).length > 0;
      const asked: string[] = [];
      for (const [index, name] of names.entries()) {
        if (name === 'asks' && open()) continue;
        if (name === 'asks') asked.push(`r${index}`);
        await acts[name]?.(call, index);
      }
      await call.advance(20_000);

      expect(openRequests(call.events, asked)).toEqual([]);
      checkResponses(call.events, heardAt);
      checkUtterances(call.events);
    }),
    { numRuns: 150 },
  );
});

/** OPENAI-LIVE-REQUESTS-3: returns the requests that have not ended. Each ends once. */
function openRequests(events: readonly TransportEvent[], asked: readonly string[]): string[] {
  return asked.filter((key) => {
    const ends = events.filter(
      (event) =>
        (event.type === 'response.ended' || event.type === 'transport.error') &&
        event.responseKey === key,
    );
    expect(ends.length).toBeLessThanOrEqual(1);
    return ends.length === 0;
  });
}

/**
 * Checks that responses occur one at a time, that each ends once, and that audio belongs to the current one.
 */
function checkResponses(
  events: readonly TransportEvent[],
  heard: readonly { readonly responseId: string; readonly at: number }[],
): void {
  let current: string | null = null;
  const spans = new Map<string, { from: number; to: number }>();
  for (const [index, event] of events.entries()) {
    if (event.type === 'response.started') {
      expect(current).toBeNull();
      expect(spans.has(event.responseId)).toBe(false);
      current = event.responseId;
      spans.set(current, { from: index, to: Infinity });
    }
    const span = event.type === 'response.ended' ? spans.get(event.responseId) : undefined;
    // A request without an effect ends without having started.
    if (!span) continue;
    expect(span.to).toBe(Infinity);
    span.to = index;
    current = null;
  }
  expect(current).toBeNull();
  for (const { responseId, at } of heard) {
    const span = spans.get(responseId);
    expect(at).toBeGreaterThan(span?.from ?? Infinity);
    expect(at).toBeLessThanOrEqual(span?.to ?? -1);
  }
}

/** Checks that utterances occur one at a time, each with a start, an end, and then its text. */
function checkUtterances(events: readonly TransportEvent[]): void {
  const steps = events
    .filter((event) => event.type.startsWith('utterance.'))
    .filter((event) => event.type !== 'utterance.transcribed' || event.final)
    .map((event) => ({ type: event.type, id: 'utteranceId' in event ? event.utteranceId : '' }));
  expect(steps.length % 3).toBe(0);
  for (let index = 0; index < steps.length; index += 3) {
    const three = steps.slice(index, index + 3);
    expect(three.map(({ type }) => type)).toEqual([
      'utterance.started',
      'utterance.ended',
      'utterance.transcribed',
    ]);
    expect(new Set(three.map(({ id }) => id)).size).toBe(1);
  }
}
