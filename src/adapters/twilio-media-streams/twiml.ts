// The answer of a webhook that makes Twilio open a stream for the call. Source:
// twilio.com/docs/voice/twiml/stream (November 2026): only `wss:`, and no query.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { shown } from '../../values/plain-checks.ts';
import { ConfigurationError } from '../../values/errors.ts';

const argumentsSchema = z.object({ url: z.string(), parameters: z.record(z.string(), z.string()) });

/**
 * Returns TwiML that connects the call to the WebSocket at `url`. `parameters` come back as
 * `TwilioCall.customParameters`.
 * @throws {ConfigurationError} `INVALID_URL` for another address than `wss:` without a query;
 *   `INVALID_OPTION` for anything but text.
 */
export function streamTwiml(
  url: string,
  parameters: Readonly<Record<string, string>> = {},
): string {
  check('streamTwiml(url, parameters)', argumentsSchema, { url, parameters });
  const address = URL.parse(url);
  if (address?.protocol !== 'wss:' || address.search !== '')
    throw new ConfigurationError(
      'INVALID_URL',
      `Expected a wss: address without a query (use \`parameters\`), got ${shown(url)}`,
    );
  const children = Object.entries(parameters).map(
    ([name, value]) => `<Parameter name="${escaped(name)}" value="${escaped(value)}"/>`,
  );
  return (
    '<?xml version="1.0" encoding="UTF-8"?>' +
    `<Response><Connect><Stream url="${escaped(url)}">${children.join('')}</Stream></Connect></Response>`
  );
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
