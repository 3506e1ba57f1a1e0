import { describe, expect, test } from 'vitest';
import { toolCallMachine } from '../../src/machines/index.ts';
import { Stage } from './support/stage.ts';
import { checkToolCall } from './support/tool-call-check.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a tool call', () => {
  const report = checkToolCall();
  announce(report);

  test('TOOL-CALL-1: gives the model exactly one answer', () => holds(report, 'TOOL-CALL-1'));

  test('TOOL-CALL-2: delegates once and settles once', () => holds(report, 'TOOL-CALL-2'));

  test('TOOL-CALL-3: keeps a settled result until it is delivered', () =>
    holds(report, 'TOOL-CALL-3'));

  test('TOOL-CALL-4: never leaves `answered`, `delivered` or `cancelled`', () => {
    holds(report, 'TOOL-CALL-4');
    holds(report, 'nothing leaves a final state');
  });

  test('TOOL-CALL-5: does not send a result to the outbox if the lead agent has already announced it', () =>
    holds(report, 'TOOL-CALL-5'));

  test('TOOL-CALL-6: moves a slow tool to the background if the outbox has room', () =>
    holds(report, 'TOOL-CALL-6'));

  test('never gets stuck and always ends', () => {
    holds(report, 'executing ends by a deadline');
    holds(report, 'whatever has no result can be cancelled');
    holds(report, 'no deadlock');
    holds(report, 'an end can always be reached');
  });

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('an example of a tool call', () => {
  const call = (): Stage<typeof toolCallMachine> =>
    new Stage(toolCallMachine, { callId: 'call_1', timeoutMs: 30_000 });

  test('inline: runs the tool and returns its result to the model', { tags: ['B3'] }, () => {
    const stage = call();
    stage.send({ type: 'call.validated', execution: 'inline', acknowledge: false });
    stage.send({ type: 'call.executed' });
    expect(stage.told()).toEqual([
      ['validate', { callId: 'call_1' }],
      ['execute', { callId: 'call_1' }],
      ['answer', { callId: 'call_1', answer: 'result' }],
    ]);
  });

  test('inline: abandons a tool that exceeds its timeout', async () => {
    const stage = call();
    stage.send({ type: 'call.validated', execution: 'inline', acknowledge: false });
    await stage.wait(30_000);
    expect(stage.told().at(-1)).toEqual(['answer', { callId: 'call_1', answer: 'timed_out' }]);
    expect(stage.actor.getSnapshot().value).toBe('answered');
  });

  test('detached: runs the tool in the background and holds its result for delivery', async () => {
    const stage = call();
    const detach = { afterMs: 2000, wordsMs: null };
    stage.send({ type: 'call.validated', execution: 'inline', acknowledge: false, detach });
    await stage.wait(2000);
    stage.send({ type: 'call.placed', granted: true });
    stage.send({ type: 'call.executed' });
    expect(stage.told().slice(2)).toEqual([
      ['reserve', { callId: 'call_1' }],
      ['answer', { callId: 'call_1', answer: 'pending' }],
      ['deliver', { callId: 'call_1', acknowledged: true, delivery: 'when_idle' }],
    ]);
  });

  test(
    'acknowledges a background call to the model and holds its result for delivery',
    { tags: ['B3', 'B11'] },
    () => {
      const stage = call();
      stage.send({ type: 'call.validated', execution: 'background', acknowledge: true });
      stage.send({ type: 'subagent.accepted' });
      stage.send({ type: 'subagent.ended' });
      stage.send({ type: 'call.cancel' });
      expect(stage.told()).toEqual([
        ['validate', { callId: 'call_1' }],
        ['delegate', { callId: 'call_1' }],
        ['answer', { callId: 'call_1', answer: 'pending' }],
        ['deliver', { callId: 'call_1', acknowledged: true, delivery: 'when_idle' }],
      ]);
      expect(stage.actor.getSnapshot().value).toBe('settled');
      stage.send({ type: 'delivery.settled' });
      expect(stage.actor.getSnapshot().value).toBe('delivered');
    },
  );
});
