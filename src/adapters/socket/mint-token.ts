// Requests a short-lived token from a provider for browsers, which must not see the API key.

import { ProviderError, messageOf } from '../../values/errors.ts';
import { redact } from './redact.ts';

export interface TokenRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** The secret that is removed from error messages. */
  readonly secret: string;
  readonly signal?: AbortSignal | undefined;
  /** @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** The maximum length of the server's response that an error quotes. */
const MAX_SHOWN = 500;

/**
 * Returns the server's JSON response; null if the response is not JSON.
 * @throws {ProviderError} `TOKEN_REFUSED`, which is retryable if the server was busy or unreachable
 */
export async function requestToken(request: TokenRequest): Promise<unknown> {
  const { url, headers, body, signal, fetch = globalThis.fetch } = request;
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw refused(request, messageOf(error), true);
  }
  if (!response.ok) {
    const isBusy = response.status === 429 || response.status >= 500;
    throw refused(request, `HTTP ${response.status}: ${text.slice(0, MAX_SHOWN)}`, isBusy);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** Returns the error to throw if the provider issued no token, including the reason. */
export function refused(
  { secret }: Pick<TokenRequest, 'secret'>,
  reason: string,
  retryable = false,
): ProviderError {
  return new ProviderError('TOKEN_REFUSED', redact(`No token: ${reason}`, secret), { retryable });
}
