import { describe, expect, test } from 'vitest';
import { startCall } from './support/called.ts';

describe('SPOKEN-RESPONSES-1: a response', () => {
  test('starts with its audio, and ends with a pause', () => {
    const { peer, news, frames } = startCall();
    peer.pauses(500);
    expect(news()).toEqual([]);
    peer.sounds(100);
    peer.speaks('Hello');
    peer.sounds(100);
    peer.speaks(' there.');
    peer.pauses(700);
    expect(news()).toEqual(['started -', 'says "Hello"', 'says " there."']);
    peer.pauses(100);
    expect(news()).toEqual(['said "Hello there."', 'ended - completed 240']);
    expect(new Set(frames.map(({ responseId, itemId }) => `${responseId} ${itemId}`)).size).toBe(1);
  });

  test('starts with its transcript if that arrives before the audio', () => {
    const { peer, news } = startCall();
    peer.speaks('Hello.');
    peer.sounds(400);
    peer.pauses();
    expect(news()).toEqual([
      'started -',
      'says "Hello."',
      'said "Hello."',
      'ended - completed 400',
    ]);
  });

  test('joins two turns as sentences if no pause separates them', () => {
    const { peer, news } = startCall();
    peer.sounds(100);
    for (const words of ['To the air', 'port.', 'One moment.', ' At 3.', '30 p.', 'm.'])
      peer.speaks(words);
    peer.pauses();
    expect(news()).toContain('said "To the airport. One moment. At 3.30 p.m."');
  });

  test('survives a pause between two sentences', () => {
    const { peer, news } = startCall();
    peer.sounds(100);
    peer.pauses(700);
    peer.sounds(100);
    peer.pauses(700);
    expect(news()).toEqual(['started -']);
  });

  test('continues when text arrives during a pause', () => {
    const { peer, news } = startCall();
    peer.sounds(100);
    peer.pauses(700);
    peer.speaks('And');
    peer.pauses(700);
    expect(news()).toEqual(['started -', 'says "And"']);
  });

  test('ends shortly after the track has stopped', async () => {
    const { peer, news, advance } = startCall();
    peer.sounds(300);
    await advance(1500);
    peer.sounds(300);
    await advance(1999);
    expect(news()).toEqual(['started -']);
    await advance(1);
    expect(news()).toEqual(['ended - completed 600']);
  });

  test('ignores noise on an idle track', () => {
    const { peer, news } = startCall();
    peer.sounds(400, 40);
    expect(news()).toEqual([]);
  });

  test('uses new ids for each reply', () => {
    const { peer, of } = startCall();
    peer.replies('One.');
    peer.replies('Two.');
    const ids = of('response.started').map(({ responseId }) => responseId);
    expect(new Set(ids).size).toBe(2);
    expect(of('assistant.transcribed').filter(({ final }) => final)).toMatchObject([
      { text: 'One.', responseId: ids[0] },
      { text: 'Two.', responseId: ids[1] },
    ]);
  });
});

describe('SPOKEN-RESPONSES-2: the audio', () => {
  test('starts shortly before the first audible frame, and continues to the end', () => {
    const { peer, frames } = startCall();
    peer.pauses(1000);
    expect(frames).toEqual([]);
    peer.sounds(100);
    peer.pauses();
    peer.pauses(1000);
    const level = frames.map(({ samples }) => samples[0]);
    expect(level).toEqual([0, 3000, ...Array.from({ length: 8 }, () => 0)]);
    expect(frames.map(({ samples }) => samples.length).slice(0, 2)).toEqual([960, 2400]);
    expect(frames[0]).toMatchObject({ sampleRateHz: 24_000, itemId: expect.any(String) });
  });

  test('keeps its sample rate of 16 kHz', () => {
    const { peer, frames, of } = startCall({ sampleRateHz: 16_000 });
    peer.sounds(500, 3000, 16_000);
    for (let ms = 0; ms < 800; ms += 100) peer.sounds(100, 0, 16_000);
    expect(frames[0]).toMatchObject({ sampleRateHz: 16_000 });
    expect(of('response.ended')).toMatchObject([{ audio: [{ durationMs: 500 }] }]);
  });
});

describe('SPOKEN-RESPONSES-3: a cancelled response', () => {
  test('falls silent immediately, and ends when the model falls silent', () => {
    const { peer, news, frames, send } = startCall();
    peer.sounds(300);
    peer.speaks('Once upon');
    send({ type: 'response.cancel' });
    send({ type: 'response.cancel' });
    const heard = frames.length;
    peer.sounds(300);
    peer.speaks(' a time');
    peer.pauses(700);
    peer.sounds(300);
    expect(news()).toEqual(['started -', 'says "Once upon"']);
    peer.pauses();
    expect(news()).toEqual(['said "Once upon"', 'ended - cancelled 300']);
    peer.speaks(' there was', 700);
    expect(news()).toEqual([]);
    expect(frames).toHaveLength(heard);
    expect(peer.appends).toEqual([]);
  });

  test('ends after two seconds if the model keeps talking', async () => {
    const { peer, news, frames, send, advance } = startCall();
    peer.sounds(300);
    send({ type: 'response.cancel' });
    const heard = frames.length;
    for (let second = 0; second < 2; second += 1) {
      peer.sounds(1000);
      await advance(1000);
    }
    expect(news()).toEqual(['started -', 'ended - cancelled 300']);
    peer.sounds(1000);
    expect(frames).toHaveLength(heard);
    peer.pauses();
    peer.sounds(100);
    expect(news()).toEqual(['started -']);
  });

  test('assigns speech after a pause to another response', () => {
    const { peer, news, send } = startCall();
    peer.sounds(300);
    send({ type: 'response.cancel' });
    peer.pauses();
    news();
    peer.replies('Sorry.');
    expect(news()).toEqual([
      'started -',
      'says "Sorry."',
      'said "Sorry."',
      'ended - completed 600',
    ]);
  });

  test('ends after a shorter pause if the user interrupted it', () => {
    const { peer, news, send } = startCall();
    peer.sounds(300);
    peer.hears('Wait', 200);
    send({ type: 'response.cancel' });
    news();
    peer.pauses(400);
    expect(news()).toEqual([]);
    peer.pauses(100);
    expect(news()).toEqual(['ended - cancelled 300']);
    peer.sounds(300);
    expect(news()).toEqual(['started -']);
  });

  test('does not send a message if no response is running', () => {
    const { news, send, peer } = startCall();
    send({ type: 'response.cancel' });
    expect(news()).toEqual([]);
    expect(peer.sent).toHaveLength(1);
  });
});

describe('SPOKEN-RESPONSES-5: text that arrives late', () => {
  test('joins the response in which it was spoken', () => {
    const { peer, news, of } = startCall();
    peer.sounds(1000);
    peer.speaks('It is', 0);
    peer.pauses();
    const [started] = of('response.started');
    news();
    peer.speaks(' late.', 600);
    expect(of('assistant.transcribed')).toMatchObject([
      { text: 'It is late.', final: true, responseId: started?.responseId },
    ]);
  });

  test('counts once when a fragment arrives twice', () => {
    const { peer, news } = startCall();
    const fragment = { event_id: 'x', delta: 'Yes.', start_ms: 0, end_ms: 200 };
    peer.says({ type: 'session.output_transcript.delta', ...fragment });
    peer.says({ type: 'session.output_transcript.delta', ...fragment });
    expect(news()).toEqual(['started -', 'says "Yes."']);
  });
});

test('an error without an event marks the current response as incomplete', () => {
  const { peer, news } = startCall();
  peer.sounds(300);
  peer.refuses({ code: 'moderation', message: 'Cut off.' });
  peer.pauses();
  expect(news()).toEqual(['started -', 'error moderation -', 'ended - incomplete 300']);
});

describe('SPOKEN-RESPONSES-6: the end of a response that breaks off', () => {
  const endOf = (words: string, isSpokenInto: boolean): string | undefined => {
    const { peer, news } = startCall();
    peer.sounds(200);
    peer.speaks(words);
    if (isSpokenInto) peer.hears('Okay', 100);
    peer.sounds(200);
    peer.pauses();
    return news().find((line) => line.startsWith('ended'));
  };

  test.each([
    ['Last week brought', true, 'ended - cancelled 400'],
    ['Last week brought', false, 'ended - completed 400'],
    ['Last week was good.', true, 'ended - completed 400'],
    ['Lief die Woche gut? «Ja!»', true, 'ended - completed 400'],
    ['先週は好調でした。', true, 'ended - completed 400'],
  ])('depends on its text and on an interruption: "%s", %s', (words, isSpokenInto, end) =>
    expect(endOf(words, isSpokenInto)).toBe(end),
  );
});
