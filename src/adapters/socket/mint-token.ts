// Asks a provider for a short-lived token: a browser must not see a key.

import { ProviderError, messageOf } from '../../values/errors.ts';
import { redact } from './redact.ts';

export interface TokenRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** What must not be seen in an error. */
  readonly secret: string;
  readonly signal?: AbortSignal | undefined;
  /** @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** A refusal is told with the beginning of what the server says of it. */
const MAX_SHOWN = 500;

/**
 * The JSON that the server answers; null for an answer that is no JSON.
 * @throws {ProviderError} `TOKEN_REFUSED`: retryable when the server was too busy or could not be reached.
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

/** No token, and why. */
export function refused(
  { secret }: Pick<TokenRequest, 'secret'>,
  reason: string,
  retryable = false,
): ProviderError {
  return new ProviderError('TOKEN_REFUSED', redact(`No token: ${reason}`, secret), { retryable });
}
