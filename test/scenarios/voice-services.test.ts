// Service subagents in a voice session: when the user hears their findings.

import { describe, expect, test } from 'vitest';
import { orderMonitor } from '../support/order-monitor.ts';
import { voiceTalk } from '../support/voice-talk.ts';

async function talking() {
  const monitor = orderMonitor();
  const talk = voiceTalk({ services: [monitor.service] });
  await talk.start();
  const { model, environment, say } = talk;
  await say('tell me a story');
  const story = model().begin('Once upon a time', 4000);
  await talk.play(story.itemId, 1000);
  const happens: typeof monitor.happens = async (...event) => {
    const receipt = await monitor.happens(...event);
    await environment.settle();
    return receipt;
  };
  return { ...talk, story, happens };
}

describe('a service in a voice session', { tags: ['B74', 'B76', 'BW32'] }, () => {
  test('delivers a normal notice in a pause after the lead agent has been heard', async () => {
    const { happens, story, asked, play, pause, speak, state } = await talking();
    await happens({ say: 'Order 7 was shipped.' });
    expect(asked()).toBeNull();
    story.end();
    await play(story.itemId, 4000);
    expect(asked()).toBeNull();
    await pause();
    expect(asked()).toContain('{"label":"ORDER UPDATE","text":"Order 7 was shipped."}');
    await speak('Order 7 was shipped.');
    expect(state().deliveries).toMatchObject([
      { state: 'delivered', grade: 'played', attempts: 1, kind: 'notice', label: 'ORDER UPDATE' },
    ]);
  });

  test('interrupts for an urgent notice, which is played once', async () => {
    const { happens, story, asked, model, speak, pause, environment, state } = await talking();
    await happens({ say: 'Order 8 is lost!' }, 'urgent');
    expect(model().of('response.cancel')).toHaveLength(1);
    story.end('cancelled');
    await environment.settle();
    expect(asked()).toContain('Order 8 is lost!');
    await speak('Order 8 is lost!');
    await pause();
    const requests = model().of('response.request');
    expect(requests.filter(({ about }) => about?.includes('lost'))).toHaveLength(1);
    expect(state().deliveries).toMatchObject([
      { state: 'delivered', grade: 'played', attempts: 1 },
    ]);
  });

  test('P4: delivers an interrupted notice again', async () => {
    const { happens, story, asked, model, play, pause, environment, speak, state } =
      await talking();
    story.end();
    await play(story.itemId, 4000);
    await happens({ say: 'Order 7 was shipped.' });
    await pause();
    const notice = model().begin('Order 7', 2000);
    await play(notice.itemId, 300);
    model().speechStarted('u2');
    notice.end('cancelled');
    await environment.settle();
    model().speechEnded('u2', '');
    await environment.settle();
    await pause();
    expect(asked()).toContain('Order 7 was shipped.');
    await speak('Order 7 was shipped.');
    expect(state().deliveries).toMatchObject([{ state: 'delivered', attempts: 2 }]);
  });

  test('keeps a notice for the next client', async () => {
    const monitor = orderMonitor();
    const talk = voiceTalk({ services: [monitor.service] });
    await talk.start();
    talk.leave();
    await monitor.happens({ say: 'Order 7 was shipped.' }, 'urgent');
    await talk.environment.settle();
    await talk.pause();
    expect(talk.asked()).toBeNull();
    expect(talk.state().deliveries).toMatchObject([{ state: 'pending', attempts: 0 }]);
    talk.session.attach();
    await talk.pause();
    expect(talk.asked()).toContain('Order 7 was shipped.');
  });
});
