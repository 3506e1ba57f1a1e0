// Plays the demo with each vendor's voice server. The server is a fake behind a real socket that receives no audio. The
// test decides what the user says, while the page's microphone and speaker are real. The other tests in this folder use
// real speech from end to end.

import { describe, expect, test } from 'vitest';
import type { VoiceWire } from '../../src/testing/voice-server/index.ts';
import { JOKE } from './support/lead-responder.ts';
import { buildRemoteTheatre, troubles } from './support/stage.ts';
import { overflowing } from './support/tab.ts';
import { theatreOfFile } from './support/theatre.ts';

const wires: readonly {
  readonly wire: VoiceWire;
  readonly model: string;
  readonly width: number;
}[] = [
  { wire: 'openai-realtime', model: 'gpt-realtime-2.1', width: 390 },
  { wire: 'openai-live', model: 'gpt-live-1', width: 1280 },
  { wire: 'gemini-live', model: 'gemini-3.8-live', width: 390 },
];

describe.each(wires)('on $wire', ({ wire, model, width }) => {
  const open = theatreOfFile(() => buildRemoteTheatre(wire));

  test('completes a ride despite an interruption, a reload and a reconnect, and plays the result only once', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit({ width, height: 800 });
    const line = tab.page.getByLabel('The voice');
    await line.getByText(wire, { exact: true }).waitFor();
    await line.getByText(model, { exact: true }).waitFor();

    await tab.startTalking();
    await tab.untilSpeaker('sounds');
    await tab.caption('Hello. I can book you a ride.').waitFor();
    await watch.untilQuiet();
    await stage.model.user.says('Book me a ride to the airport, please.');
    await tab.caption('Book me a ride to the airport, please.').waitFor();

    // The page is reloaded while the question is being presented. The question is presented again and answered with a
    // button.
    const { requestId } = await watch.until('the question is being said', ({ questions }) =>
      questions.find(
        (question) =>
          question.state === 'presenting' &&
          watch.state.deliveries.some(
            ({ deliveryId, state }) => deliveryId === question.requestId && state === 'playing',
          ),
      ),
    );
    await tab.page.reload();
    await watch.until('it is put aside', () =>
      watch.of('question.changed').some(({ question }) => question.state === 'parked'),
    );
    await tab.goOnTalking();
    const asked = await watch.until('it was heard', ({ questions }) =>
      questions.find(({ state }) => state === 'open'),
    );
    expect(asked.requestId).toBe(requestId);
    expect(await overflowing(tab)).toEqual([]);
    await tab
      .question('Which ride to the airport')
      .getByRole('button', { name: 'Premium' })
      .click();

    // The user interrupts while the result is being spoken.
    const { deliveryId } = await watch.until('the result is being told', ({ deliveries }) =>
      deliveries.find(({ kind, state }) => kind === 'result' && state === 'playing'),
    );
    await tab.untilSpeaker('sounds');
    const cuts = watch.of('speech.interrupted').length;
    await stage.model.user.says('Tell me a joke.');
    await watch.until('it was cut off', () => watch.of('speech.interrupted').at(cuts));
    await tab.caption(JOKE).waitFor();
    const result = await watch.until('the result was heard', ({ deliveries }) =>
      deliveries.find((each) => each.deliveryId === deliveryId && each.state === 'delivered'),
    );
    expect(result.grade).toBe('played');
    expect(result.attempts).toBeGreaterThan(1);
    await watch.untilQuiet();

    // After a lost connection, the next one knows the conversation and delivers nothing twice. The session reconnects
    // quickly, so the test watches the page before the connection is lost.
    const isShown = tab.page.getByText('The lead agent is reconnecting').waitFor();
    stage.model.faults.drop();
    await Promise.all([
      isShown,
      watch.until('it is lost', ({ connection }) => connection === 'reconnecting'),
    ]);
    expect(await overflowing(tab)).toEqual([]);
    await tab.page.getByText('Connected', { exact: true }).waitFor();
    expect(stage.server.connections.length).toBe(2);
    await watch.untilQuiet();
    await tab.type('Thank you.');
    await tab.caption('You are welcome.').waitFor();
    await watch.untilQuiet();
    expect(
      watch
        .of('delivery.changed')
        .filter(({ delivery }) => delivery.deliveryId === deliveryId)
        .filter(({ delivery }) => delivery.state === 'delivered'),
    ).toHaveLength(1);
    expect(watch.state.subagents).toMatchObject([{ name: 'ride_booker', state: 'completed' }]);

    // Users never see token counts.
    expect(await tab.page.getByText(/\btokens?\b/).count()).toBe(0);
    expect(await overflowing(tab)).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
    // The timeout ends a test that hangs; a model that listens and speaks in real time is slow.
  }, 300_000);
});
