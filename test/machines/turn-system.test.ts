import { describe, test } from 'vitest';
import { turnMachine } from '../../src/machines/index.ts';
import { forget, mutate, provide, stateOf } from './support/mutate.ts';
import { turnsOf, type Lead, type Scope } from './support/turn-check.ts';
import { checkTurns } from './support/turn-system.ts';
import { announce, finds, holds, holdsThroughout } from './support/verdicts.ts';

const leads = Object.keys(turnsOf) as Lead[];
const scopes: readonly Scope[] = ['everything', 'nobody helps'];
const patience = { timeout: 300_000 };

describe.each(leads.flatMap((lead) => scopes.map((scope) => [lead, scope] as const)))(
  'turn × outbox × session: %s, %s',
  patience,
  (lead, scope) => {
    test('delivers every due item if a client is listening and the floor is free', () => {
      const report = checkTurns({ lead, scope });
      announce(report);
      holds(report, 'an end can always be reached');
      holdsThroughout(report);
    });
  },
);

// Either a cough interrupts a reply that has not started, or an utterance follows one whose words are unknown. The
// words never become known.
test.each(leads.filter((lead) => lead !== 'a text model'))(
  'turn × outbox × session: %s: answers each of two utterances',
  patience,
  (lead) => {
    const report = checkTurns({ lead, scope: 'nobody helps', utterances: 2 });
    announce(report);
    holdsThroughout(report);
  },
);

describe('planted faults', patience, () => {
  const asked = 'a voice model that is asked';
  const faults = [
    {
      fault: 'a client that left in mid-speech is listened to',
      turn: mutate(turnMachine, (chart) => forget(stateOf(chart, 'user'), 'client.left')),
      property: 'nobody speaks where nobody is',
    },
    {
      fault: 'words that nobody tells are waited for',
      turn: mutate(turnMachine, (chart) =>
        forget(stateOf(chart, 'user', 'settling'), 'deadline.settle'),
      ),
      property: 'an end can always be reached',
    },
    {
      fault: 'a tool that never settles keeps the floor',
      turn: mutate(turnMachine, (chart) =>
        forget(stateOf(chart, 'floor', 'holding'), 'deadline.hold'),
      ),
      property: 'an end can always be reached',
    },
    {
      fault: 'the session is not told that the model speaks while a tool works',
      turn: mutate(turnMachine, (chart) => {
        stateOf(chart, 'floor', 'yielded').always = { target: 'taken' };
      }),
      property: 'the gate is closed while a party speaks',
    },
    {
      fault: 'the session is not told that the turn is over',
      turn: mutate(turnMachine, (chart) => {
        stateOf(chart, 'floor').on['choose'] = { guard: 'rests', target: '.free' };
      }),
      property: 'the gate is open where somebody listens, and nobody speaks',
    },
    {
      fault: 'a response is requested during another one',
      turn: provide(turnMachine, 'guards', { hasNoResponse: () => true }),
      property: 'the model is asked only when it is silent',
    },
    {
      fault: 'an offer is refused where nobody speaks',
      turn: provide(turnMachine, 'guards', { refuses: () => true }),
      property: 'an offer is told where nobody speaks',
    },
  ] as const;

  test('finds no violation if no fault is planted', () =>
    holdsThroughout(
      checkTurns({ lead: asked, scope: 'nobody helps', turn: mutate(turnMachine, () => {}) }),
    ));

  test.each(faults)('$fault', ({ turn, property }) =>
    finds(checkTurns({ lead: asked, scope: 'nobody helps', turn }), property),
  );
});
