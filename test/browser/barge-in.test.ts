// The user interrupts the delivery of a result. The speech stops at once, the delivery waits, and it is repeated in the
// next pause.

import { describe, expect, test } from 'vitest';
import { troubles } from './support/stage.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

describe('barge-in', () => {
  test('P4, P5: stops an interrupted result immediately, and plays it again later', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.type('book me a ride to the airport');
    await tab
      .question('Which ride to the airport')
      .getByRole('button', { name: 'Premium' })
      .click();

    const result = await watch.until('the result is being said', ({ deliveries }) =>
      deliveries.find(({ kind, state }) => kind === 'result' && state === 'playing'),
    );
    const { deliveryId } = result;
    const stateOfResult = () =>
      watch.state.deliveries.find((delivery) => delivery.deliveryId === deliveryId);
    await tab.untilSpeaker('sounds');
    const cutsBefore = watch.of('speech.interrupted').length;
    const joke = tab.say('Tell me a joke, please.');
    const cut = await watch.until('it was cut off', () =>
      watch.of('speech.interrupted').at(cutsBefore),
    );
    await tab.untilSpeaker('is silent');
    expect(stateOfResult()).toMatchObject({ state: 'pending', attempts: 1 });
    // The session never counts more as heard than the page has played. Speech that was lowered resumes under another
    // name.
    const playedOf = () =>
      tab.namesOf(cut.itemId).reduce((sum, name) => sum + Math.max(0, ...tab.playedMs(name)), 0);
    const playedMs = playedOf();
    expect(cut.playedMs).toBeGreaterThan(0);
    // A sum of fractions is inexact.
    expect(cut.playedMs).toBeLessThanOrEqual(playedMs + 0.001);
    expect(watch.state.transcript.find(({ id }) => id === cut.itemId)).toMatchObject({
      final: true,
      interrupted: true,
    });
    // Interrupted speech does not change the ride.
    expect(watch.state.subagents).toMatchObject([{ state: 'completed' }]);
    await joke;

    const words = await watch.until('what the user said is taken down', ({ transcript }) =>
      transcript.findLast(({ role, at, final }) => role === 'user' && final && at > result.at),
    );
    await tab.caption(words.text).waitFor();
    await watch.until(
      'the result was heard',
      () => stateOfResult()?.state === 'delivered' && stateOfResult(),
    );
    expect(stateOfResult()).toMatchObject({ grade: 'played', attempts: 2 });
    // The lead agent first replies to the user, even if it misheard them.
    const said = watch.state.transcript.map(({ text }) => text);
    const replied = watch.state.transcript.findIndex(
      ({ role, text, at }) => role === 'assistant' && text !== '' && at > words.at,
    );
    const isJoke = /actor get lost|two agents the same question/;
    expect(said[replied]).toMatch(/joke/i.test(words.text) ? isJoke : /\w/);
    expect(said[replied]).not.toContain('is booked');
    const told = said.findLastIndex((text) =>
      text.includes('Premium ride to the airport is booked'),
    );
    expect(told).toBeGreaterThan(replied);

    // In another pause, the result is not repeated a third time.
    await tab.type('thank you');
    await tab.caption(/welcome|pleasure|Any time/).waitFor();
    await watch.untilQuiet();
    const delivered = watch
      .of('delivery.changed')
      .filter(
        ({ delivery }) => delivery.deliveryId === deliveryId && delivery.state === 'delivered',
      );
    expect(delivered).toHaveLength(1);
    expect(playedOf()).toBe(playedMs);
    expect(watch.state.transcript.filter(({ text }) => text.includes('is booked'))).toHaveLength(
      // The first attempt was cut off before these words, so it contains none of them.
      said.filter((text) => text.includes('is booked')).length,
    );
    expect(troubles(stage, tab)).toEqual([]);
  });
});
