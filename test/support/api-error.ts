// An error of a provider, as a model of the AI SDK throws it.

import { APICallError } from 'ai';

/** Creates an error after which a call may be repeated. @param headers of the provider's answer */
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
