// The steps of the model's next turn: a script that the test prepared, or the result of `respond`; none while the model
// is silent.

import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { asJson } from '../../../values/json.ts';
import type { FakeVoiceModel, VoiceResponder, VoiceCause, VoiceStep } from './control.ts';

export class TurnSource {
  readonly #respond: VoiceResponder;
  readonly #model: FakeVoiceModel;
  readonly #ready: (readonly VoiceStep[])[] = [];
  isSilent = false;

  constructor(respond: VoiceResponder, model: FakeVoiceModel) {
    this.#respond = respond;
    this.#model = model;
  }

  /** Adds a script: first in, first out. */
  add(steps: readonly VoiceStep[]): void {
    this.#ready.push(steps);
  }

  /** @returns null if the turn never responds and never ends */
  next(cause: VoiceCause, instructions: string | null): readonly VoiceStep[] | null {
    if (this.isSilent) return null;
    return this.#ready.shift() ?? this.#respond({ cause, instructions, model: this.#model });
  }
}

const turnSchema = z.looseObject({
  cause: z.discriminatedUnion('type', [
    z.looseObject({ type: z.enum(['utterance', 'message']), text: z.string() }),
    z.looseObject({ type: z.literal('result'), output: z.unknown() }),
    z.looseObject({ type: z.literal('nothing') }),
  ]),
});

/**
 * A server's default responder: repeats the user's words, reads results and messages aloud, and never calls a tool.
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
