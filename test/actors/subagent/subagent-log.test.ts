// The log of a subagent as JSON: a round trip leaves it unchanged, and it stores nothing twice.

import { expect, test } from 'vitest';
import type { ModelResponse } from '../../../src/actors/model/model-step.ts';
import { SubagentLog, type LogRecord } from '../../../src/actors/subagent/subagent-log.ts';

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
const input = { question: 'Shall it be first or second class?' };

/** A log whose model has made this call; `written` is the input in its message. */
function asked(written: unknown, call: Partial<ModelResponse['calls'][number]> = {}): SubagentLog {
  const log = new SubagentLog();
  log.begin([{ role: 'user', content: 'Book a train.' }]);
  const made = {
    type: 'tool-call',
    toolCallId: 'c1',
    toolName: 'ask_user',
    input: written,
  } as const;
  const response: ModelResponse = {
    text: '',
    assistantMessages: [{ role: 'assistant', content: [{ type: 'text', text: 'Well.' }, made] }],
    calls: [{ callId: 'c1', toolName: 'ask_user', input, ...call }],
    finish: 'tool-calls',
    usage,
  };
  log.responded({ step: 1, response, completion: null });
  return log;
}

const written = (log: SubagentLog): string => JSON.stringify(log.record);
const read = (json: string): SubagentLog => new SubagentLog(JSON.parse(json) as LogRecord);

test('SUBAGENT-UNIT-1: restores a call with its input, which is stored only once', () => {
  const json = written(asked(input));
  expect(json.split(input.question)).toHaveLength(2);
  expect(read(json).call('c1')).toEqual(asked(input).call('c1'));
  expect(written(read(json))).toBe(json);
});

test("SUBAGENT-UNIT-1: restores a call's own input if the message contains a different one", () => {
  const invalid = { input: 'no JSON', invalid: { message: 'It is no JSON' } };
  const json = written(asked({}, invalid));
  expect(read(json).call('c1')).toMatchObject(invalid);
  expect(read(json).messages).toEqual(asked({}).messages);
});
