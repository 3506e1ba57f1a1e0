import { filter, map, Observable, Subject, take, toArray } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { guarded } from '../../../src/actors/runtime/guarded-stream.ts';
import { createRuntime, TextSession } from '../../../src/index.ts';
import { createSubagentService } from '../../../src/entries/subagents.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import { scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import { FakeTransport } from '../../support/fake-transport.ts';

function setUp() {
  const source = new Subject<number>();
  const reports: string[] = [];
  const report = (error: unknown, where: string): void => {
    reports.push(`${where}: ${(error as Error).message}`);
  };
  return { source, reports, stream: guarded(source, { report }, 'numbers') };
}

describe('GUARDED-STREAM-1: a subscriber that throws', () => {
  test('causes an error report, stays subscribed, and does not affect other subscribers', async () => {
    const { source, reports, stream } = setUp();
    const first: number[] = [];
    const second: number[] = [];
    stream.subscribe((value) => {
      first.push(value);
      if (value === 1) throw new Error('one');
    });
    stream.subscribe({
      async next(value) {
        second.push(value);
        await Promise.resolve();
        if (value === 2) throw new Error('two');
      },
      complete() {
        throw new Error('over');
      },
    });
    for (const value of [1, 2, 3]) source.next(value);
    source.complete();
    await new Promise((resolve) => setImmediate(resolve));
    expect([first, second]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(reports).toEqual([
      'a subscriber of numbers: one',
      'a subscriber of numbers: over',
      'a subscriber of numbers: two',
    ]);
  });

  test('causes an error report even if it subscribed through operators', () => {
    const { source, reports, stream } = setUp();
    const seen: number[] = [];
    stream
      .pipe(filter((value) => value > 1))
      .pipe(map((value) => value * 10))
      .subscribe((value) => {
        seen.push(value);
        throw new Error(`saw ${value}`);
      });
    for (const value of [1, 2, 3]) source.next(value);
    expect(seen).toEqual([20, 30]);
    expect(reports).toEqual(['a subscriber of numbers: saw 20', 'a subscriber of numbers: saw 30']);
  });
});

test('GUARDED-STREAM-2: ends only the subscription of an operator that throws, and reports it once', () => {
  const { source, reports, stream } = setUp();
  const seen: unknown[] = [];
  const thrower = map<number, number>(() => {
    throw new Error('the operator');
  });
  stream.pipe(thrower).subscribe((value) => seen.push(value));
  stream.pipe(thrower).subscribe({ error: (error: Error) => seen.push(error.message) });
  stream.subscribe((value) => seen.push(value));
  source.next(1);
  source.next(2);
  expect(seen).toEqual(['the operator', 1, 2]);
  expect(reports).toEqual(['a subscriber of numbers: the operator']);
});

test('supports take, unsubscribe, other operators and empty subscriptions like any other stream', async () => {
  const { source, reports, stream } = setUp();
  const taken: number[][] = [];
  stream.pipe(take(2), toArray()).subscribe((values) => taken.push(values));
  const left = stream.subscribe((value) => {
    if (value === 1) left.unsubscribe();
    taken.push([value]);
  });
  stream.subscribe();
  new Observable<number>((subscriber) => stream.subscribe(subscriber)).subscribe((value) =>
    taken.push([value, value]),
  );
  stream.subscribe(undefined, undefined, () => taken.push([]));
  for (const value of [1, 2]) source.next(value);
  source.complete();
  expect(taken).toEqual([[1], [1, 1], [1, 2], [2, 2], []]);
  expect(source.observed).toBe(false);
  expect(reports).toEqual([]);
});

describe('a subscriber that throws does not end the process', () => {
  const fail = (): never => {
    throw new Error('the screen is broken');
  };

  test('a text session continues', async () => {
    const environment = simulatedEnvironment();
    const errors: string[] = [];
    const session = new TextSession({
      runtime: createRuntime({ environment }),
      model: scriptedModel({ otherwise: [{ text: 'Hello.' }] }),
      agents: [{ name: 'assistant', instructions: 'Help.' }],
      hooks: { onError: (_, where) => void errors.push(where) },
    });
    for (const stream of [session.events, session.transcript, session.parts])
      (stream as Observable<unknown>).subscribe(fail);
    await session.start();
    await session.sendText('Hi');
    await environment.settle();
    await session.close();
    expect(new Set(errors)).toEqual(new Set(['a subscriber of events', 'a subscriber of parts']));
  });

  test('a voice session continues', async () => {
    const environment = simulatedEnvironment();
    const errors: string[] = [];
    const transport = new FakeTransport();
    const session = new VoiceSession({
      runtime: createRuntime({ environment }),
      transport,
      model: scriptedModel({ otherwise: [{ text: 'Hello.' }] }),
      agents: [{ name: 'assistant', instructions: 'Help.' }],
      hooks: { onError: (_, where) => void errors.push(where) },
    });
    session.audioOut.subscribe(fail);
    await session.start();
    session.attach();
    transport.connections[0]?.beginByItself('Hello.', 100);
    await environment.advance(1_000);
    await session.close();
    expect(errors).toContain('a subscriber of audioOut');
  });

  test('a program continues', async () => {
    const environment = simulatedEnvironment();
    const errors: string[] = [];
    const service = createSubagentService({
      runtime: createRuntime({ environment }),
      model: scriptedModel({ otherwise: [{ text: 'Done.' }] }),
      onError: (_, where) => void errors.push(where),
    });
    service.events.subscribe(fail);
    service.spawn({
      config: { name: 'worker', instructions: 'Work.' },
      task: { toolName: 'work', description: 'Work', args: {} },
      caller: { subagentId: null },
    });
    await environment.settle();
    await service.close();
    expect(errors).toContain('a subscriber of events');
  });
});
