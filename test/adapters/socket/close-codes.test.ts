import { describe, expect, test } from 'vitest';
import {
  classifyClose,
  classifyError,
  classifyHttp,
} from '../../../src/adapters/socket/close-codes.ts';
import { redact } from '../../../src/adapters/socket/redact.ts';

describe('close frames', () => {
  test.each([
    [1000, '', false],
    [1001, 'Your session hit the maximum duration of 60 minutes.', true],
    [1002, '', false],
    [1003, '', false],
    [1005, '', true],
    [1006, '', true],
    [1007, '', false],
    [1008, '', false],
    [1009, '', false],
    [1011, 'internal error', true],
    [1012, '', true],
    [1013, '', true],
    [3000, 'invalid_request_error.invalid_api_key', false],
    [4000, 'invalid_request_error.beta_api_shape_disabled', false],
    [4000, 'server_error', true],
    [4008, 'rate_limit_exceeded', true],
    [4999, '', false],
  ])('determine whether to retry: %i %s', (code, reason, retryable) => {
    const ending = classifyClose(code, reason);
    expect(ending).toMatchObject({ code, retryable });
    expect(ending.reason).toContain(`(${code})`);
    expect(ending.reason).toContain(reason);
  });
});

describe('refused upgrades', () => {
  const body = (code: string, message: string) => JSON.stringify({ error: { code, message } });

  test.each([
    [400, body('invalid_model', 'No such model'), false],
    [401, body('invalid_api_key', 'Incorrect API key'), false],
    [403, '', false],
    [404, 'Not here', false],
    [408, '', true],
    [429, body('rate_limit_exceeded', 'Slow down'), true],
    [429, body('insufficient_quota', 'Check your plan'), false],
    [500, '<html>', true],
    [503, '', true],
  ])('determine whether to retry: HTTP %i %s', (status, text, retryable) => {
    expect(classifyHttp(status, text)).toMatchObject({ code: status, retryable });
  });

  test('give their reason in the body', () => {
    expect(classifyHttp(429, body('rate_limit_exceeded', 'Slow down')).reason).toBe(
      'The server refused the connection (HTTP 429): rate_limit_exceeded: Slow down',
    );
    expect(classifyHttp(502, ' Bad\n').reason).toContain('(HTTP 502): Bad');
    expect(classifyHttp(500, '').reason).toBe('The server refused the connection (HTTP 500)');
    expect(classifyHttp(500, 'x'.repeat(10_000)).reason.length).toBeLessThan(400);
    expect(classifyHttp(500, '{"error":"plain"}').reason).toContain('(HTTP 500)');
  });
});

describe('errors before the socket was open', () => {
  test.each([
    ['ECONNREFUSED', true],
    ['ENOTFOUND', true],
    ['ETIMEDOUT', true],
    ['CERT_HAS_EXPIRED', false],
    ['ERR_INVALID_CHAR', false],
  ])('determine whether to retry: %s', (code, retryable) => {
    const error = Object.assign(new Error(`it failed: ${code}`), { code });
    expect(classifyError(error)).toEqual({
      code: null,
      reason: `Could not connect: it failed: ${code}`,
      retryable,
    });
  });

  test("use the error's code as the reason if the message is missing", () => {
    const error = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' });
    expect(classifyError(error).reason).toBe('Could not connect: ECONNREFUSED');
  });
});

describe('redact', () => {
  test.each([
    ['Incorrect API key provided: sk-proj-****wxyz. Get one', 'sk-'],
    ['header Bearer abc.d3f-gh1', 'abc.d3f-gh1'],
    ['you sent my-very-own-key-42!', 'my-very-own-key-42'],
  ])('hides the secret in: %s', (text, secret) => {
    const redacted = redact(text, 'my-very-own-key-42');
    expect(redacted).not.toContain(secret);
    expect(redacted).toContain('[redacted]');
  });

  test('leaves ordinary text unchanged', () => {
    const text = 'ask-me about risk-free tasks on localhost';
    expect(redact(text, 'local')).toBe(text);
  });
});
