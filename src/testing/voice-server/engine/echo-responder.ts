// The responder that the fake voice server uses by default.

import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { asJson } from '../../../values/json.ts';
import type { VoiceResponder } from './control.ts';

const turnSchema = z.looseObject({
  cause: z.discriminatedUnion('type', [
    z.looseObject({ type: z.enum(['utterance', 'message']), text: z.string() }),
    z.looseObject({ type: z.literal('result'), output: z.unknown() }),
    z.looseObject({ type: z.literal('nothing') }),
  ]),
});

/**
 * The responder that a server uses by default. It repeats what the user said, reads results and messages aloud, and
 * never calls a tool.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the value is not a turn
 */
export const echoResponder: VoiceResponder = (turn) => {
  const { cause } = check('echoResponder(turn)', turnSchema, turn, 'INVALID_ARGUMENT');
  switch (cause.type) {
    case 'utterance':
      return [{ say: cause.text === '' ? 'Pardon?' : `You said: ${cause.text}` }];
    case 'result':
      return [{ say: `The result is: ${textOf(cause.output)}` }];
    case 'message':
      return [{ say: cause.text }];
    case 'nothing':
      return [{ say: 'Hello.' }];
  }
};

function textOf(output: unknown): string {
  if (typeof output === 'string') return output;
  const json = asJson(output);
  return json.ok ? json.text : json.message;
}
