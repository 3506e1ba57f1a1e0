// The state of a session in a client: the public reducer, patches to views, and the cost of an update.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applySessionEvent, emptySessionState } from '../../src/client/index.ts';
import { applyPatch, eventOfPatch, patchOf } from '../../src/client/session-state.ts';
import type { SessionEvent, SessionState, TranscriptItem } from '../../src/index.ts';
import { Projection } from '../../src/actors/session/state/projection.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const item = (id: string, change: Partial<TranscriptItem> = {}): SessionEvent => ({
  type: 'transcript.changed',
  item: { id, role: 'user', text: id, final: true, at: Number(id.replace(/\D/g, '')), ...change },
});

describe('the reducer', () => {
  test("derives the session's state from its events", () => {
    const id = fc.integer({ min: 0, max: 30 }).map((n) => `i${n}`);
    const event = fc.oneof(
      fc.record({ id, text: fc.string(), final: fc.boolean() }).map((each) => item(each.id, each)),
      fc.constantFrom('user' as const, 'model' as const, 'nobody' as const).map((floor) => ({
        type: 'floor.changed' as const,
        floor,
      })),
      fc
        .record({ id, text: fc.string(), over: fc.boolean() })
        .map(({ id: deliveryId, text, over }) => ({
          type: 'delivery.changed' as const,
          delivery: {
            deliveryId,
            kind: 'notice' as const,
            priority: 'normal' as const,
            label: 'NEWS',
            text,
            subagentId: null,
            state: over ? ('dismissed' as const) : ('pending' as const),
            grade: null,
            dropped: null,
            attempts: 0,
            card: false,
            at: 1,
          },
        })),
      fc.string().map((data) => ({ type: 'client.json' as const, data })),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 120 }), (events) => {
        const projection = new Projection({
          environment: simulatedEnvironment(),
          report: () => undefined,
        });
        let state = emptySessionState;
        projection.events.subscribe((each) => {
          state = applySessionEvent(state, each);
        });
        for (const each of events) projection.emit(each);
        expect(state).toEqual(projection.store.getSnapshot().context);
      }),
    );
  });

  test('keeps all open items, and a limited number of finished ones', () => {
    let state = applySessionEvent(emptySessionState, item('i0', { final: false }));
    for (let n = 1; n <= 600; n++) state = applySessionEvent(state, item(`i${n}`));
    expect(state.transcript).toHaveLength(501);
    expect([state.transcript[0]?.id, state.transcript[1]?.id]).toEqual(['i0', 'i101']);
  });

  test('changes only the fields that an event names', () => {
    let state: SessionState = emptySessionState;
    for (let n = 0; n < 500; n++) state = applySessionEvent(state, item(`i${n}`));
    const next = applySessionEvent(state, item('i250', { text: 'new' }));
    expect(next.subagents).toBe(state.subagents);
    const changed = next.transcript.filter((each, index) => each !== state.transcript[index]);
    expect(changed.map(({ id }) => id)).toEqual(['i250']);
    expect(applySessionEvent(next, { type: 'playout.clear' })).toBe(next);
  });
});

describe('patches', () => {
  const view = fc.dictionary(
    fc.oneof(fc.constantFrom('text', 'state', 'options', '__proto__'), fc.string()),
    fc.jsonValue().map((value) => json(value)),
  );

  test('restores a view by applying the patch to the previous view', () => {
    fc.assert(
      fc.property(view, view, (before, after) => {
        expect(json(applyPatch(before, json(patchOf(before, after)) as object))).toEqual(
          json(after),
        );
      }),
    );
  });

  test('sends only the text that was added to a growing item', () => {
    const before = { id: 'i1', text: 'The lead agent says', final: false };
    const after = { id: 'i1', text: 'The lead agent says more', final: false };
    expect(patchOf(before, after)).toEqual({ append: { text: ' more' } });
    expect(patchOf(before, before)).toEqual({});
  });

  test('requests the whole state if it lacks the view to which a patch applies', () => {
    const patch = { type: 'patch', of: 'questions', id: 'q1', set: { state: 'open' } } as const;
    expect(eventOfPatch(emptySessionState, patch)).toBeNull();
    expect(eventOfPatch(emptySessionState, { ...patch, of: 'nothing' as 'questions' })).toBeNull();
  });
});
