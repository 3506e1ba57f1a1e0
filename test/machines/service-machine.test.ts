import { describe, expect, test } from 'vitest';
import { eventSourceMachine, serviceMachine } from '../../src/machines/index.ts';
import { checkEventSource } from './support/event-source-check.ts';
import { checkService } from './support/service-check.ts';
import { serviceFaults, sourceFaults, sourcesLeftRunning } from './support/service-faults.ts';
import { checkServiceSystem } from './support/service-system.ts';
import { Stage } from './support/stage.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a service', { tags: ['BW32', 'B76'] }, () => {
  const report = checkService();
  announce(report);

  test('SERVICE-MACHINE-1: reports every event that it drops', () =>
    holds(report, 'SERVICE-MACHINE-1'));
  test('SERVICE-MACHINE-2: runs one invocation at a time', () =>
    holds(report, 'SERVICE-MACHINE-2'));
  test('SERVICE-MACHINE-3: handles urgent events first, and other events in order of arrival', () =>
    holds(report, 'SERVICE-MACHINE-3'));
  test('SERVICE-MACHINE-4: limits the number of waiting events, and reports why each one is dropped', () =>
    holds(report, 'SERVICE-MACHINE-4'));
  test('SERVICE-MACHINE-5: retries a refused invocation a limited number of times', () => {
    holds(report, 'SERVICE-MACHINE-5');
    holds(report, 'waiting ends by a deadline');
  });
  test('SERVICE-MACHINE-6: stops each source and each invocation once', () => {
    holds(report, 'SERVICE-MACHINE-6');
    holds(report, 'nothing leaves a final state');
    holds(report, 'whatever lives can be stopped');
  });
  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('every state of an event source', () => {
  const report = checkEventSource();
  announce(report);

  test('EVENT-SOURCE-1: releases each attempt exactly once', () => holds(report, 'EVENT-SOURCE-1'));
  test('EVENT-SOURCE-2: starts another attempt after a failure and a pause', () => {
    holds(report, 'EVENT-SOURCE-2');
    holds(report, 'backing off ends by another attempt');
  });
  test('EVENT-SOURCE-3: resets the failure count after a stable attempt', () =>
    holds(report, 'EVENT-SOURCE-3'));
  test('EVENT-SOURCE-4: ignores stale events', () => holds(report, 'EVENT-SOURCE-4'));
  test('EVENT-SOURCE-5: completes a stop, after which it starts nothing', () => {
    holds(report, 'EVENT-SOURCE-5');
    holds(report, 'a release ends by a deadline');
    holds(report, 'whatever lives can be stopped');
  });
  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('every state of a service with two sources', { tags: ['B76', 'BW20'] }, () => {
  const report = checkServiceSystem();
  announce(report);

  test('runs a source only while its service is running and stops the source once', () =>
    holdsThroughout(report));
});

describe('the checks of faults', () => {
  test.each(serviceFaults)('detect a planted fault in a service: $fault', ({ machine, property }) =>
    catches((onViolation) => checkService(machine, onViolation), property),
  );

  test.each(sourceFaults)('detect a planted fault in a source: $fault', ({ machine, property }) =>
    catches((onViolation) => checkEventSource(machine, onViolation), property),
  );

  test('detect sources that keep running', () =>
    catches(
      (onViolation) => checkServiceSystem({ service: sourcesLeftRunning }, onViolation),
      'a source runs only while its service does',
    ));
});

describe('an example of a service', () => {
  const service = (): Stage<typeof serviceMachine> => {
    const stage = new Stage(serviceMachine, {
      maxWaiting: 2,
      maxInvocations: 3,
      baseDelayMs: 1_000,
      maxDelayMs: 60_000,
    });
    stage.send({ type: 'service.start' });
    stage.told();
    return stage;
  };
  const arrive = (eventId: string, priority: 'normal' | 'urgent' = 'normal') =>
    ({ type: 'event.arrived', eventId, priority }) as const;

  test('handles an urgent event before earlier events, even after a refusal', async () => {
    const stage = service();
    stage.send(arrive('a')).send(arrive('b'));
    stage.send({ type: 'invocation.refused', eventId: 'a', retryable: true, jitter: 0 });
    stage.send(arrive('c', 'urgent'));
    stage.told();
    await stage.wait(1_000);
    expect(stage.told()).toEqual([['invocation', { eventId: 'c' }]]);
    stage.send({ type: 'invocation.ended', eventId: 'c' });
    expect(stage.told()).toEqual([
      ['settled', { eventId: 'c' }],
      ['invocation', { eventId: 'a' }],
    ]);
  });

  test('restarts a source after increasing pauses if it fails repeatedly', async () => {
    const stage = new Stage(eventSourceMachine, {
      baseDelayMs: 1_000,
      maxDelayMs: 3_000,
      stableMs: 60_000,
      stopTimeoutMs: 5_000,
    });
    stage.send({ type: 'source.start' });
    const begunAt: number[] = [];
    for (let attempt = 1; attempt <= 4; attempt++) {
      begunAt.push(stage.now);
      stage.send({ type: 'source.failed', attempt, jitter: 0 });
      stage.send({ type: 'source.released', attempt });
      while (!stage.actor.getSnapshot().matches('live')) await stage.wait(500);
    }
    expect(begunAt).toEqual([0, 1_000, 3_000, 6_000]);
  });
});
