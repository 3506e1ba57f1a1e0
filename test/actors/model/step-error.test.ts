import {
  APICallError,
  InvalidPromptError,
  LoadAPIKeyError,
  MissingToolResultsError,
  NoSuchModelError,
  RetryError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from 'ai';
import { describe, expect, test } from 'vitest';
import { runModelStep, toStepError } from '../../../src/actors/model/model-step.ts';
import { prepareTools } from '../../../src/actors/model/tools.ts';
import { CancelledError, ConfigurationError, ProviderError } from '../../../src/values/errors.ts';
import { countingIds, model } from './fakes.ts';

const callError = (statusCode: number | undefined, more: object = {}): APICallError =>
  new APICallError({
    message: 'The provider said no',
    url: 'http://127.0.0.1/v1',
    requestBodyValues: { secret: 'prompt' },
    ...(statusCode === undefined ? {} : { statusCode }),
    ...more,
  });

describe('answers of a provider', () => {
  test.each([
    [429, 'RATE_LIMITED', true],
    [500, 'PROVIDER_UNAVAILABLE', true],
    [529, 'PROVIDER_UNAVAILABLE', true],
    [408, 'PROVIDER_TIMEOUT', true],
    [401, 'PROVIDER_UNAUTHORIZED', false],
    [403, 'PROVIDER_UNAUTHORIZED', false],
    [400, 'PROVIDER_REFUSED', false],
    [404, 'PROVIDER_REFUSED', false],
    [200, 'MALFORMED_RESPONSE', false],
  ])('map %i to %s', (status, code, retryable) => {
    expect(toStepError(callError(status))).toEqual({
      code,
      retryable,
      message: 'The provider said no',
    });
  });

  test('report a missing answer', () => {
    expect(toStepError(callError(undefined, { isRetryable: true }))).toMatchObject({
      code: 'CONNECTION_LOST',
      retryable: true,
    });
  });

  test('report a connection that was lost during the answer', () => {
    const closed = Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
    const cause = new TypeError('terminated', { cause: closed });
    expect(toStepError(callError(200, { isRetryable: true, cause }))).toEqual({
      code: 'CONNECTION_LOST',
      message: 'The connection broke off in mid-answer: other side closed',
      retryable: true,
    });
  });

  test.each([
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1500],
    [{ 'retry-after': '20' }, 20_000],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': 'Wed, 21 Oct 2030 07:28:00 GMT' }, undefined],
    [{ 'retry-after-ms': '-5' }, undefined],
  ])('%j: set the retry delay', (responseHeaders, retryAfterMs) => {
    expect(toStepError(callError(429, { responseHeaders })).retryAfterMs).toBe(retryAfterMs);
  });

  test('read the headers from the cause of a gateway error', () => {
    const error = Object.assign(
      new Error('Slow down', {
        cause: callError(429, { responseHeaders: { 'retry-after': '3' } }),
      }),
      { isRetryable: true, statusCode: 429 },
    );
    expect(toStepError(error)).toEqual({
      code: 'RATE_LIMITED',
      message: 'Slow down',
      retryable: true,
      retryAfterMs: 3000,
    });
  });

  test('unwrap a RetryError to its last error', () => {
    const error = new RetryError({
      message: 'Failed after 3 attempts',
      reason: 'maxRetriesExceeded',
      errors: [callError(500), callError(429)],
    });
    expect(toStepError(error).code).toBe('RATE_LIMITED');
  });
});

test.each<[string, unknown, string, boolean]>([
  [
    'unknown model',
    new NoSuchModelError({ modelId: 'x', modelType: 'languageModel' }),
    'NO_SUCH_MODEL',
    false,
  ],
  ['no key', new LoadAPIKeyError({ message: 'OPENAI_API_KEY' }), 'PROVIDER_UNAUTHORIZED', false],
  ['prompt', new InvalidPromptError({ prompt: '', message: 'empty' }), 'INVALID_PROMPT', false],
  [
    'calls without results',
    new MissingToolResultsError({ toolCallIds: ['c1'] }),
    'INVALID_PROMPT',
    false,
  ],
  ['answer', new TypeValidationError({ value: 1, cause: 'x' }), 'MALFORMED_RESPONSE', true],
  [
    'not supported',
    new UnsupportedFunctionalityError({ functionality: 'tools' }),
    'UNSUPPORTED',
    false,
  ],
  ['timeout', new DOMException('late', 'TimeoutError'), 'PROVIDER_TIMEOUT', true],
  ['abort of the provider', new DOMException('gone', 'AbortError'), 'ABORTED', true],
  ['our own', new ConfigurationError('INVALID_MODEL', 'x'), 'INVALID_MODEL', false],
  ['our own, retryable', new ProviderError('BUSY', 'x', { retryable: true }), 'BUSY', true],
  ['cancelled', new CancelledError('USER'), 'CANCELLED', false],
  [
    'socket',
    new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }),
    'CONNECTION_LOST',
    true,
  ],
  ['any error', new Error('boom'), 'MODEL_ERROR', false],
  ['a string', 'boom', 'MODEL_ERROR', false],
  ['nothing', undefined, 'MODEL_ERROR', false],
])('%s', (_, thrown, code, retryable) => {
  const error = toStepError(thrown);
  expect(error).toMatchObject({ code, retryable });
  expect(error.message).not.toBe('');
  expect(JSON.parse(JSON.stringify(error))).toStrictEqual(error);
});

test('cut an HTML page in the message', () => {
  expect(toStepError(new Error('<p>'.repeat(10_000))).message.length).toBeLessThan(1100);
});

test('reject an unanswered tool call in the messages without calling the model', async () => {
  const failing = runModelStep({
    caller: { name: 'tester' },
    model: model(),
    instructions: '',
    messages: [
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'ping', input: {} }],
      },
      { role: 'user', content: 'And?' },
    ],
    tools: prepareTools({}, 'tools'),
    signal: new AbortController().signal,
    ids: countingIds(),
  });
  const error: unknown = await failing.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(toStepError(error)).toMatchObject({ code: 'INVALID_PROMPT', retryable: false });
});

describe('report errors that occur in the middle of an answer', () => {
  test.each([
    [{ message: 'Overloaded', statusCode: 529, isRetryable: true }, 'PROVIDER_UNAVAILABLE', true],
    [{ message: 'Too fast', statusCode: 429 }, 'RATE_LIMITED', true],
    [
      { message: 'Engine died', type: 'InternalServerError', code: 500 },
      'PROVIDER_UNAVAILABLE',
      true,
    ],
    [{ message: 'Bad input', statusCode: 400, isRetryable: false }, 'PROVIDER_REFUSED', false],
    [{ message: 'Hm', code: 'strange' }, 'MODEL_ERROR', false],
  ])('%j', (said, code, retryable) => {
    expect(toStepError(said)).toEqual({ code, message: said.message, retryable });
  });
});
