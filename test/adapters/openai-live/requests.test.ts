import { describe, expect, test } from 'vitest';
import { startCall } from './support/called.ts';

/** Creates a request whose text the server has accepted. */
function asked(options?: Parameters<typeof startCall>[0]) {
  const call = startCall(options);
  call.request('offer:1', 'Tell the user: it is done.');
  call.peer.takesIn();
  return call;
}

describe('OPENAI-LIVE-REQUESTS-1: a request', () => {
  test('gets the response that starts after its text was consumed, unless it has another cause', () => {
    const { peer, news } = asked();
    peer.replies('It is done.');
    expect(news()).toEqual([
      'started offer:1',
      'says "It is done."',
      'said "It is done."',
      'ended offer:1 completed 600',
    ]);
  });

  test('gets only the first such response', () => {
    const { peer, news } = asked();
    peer.replies('It is done.');
    news();
    peer.replies('By the way.');
    expect(news()[0]).toBe('started -');
  });

  test('does not get a response that started before its text was consumed', () => {
    const { peer, news, request } = startCall();
    request('offer:1', 'Tell the user: it is done.');
    peer.sounds(100);
    expect(news()).toEqual(['ended offer:1 cancelled (uncertain) 0', 'started -']);
    peer.takesIn();
    peer.pauses();
    peer.sounds(100);
    expect(news()).toEqual(['ended - completed 100', 'started -']);
  });

  test('does not get a response if the user has spoken in between', async () => {
    const { peer, news, advance } = asked();
    peer.hears('And?', 0);
    await advance(1000);
    news();
    peer.sounds(100);
    expect(news()).toEqual(['ended offer:1 cancelled (uncertain) 0', 'started -']);
  });

  test.each([
    ['something was delegated', (call: ReturnType<typeof asked>) => call.peer.delegates('d1')],
    [
      'a delegation was answered',
      (call: ReturnType<typeof asked>) =>
        call.send({ type: 'delegation.answer', delegationId: 'd0', text: 'No.' }),
    ],
  ])('gets no response after %s in between', (_, happens) => {
    const call = asked();
    happens(call);
    call.news();
    call.peer.sounds(100);
    expect(call.news()).toEqual(['ended offer:1 cancelled (uncertain) 0', 'started -']);
  });
});

describe('OPENAI-LIVE-REQUESTS-4: a held request', () => {
  const told = ({ peer }: ReturnType<typeof startCall>) => peer.told.map(([channel]) => channel);

  test('waits while the model may still answer the user, and then gets its own response', async () => {
    const call = startCall();
    const { peer, news, advance, request, send } = call;
    peer.hears('And?', 0);
    await advance(1000);
    request('offer:1', 'Tell the user: it is done.');
    news();
    peer.sounds(100);
    expect(news()).toEqual(['started -']);
    expect(told(call)).toEqual([]);
    // A request can be withdrawn until it has been sent.
    send({ type: 'response.withdraw', responseKey: 'offer:1' });
    expect(news()).toEqual(['ended offer:1 cancelled (cancelled) 0']);
    peer.pauses();
    await advance(10_000);
    expect(told(call)).toEqual([]);
  });

  test('waits while the model is speaking, even if muted, and is sent when the model falls silent', () => {
    const call = startCall();
    const { peer, news, request, send } = call;
    peer.sounds(100);
    send({ type: 'response.cancel' });
    request('offer:1', 'Tell the user: it is done.');
    peer.sounds(12_000);
    expect(told(call)).toEqual([]);
    peer.pauses();
    expect(told(call)).toEqual(['commentary']);
    peer.takesIn();
    news();
    peer.replies('It is done.');
    expect(news()[0]).toBe('started offer:1');
  });

  test('waits at most two seconds for a response that has another cause', async () => {
    const call = startCall();
    const { peer, advance, request } = call;
    peer.hears('Yes.', 0);
    await advance(1000);
    request('offer:1', 'Tell the user: it is done.');
    await advance(1999);
    expect(told(call)).toEqual([]);
    await advance(1);
    expect(told(call)).toEqual(['commentary']);
  });

  test('waits while a cancelled request may still be answered, and drops that answer', () => {
    const call = asked();
    const { peer, news, send, request } = call;
    send({ type: 'response.cancel' });
    request('offer:2', 'Tell the user: it rains.');
    news();
    peer.replies('It is done.');
    expect(news()).toEqual([]);
    expect(told(call)).toEqual(['commentary', 'commentary']);
    peer.takesIn();
    peer.replies('It rains.');
    expect(news()[0]).toBe('started offer:2');
  });

  test('remains unsent when it is cancelled', async () => {
    const call = startCall();
    const { peer, news, advance, request, send } = call;
    peer.sounds(100);
    request('offer:1', 'Tell the user: it is done.');
    news();
    send({ type: 'response.cancel' });
    expect(news()).toEqual(['ended offer:1 cancelled (cancelled) 0']);
    peer.pauses();
    await advance(10_000);
    expect(told(call)).toEqual([]);
  });
});

describe('OPENAI-LIVE-REQUESTS-2: another cause of a response', () => {
  test('stops counting once its response has started', async () => {
    const { peer, news, advance, request } = startCall();
    peer.hears('Book it.', 0);
    peer.delegates('d1');
    await advance(200);
    peer.replies('One moment.');
    request('offer:1', 'Tell the user: it is done.');
    peer.takesIn();
    news();
    peer.sounds(100);
    expect(news()).toEqual(['started offer:1']);
  });

  test('stops counting after three seconds without a response', async () => {
    const { peer, news, advance, request } = startCall();
    peer.hears('Mm-hm', 0);
    await advance(3000);
    request('offer:1', 'Tell the user: it is done.');
    peer.takesIn();
    news();
    peer.sounds(100);
    expect(news()).toEqual(['started offer:1']);
  });

  test("does not include a delegation that arrives during the model's speech", () => {
    const { peer, news, request } = startCall();
    peer.sounds(300);
    peer.delegates('d1');
    peer.pauses();
    request('offer:1', 'Tell the user: it is done.');
    peer.takesIn();
    news();
    peer.sounds(100);
    expect(news()).toEqual(['started offer:1']);
  });
});

describe('OPENAI-LIVE-REQUESTS-3: the end of a request', () => {
  test('occurs once if the model says nothing before the timeout', async () => {
    const { news, advance, peer } = asked({ turns: { requestTimeoutMs: 4000 } });
    await advance(3999);
    expect(news()).toEqual([]);
    await advance(1);
    expect(news()).toEqual(['ended offer:1 cancelled (nothing_said) 0']);
    peer.sounds(100);
    expect(news()).toEqual(['started -']);
  });

  test('occurs once when the server refuses the text', () => {
    const { peer, news, request } = startCall();
    request('offer:1', 'Tell the user: it is done.');
    const id = peer.appends[0]?.event_id;
    peer.refuses({
      code: 'invalid_value',
      message: 'Too long.',
      ...(id && { client_event_id: id }),
    });
    expect(news()).toEqual(['error invalid_value offer:1']);
    peer.sounds(100);
    expect(news()).toEqual(['started -']);
  });

  test('occurs once when the request is cancelled, even if a late answer arrives', async () => {
    const { peer, news, send, frames, advance } = asked();
    send({ type: 'response.cancel' });
    send({ type: 'response.cancel' });
    expect(news()).toEqual(['ended offer:1 cancelled (cancelled) 0']);
    peer.replies('It is done.');
    expect(news()).toEqual([]);
    expect(frames).toEqual([]);
    peer.replies('Anything else?');
    expect(news()[0]).toBe('started -');
    await advance(60_000);
    expect(news()).not.toContain('ended offer:1 cancelled (nothing_said) 0');
  });

  test('ignores a withdrawal after the request has been sent', () => {
    const { peer, send, news } = asked();
    const { length } = peer.sent;
    send({ type: 'response.withdraw', responseKey: 'offer:1' });
    expect(peer.sent).toHaveLength(length);
    peer.replies('It is done.');
    expect(news().at(-1)).toBe('ended offer:1 completed 600');
  });

  test('does not mute a response after the user has interrupted', () => {
    const { peer, news, send } = asked();
    peer.hears('Stop', 0);
    send({ type: 'response.cancel' });
    news();
    peer.replies('Sorry?');
    expect(news()).toContain('started -');
  });
});

describe('OPENAI-LIVE-REQUESTS-5: a text that has been requested before', () => {
  type Started = ReturnType<typeof startCall>;
  const ask = ({ send }: Started, responseKey: string, subject = 'ride') =>
    send({ type: 'response.request', responseKey, instructions: 'It is done.', subject });
  const times = ({ peer }: Started) =>
    peer.told.filter(([, , text]) => text.includes('It is done')).length;

  /** Creates a request that has just lapsed. */
  async function lapsed() {
    const call = startCall();
    ask(call, 'offer:1');
    call.peer.takesIn();
    await call.advance(8000);
    expect(call.news()).toEqual(['ended offer:1 cancelled (nothing_said) 0']);
    return call;
  }

  test('adopts the late answer to the first request, and stays unsent', async () => {
    const call = await lapsed();
    ask(call, 'offer:2');
    await call.advance(2900);
    call.peer.replies('It is done.');
    expect(call.news()[0]).toBe('started offer:2');
    expect(times(call)).toBe(1);
  });

  test('gets the whole late answer even if the request is repeated during that answer', async () => {
    const call = await lapsed();
    call.peer.sounds(300);
    call.peer.speaks('It is done.');
    expect(call.news()).toEqual([]);
    await call.advance(300);
    ask(call, 'offer:2');
    call.peer.pauses();
    expect(call.news()).toEqual([
      'started offer:2',
      'says "It is done."',
      'said "It is done."',
      'ended offer:2 completed 300',
    ]);
    expect(call.frames.reduce((sum, { samples }) => sum + samples.length, 0) / 24).toBe(1100);
    expect(times(call)).toBe(1);
  });

  test.each([
    ['nothing is asked for', undefined],
    ['something else is asked for', 'report'],
  ])('produces no late answer if %s', async (_, subject) => {
    const call = await lapsed();
    if (subject !== undefined) ask(call, 'offer:2', subject);
    call.peer.sounds(300);
    await call.advance(2000);
    call.peer.pauses();
    expect(call.news()).toEqual([]);
    expect(call.frames).toEqual([]);
  });

  test('sends its text again after three silent seconds, and drops the second answer', async () => {
    const call = await lapsed();
    ask(call, 'offer:2');
    await call.advance(3000);
    expect(times(call)).toBe(2);
    // The model already knew the text.
    call.peer.replies('It is done.');
    expect(call.news()[0]).toBe('started offer:2');
    await call.advance(1000);
    call.news();
    call.peer.replies('It is done.');
    expect(call.news()).toEqual([]);
    await call.advance(3000);
    call.peer.replies('Anything else?');
    expect(call.news()[0]).toBe('started -');
  });

  test('gets its own answer after an answer to another utterance', async () => {
    const call = startCall();
    ask(call, 'offer:1');
    call.peer.takesIn();
    call.peer.hears('And?', 0);
    await call.advance(1000);
    call.peer.replies('Wait.');
    call.news();
    ask(call, 'offer:2');
    call.peer.replies('It is done.');
    expect(call.news()[0]).toBe('started offer:2');
    expect(times(call)).toBe(1);
  });

  test('waits longer while the user is speaking', async () => {
    const call = startCall();
    ask(call, 'offer:1');
    call.peer.takesIn();
    await call.advance(7000);
    call.peer.hears('Hm', 0);
    await call.advance(7999);
    expect(call.news().filter((news) => news.startsWith('ended'))).toEqual([]);
    await call.advance(1);
    expect(call.news()).toContain('ended offer:1 cancelled (nothing_said) 0');
  });
});

describe('the text of a request', () => {
  test('becomes commentary', () => {
    const { peer } = asked();
    expect(peer.told).toEqual([
      ['commentary', null, expect.stringMatching(/^Tell the user: it is done\. Do not wait/)],
    ]);
  });

  test('asks for a reply if there are no instructions', () => {
    const { peer, request } = startCall();
    request('reply:1');
    expect(peer.told).toEqual([
      ['commentary', null, expect.stringMatching(/^\[note\] If you have not yet replied/)],
    ]);
  });

  test('names the delegation that has just been answered', async () => {
    const { peer, request, send, advance } = startCall();
    peer.delegates('d1');
    send({ type: 'delegation.accept', delegationId: 'd1', callIds: ['c1'] });
    send({ type: 'tool.answer', callId: 'c1', output: 'Booked.', silent: true });
    request('offer:1', 'Tell the user now.');
    // The model may speak about its delegation.
    await advance(3000);
    expect(peer.told.map(([channel, id]) => [channel, id])).toEqual([
      ['thinking', 'd1'],
      ['commentary', 'd1'],
    ]);
    request('offer:2', 'Something else.');
    expect(peer.told.at(-1)?.[1]).toBeNull();
  });

  test('contains the result, and precedes an instruction that does not repeat it', () => {
    const { peer, request, news } = startCall();
    request('offer:1', 'Tell the user: it is done.', true);
    const [first, second] = peer.told;
    expect(first).toMatchObject(['commentary', null, expect.stringContaining('it is done')]);
    expect(second).toMatchObject(['instructions', null, expect.not.stringContaining('it is done')]);
    peer.takesIn();
    peer.sounds(100);
    expect(news()).toEqual(['started offer:1']);
  });

  test('starts with a note if it is too long for one append', () => {
    const { peer, request, news } = startCall();
    const long = 'The train to Rome leaves at noon. '.repeat(80);
    request('offer:1', long);
    const channels = peer.told.map(([channel]) => channel);
    expect(channels.slice(0, -1)).toEqual(channels.slice(0, -1).map(() => 'thinking'));
    expect(channels.length).toBeGreaterThan(2);
    expect(peer.told.at(-1)).toMatchObject([
      'commentary',
      null,
      expect.stringMatching(/^\[note\] Do now/),
    ]);
    peer.takesIn();
    peer.sounds(100);
    expect(news()).toEqual(['started offer:1']);
  });

  test('APPENDS-2: matches confirmations in order if the server does not identify them', () => {
    const { peer, request, news } = startCall();
    request('offer:1', 'Tell the user: it is done.');
    peer.says({ type: 'session.commentary.appended', start_ms: 0, end_ms: 0 });
    peer.sounds(100);
    expect(news()).toEqual(['started offer:1']);
  });
});
