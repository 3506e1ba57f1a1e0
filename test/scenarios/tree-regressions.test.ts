// Faults that the random trees (`tree.property.test.ts`) found, each as a fixed story.

import { expect, test } from 'vitest';
import { voiceTalk } from '../support/voice-talk.ts';

test('P7: leaves no timer running if a client leaves after the session has closed', async () => {
  const talk = voiceTalk();
  await talk.start();
  await talk.say('hello');
  // The model has been asked to reply and has not started.
  expect(talk.model().openRequests).toHaveLength(1);
  const closed = talk.session.close();
  await talk.environment.settle();
  await closed;
  talk.leave();
  expect(talk.environment.pendingTimers).toBe(0);
});

test('P7: does not request further replies if the session is closed while the user interrupts', async () => {
  const talk = voiceTalk();
  await talk.start();
  await talk.say('hello');
  talk.model().begin('And so it goes on.', 3000);
  // The client has not yet reported how much it played when the session is closed.
  await talk.say('hold on');
  const requests = talk.model().of('response.request').length;
  const closed = talk.session.close();
  await talk.environment.settle();
  await closed;
  expect(talk.model().of('response.request')).toHaveLength(requests);
  expect(talk.environment.pendingTimers).toBe(0);
});
