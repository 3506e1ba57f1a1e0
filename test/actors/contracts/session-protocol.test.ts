import { expect, test } from 'vitest';
import { received, type Receiver } from '../../../src/actors/contracts/session-protocol.ts';

const id = 'abc:1';

/** Only the compiler checks this function; no code calls it. */
export function typed(session: Receiver): void {
  session.receive('outbox', { type: 'delivery.heard', generation: 1, grade: 'played' });
  session.receive(`question:${id}`, { type: 'question.withdraw', reason: 'cancelled' });
  session.receive(`delivery:${id}`, { type: 'delivery.dismissed', deliveryId: id });
  session.receive('directives', { type: 'directive.set', key: 'a', value: null, scope: 'session' });

  // @ts-expect-error: an address that no session has.
  session.receive('outbx', { type: 'delivery.heard', generation: 1, grade: 'played' });
  // @ts-expect-error: a kind of address that no session has.
  session.receive(`quest:${id}`, { type: 'question.heard' });
  // @ts-expect-error: a question is addressed by its id.
  session.receive('question', { type: 'question.heard' });
  // @ts-expect-error: an event that does not exist.
  session.receive('outbox', { type: 'delivery.haerd', generation: 1, grade: 'played' });
  // @ts-expect-error: an event of another address.
  session.receive('session', { type: 'outbox.reserve' });
  // @ts-expect-error: words are for `user`.
  session.receive('notices', { type: 'user.said', utteranceId: id, text: '', channel: 'typing' });
  // @ts-expect-error: a field that the event does not have.
  session.receive('outbox', { type: 'outbox.reserve', deliveryId: id });
  // @ts-expect-error: a field is missing.
  session.receive('outbox', { type: 'delivery.heard', generation: 1 });
  // @ts-expect-error: a field has another type.
  session.receive('outbox', { type: 'delivery.heard', generation: '1', grade: 'played' });
  // @ts-expect-error: the record of a call keeps an outcome, which its machine does not read.
  session.receive(`call:${id}`, { type: 'subagent.ended' });
  // @ts-expect-error: the unit stamps an event when it takes it in.
  session.receive('session', { type: 'session.start', at: 1 });
}

test('gives an actor address a kind, and an id if the kind allows several actors', () => {
  const event = { type: 'question.heard', at: 1 };
  expect(received('outbox', event)).toEqual({ kind: 'outbox', id: '', event });
  expect(received(`question:${id}`, event)).toEqual({ kind: 'question', id, event });
});

test.each(['outbx', '', 'question', 'outbox:1', ':1', 'toString', '__proto__'])(
  'rejects the unknown address %j',
  (actor) => {
    expect(received(actor, { type: 'question.heard', at: 1 })).toBeNull();
  },
);

test('rejects an event that is unknown or belongs to another address', () => {
  expect(received('user', { type: 'user.said', at: 1 })?.kind).toBe('user');
  expect(received('user', { type: 'user.sayd', at: 1 })).toBeNull();
  expect(received('notices', { type: 'user.said', at: 1 })).toBeNull();
  expect(received('toString', { type: 'toString', at: 1 })).toBeNull();
});
