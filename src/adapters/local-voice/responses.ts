// The responses of one connection under way: at most one that writes to the conversation, and several out of
// band.

import { ResponseRun, type ResponseContext, type ResponseRequest } from './response-run.ts';
import { Refusal } from './wire-events.ts';

const MAX_OUT_OF_BAND = 8;

export class Responses {
  readonly #context: ResponseContext;
  readonly #outOfBand = new Map<string, ResponseRun>();
  #active: ResponseRun | null = null;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  /** @throws {Refusal} if there are too many */
  create(request: ResponseRequest): void {
    if (!request.outOfBand && this.#active !== null) {
      throw new Refusal(
        'conversation_already_has_active_response',
        `Conversation already has an active response in progress: ${this.#active.id}. ` +
          'Wait until the response is finished before creating a new one.',
      );
    }
    if (request.outOfBand && this.#outOfBand.size >= MAX_OUT_OF_BAND) {
      const message = `At most ${MAX_OUT_OF_BAND} responses may run out of band at once.`;
      throw new Refusal('too_many_responses', message, 'response.conversation');
    }
    const response: ResponseRun = new ResponseRun(this.#context, request, () => {
      if (this.#active === response) this.#active = null;
      this.#outOfBand.delete(response.id);
    });
    if (request.outOfBand) this.#outOfBand.set(response.id, response);
    else this.#active = response;
    response.begin();
  }

  /** Handles the start of the user's speech. */
  interrupt(): void {
    this.#active?.cancel('turn_detected');
  }

  /**
   * Cancels the response with this id, or otherwise the one that writes to the conversation.
   * @throws {Refusal} `response_cancel_not_active`
   */
  cancel(id: string | null): void {
    const named = this.#active?.id === id ? this.#active : this.#outOfBand.get(id ?? '');
    const response = id === null ? this.#active : named;
    if (!response) {
      const message = 'Cancellation failed: no active response found';
      throw new Refusal('response_cancel_not_active', message);
    }
    response.cancel('client_cancelled');
  }

  /** Stops all responses without an event. */
  abandon(): void {
    this.#active?.abandon();
    for (const response of this.#outOfBand.values()) response.abandon();
  }
}
