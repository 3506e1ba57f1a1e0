import { describe, expect, test } from 'vitest';
import { startCall } from './support/called.ts';

describe('HEARD-UTTERANCES-1: an utterance', () => {
  test('starts with its first text, and ends with a pause that makes the text final', async () => {
    const { peer, news, advance } = startCall();
    peer.hears('Book', 600);
    await advance(800);
    peer.hears(' a ride.', 1000);
    await advance(999);
    expect(news()).toEqual(['user begins at 600', 'user says "Book"', 'user says "Book a ride."']);
    await advance(1);
    expect(news()).toEqual(['user ends', 'user said "Book a ride."']);
  });

  test('ends immediately if the model starts to speak shortly after it', async () => {
    const { peer, news, advance } = startCall();
    peer.hears('Hello', 0);
    await advance(500);
    news();
    peer.sounds(100);
    expect(news()).toEqual(['user ends', 'user said "Hello"', 'started -']);
  });

  test('ends sooner while the model is speaking', async () => {
    const { peer, news, advance } = startCall();
    peer.hears('Hello', 0);
    await advance(200);
    peer.sounds(100);
    news();
    await advance(299);
    expect(news()).toEqual([]);
    await advance(1);
    expect(news()).toEqual(['user ends', 'user said "Hello"']);
  });

  test('continues while a muted model is speaking', async () => {
    const { peer, news, advance, send } = startCall();
    peer.sounds(100);
    peer.hears('Stop', 0);
    send({ type: 'response.cancel' });
    peer.sounds(100);
    news();
    await advance(900);
    peer.hears(' it', 900);
    await advance(900);
    expect(news()).toEqual(['user says "Stop it"']);
  });

  test('ends before the delegation that it caused is reported', () => {
    const { peer, news } = startCall();
    peer.hears('Book a ride.', 0);
    peer.delegates('d1');
    expect(news()).toEqual([
      'user begins at 0',
      'user says "Book a ride."',
      'user ends',
      'user said "Book a ride."',
      'delegates d1',
    ]);
  });

  test('ends when the session ends it, and later text starts another utterance', async () => {
    const { peer, news, send, of } = startCall();
    peer.hears('And now', 600);
    const utteranceId = of('utterance.started')[0]?.utteranceId ?? '';
    news();
    send({ type: 'utterance.end', utteranceId });
    expect(news()).toEqual(['user ends', 'user said "And now"']);
    peer.hears(' the weather', 900);
    expect(news()).toEqual(['user begins at 900', 'user says "the weather"']);
  });

  test('does not start with white space', () => {
    const { peer, news } = startCall();
    peer.hears(' ', 0);
    expect(news()).toEqual([]);
  });
});

describe('HEARD-UTTERANCES-2, HEARD-UTTERANCES-3: fragments', () => {
  test('start another utterance after a pause, even if they arrive together with earlier text', () => {
    const { peer, news } = startCall();
    peer.hears('Yes.', 0);
    peer.hears('And now?', 1200);
    expect(news()).toEqual([
      'user begins at 0',
      'user says "Yes."',
      'user ends',
      'user said "Yes."',
      'user begins at 1200',
      'user says "And now?"',
    ]);
  });

  test('count once when they arrive twice', () => {
    const { peer, news } = startCall();
    const fragment = { event_id: 'x', delta: 'Yes', start_ms: 0, end_ms: 200 };
    peer.says({ type: 'session.input_transcript.delta', ...fragment });
    peer.says({ type: 'session.input_transcript.delta', ...fragment });
    expect(news()).toEqual(['user begins at 0', 'user says "Yes"']);
  });

  test('form a separate utterance when they arrive late', async () => {
    const { peer, news, advance, of } = startCall();
    peer.hears('To Rome', 0);
    await advance(1000);
    const [first] = of('utterance.started');
    news();
    peer.hears(', please', 200);
    await advance(1000);
    const [second] = of('utterance.started');
    expect(second?.utteranceId).not.toBe(first?.utteranceId);
    expect(news()).toEqual([
      'user begins at 0',
      'user says ", please"',
      'user ends',
      'user said ", please"',
    ]);
  });
});

test("separates the user's speech from the model's when both speak at the same time", async () => {
  const { peer, news, advance } = startCall();
  peer.sounds(200);
  peer.speaks('Your ride is here.');
  peer.hears('Mm-hm', 100);
  peer.sounds(200);
  await advance(500);
  peer.pauses();
  expect(news()).toEqual([
    'started -',
    'says "Your ride is here."',
    'user begins at 100',
    'user says "Mm-hm"',
    'user ends',
    'user said "Mm-hm"',
    'said "Your ride is here."',
    'ended - completed 400',
  ]);
});

test('stays open if the session cancels the model as soon as it starts', async () => {
  const call = startCall({}, {}, (event) => {
    if (event.type === 'utterance.started') call.send({ type: 'response.cancel' });
  });
  await call.advance(5000);
  call.peer.sounds(200);
  call.news();
  call.peer.hears('Stop', 100);
  expect(call.news()).toEqual(['user begins at 0', 'user says "Stop"']);
});
