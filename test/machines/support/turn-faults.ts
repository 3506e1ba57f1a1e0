// Faults planted in a turn, each with the property that must catch it.

import { assign } from 'xstate';
import { turnMachine } from '../../../src/machines/index.ts';
import { forget, mutate, provide, stateOf, type Fault } from './mutate.ts';
import type { Lead, Scope } from './turn-check.ts';

type Machine = typeof turnMachine;

interface TurnFault extends Fault<Machine> {
  readonly lead: Lead;
  readonly scope: Scope;
}

const text = 'a text model';
const asked = 'a voice model that is asked';
const byItself = 'a voice model that answers by itself';

export const turnFaults: readonly TurnFault[] = [
  {
    fault: 'a client that left in mid-speech is listened to',
    machine: mutate(turnMachine, (chart) => forget(stateOf(chart, 'user'), 'client.left')),
    property: 'TURN-2: nobody speaks where nobody is',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'an utterance whose end never comes is not watched',
    machine: mutate(turnMachine, (chart) => {
      delete stateOf(chart, 'user', 'speaking')['entry'];
    }),
    property: 'TURN-2: what the user says is watched as long as it lasts',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'an utterance does not end',
    machine: mutate(turnMachine, (chart) =>
      forget(stateOf(chart, 'user', 'speaking'), 'user.ended'),
    ),
    property: 'TURN-2: an utterance ends when its watch says so, or its client leaves',
    lead: byItself,
    scope: 'nobody helps',
  },
  {
    fault: 'words that nobody tells are waited for',
    machine: mutate(turnMachine, (chart) =>
      forget(stateOf(chart, 'user', 'settling'), 'deadline.settle'),
    ),
    property: 'TURN-2: words that nobody tells are not waited for',
    lead: byItself,
    scope: 'nobody helps',
  },
  {
    fault: 'words that nobody tells are settled without their name',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'user', 'settling').on['deadline.settle'] = {
        target: 'silent',
        actions: { type: 'settled', params: { utteranceIds: [] } },
      };
    }),
    property: 'TURN-8: an utterance whose words do not come is settled by name',
    lead: byItself,
    scope: 'nobody helps',
  },
  {
    fault: 'an utterance that begins takes the place of one whose words are unknown',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'user', 'speaking')['entry'] = [
        assign({ unknown: [] }),
        { type: 'watchSpeech', params: {} },
      ];
    }),
    property:
      'TURN-8: an utterance is over when its words are known, it is settled, or nobody is there',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'a reply without a word counts as one',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'reply', 'asked').on['request.ended'] = 'none';
    }),
    property: 'TURN-7: a reply that was requested is given, owed, or given up aloud',
    lead: text,
    scope: 'nobody helps',
  },
  {
    fault: 'a reply is given up, and nobody learns of it',
    machine: mutate(turnMachine, (chart) => {
      const { on } = stateOf(chart, 'reply', 'asked');
      on['request.ended'] = [...(on['request.ended'] as unknown[]).slice(0, -1), 'none'];
    }),
    property: 'TURN-7: a reply that was requested is given, owed, or given up aloud',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'a model that says nothing is asked forever',
    machine: provide(turnMachine, 'guards', { mayAskAgain: () => true }),
    property: 'TURN-7: a model that says nothing is not asked forever',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'a reply that was called off is not owed when the user is silent again',
    machine: mutate(turnMachine, (chart) => {
      delete stateOf(chart, 'reply', 'calledOff')['always'];
    }),
    property: 'TURN-7: a reply that was called off waits only while the user has the floor',
    lead: asked,
    scope: 'everything',
  },
  {
    fault: 'a reply is waited for on a connection that is gone',
    machine: mutate(turnMachine, (chart) =>
      forget(stateOf(chart, 'reply', 'asked'), 'responses.lost'),
    ),
    property: 'TURN-7: a reply that was requested is under way',
    lead: byItself,
    scope: 'everything',
  },
  {
    fault: 'a tool that never settles keeps the floor',
    machine: mutate(turnMachine, (chart) =>
      forget(stateOf(chart, 'floor', 'holding'), 'deadline.hold'),
    ),
    property: 'TURN-5: a tool that never settles gives up the floor',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'the session is not told that the model speaks while a tool works',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'floor', 'yielded').always = { target: 'taken' };
    }),
    property: 'TURN-5: the session knows the floor',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'a response is requested during another one',
    machine: provide(turnMachine, 'guards', { hasNoResponse: () => true }),
    property: 'TURN-1: nothing is requested while a party speaks',
    lead: text,
    scope: 'nobody helps',
  },
  {
    fault: 'the model is asked while it cannot be',
    machine: provide(turnMachine, 'guards', { isFree: () => true }),
    property: 'TURN-1: nothing is requested while a party speaks',
    lead: text,
    scope: 'everything',
  },
  {
    fault: 'a reply does not wait for the tools',
    machine: provide(turnMachine, 'guards', { hasNoCall: () => true }),
    property: 'TURN-1: no reply is requested while the model waits for a result',
    lead: text,
    scope: 'nobody helps',
  },
  {
    fault: 'a doubt that nobody resolves lasts',
    machine: mutate(turnMachine, (chart) =>
      forget(stateOf(chart, 'doubt', 'ended'), 'deadline.doubt'),
    ),
    property: 'TURN-3: a doubt that nobody resolves ends',
    lead: asked,
    scope: 'nobody helps',
  },
  {
    fault: 'the speech stays paused after a backchannel',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'doubt', 'ended').on['user.worded'] = { guard: 'listens', target: 'none' };
    }),
    property: 'TURN-3: the speech is paused as long as the doubt lasts',
    lead: asked,
    scope: 'everything',
  },
  {
    fault: 'the speech stays paused over its own echo',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'doubt', 'speaking').on['user.sounded'] = { guard: 'isEcho', target: 'late' };
    }),
    property: 'TURN-3: the speech is paused as long as the doubt lasts',
    lead: asked,
    scope: 'everything',
  },
  {
    fault: 'a model that stays silent is never asked',
    machine: mutate(turnMachine, (chart) =>
      forget(stateOf(chart, 'reply', 'expected'), 'deadline.reply'),
    ),
    property: 'TURN-4: a model that stays silent is asked',
    lead: byItself,
    scope: 'nobody helps',
  },
  {
    fault: 'a reply is forgotten',
    machine: mutate(turnMachine, (chart) => {
      stateOf(chart, 'reply', 'due').on['model.spoke'] = 'none';
    }),
    property: 'TURN-4: a reply that is due is owed until it is requested',
    lead: byItself,
    scope: 'everything',
  },
  {
    fault: 'an offer that waits is never told',
    machine: provide(turnMachine, 'guards', { mayTell: () => false }),
    property: 'TURN-6: an offer that waits is told as soon as nobody speaks',
    lead: text,
    scope: 'nobody helps',
  },
  {
    fault: 'a reply goes on over an offer that was begun',
    machine: mutate(turnMachine, (chart) => {
      const { on } = stateOf(chart, 'offer', 'begun');
      on['choose'] = (on['choose'] as unknown[]).slice(1);
    }),
    property: 'TURN-6: a reply breaks off the offer that was begun',
    lead: text,
    scope: 'nobody helps',
  },
];
