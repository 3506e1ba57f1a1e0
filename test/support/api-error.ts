// A provider error as a model of the AI SDK throws it.

import { APICallError } from 'ai';

/** Creates an error after which the call may be retried. @param headers The headers of the provider's response. */
export function apiError(
  statusCode: number,
  message: string,
  headers?: Record<string, string>,
): APICallError {
  return new APICallError({
    message,
    url: 'http://127.0.0.1',
    requestBodyValues: {},
    statusCode,
    isRetryable: true,
    ...(headers && { responseHeaders: headers }),
  });
}
