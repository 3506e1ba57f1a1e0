import type { LiveWS } from 'openai/resources/live/ws';
import type { ForksWS } from 'openai/resources/live/forks/ws';
import { describe, expect, expectTypeOf, test } from 'vitest';
import {
  audioAppendText,
  type append,
  type forkStart,
  type sessionClose,
  type sessionStart,
} from '../../../src/adapters/openai-live/wire.ts';
import { dial, startCall, userFrame } from './support/called.ts';

type LiveEvent = Parameters<LiveWS['send']>[0];
type ForkEvent = Parameters<ForksWS['send']>[0];

describe('the events of OpenAI’s own client', () => {
  test('include every event that the transport sends in a new session', () => {
    expectTypeOf<ReturnType<typeof sessionStart>>().toExtend<LiveEvent>();
    expectTypeOf<ReturnType<typeof append>>().toExtend<LiveEvent>();
    expectTypeOf<ReturnType<typeof sessionClose>>().toExtend<LiveEvent>();
  });

  test('include every event that the transport sends in a fork, except session.start', () => {
    expectTypeOf<ReturnType<typeof forkStart>>().toExtend<ForkEvent>();
    expectTypeOf<ReturnType<typeof append>>().toExtend<ForkEvent>();
    expectTypeOf<ReturnType<typeof sessionClose>>().toExtend<ForkEvent>();
    expectTypeOf<ReturnType<typeof sessionStart>>().not.toExtend<ForkEvent>();
  });

  test('include audio, which the transport serialises itself', () => {
    const event = JSON.parse(audioAppendText('AAA=')) as unknown;
    expect(event).toEqual({
      type: 'session.input_audio.append',
      audio: 'AAA=',
    } satisfies LiveEvent);
  });
});

test('covers every event that a connection builds', async () => {
  const types = new Set<string>();
  const call = startCall();
  call.send({ type: 'message.add', itemId: 'a', role: 'system', text: 'one' });
  call.request('offer:1', 'three', true);
  call.send({ type: 'delegation.answer', delegationId: 'd', text: 'two' });
  call.connection.sendAudio(userFrame());
  const closed = call.connection.close();
  await call.advance(2000);
  await closed;
  for (const { type } of call.peer.sent) types.add(type);
  expect([...types].toSorted()).toEqual([
    'session.close',
    'session.commentary.append',
    'session.input_audio.append',
    'session.instructions.append',
    'session.start',
    'session.thinking.append',
  ]);
  expect(dial().peer.sent).toEqual([]);
});
