// The responses of one connection: the requested ones, those under way, and the output of each.
//
//   asked for ──response.created──▶ in the making ──response.done──▶ ended
//       └── refused (error)               │
//       └─────────────── cancelled ───────┘   (a mark: the end still comes)
//
// RESPONSE-LEDGER-1. A response carries the `responseKey` of the request that made it, or none.
// RESPONSE-LEDGER-2. After a cancellation, sound of every response that was requested before it is unwanted,
//     even of one that the server has not announced yet.
// RESPONSE-LEDGER-3. Sound of a response that has ended is unwanted.
// RESPONSE-LEDGER-5. Responses that the server begins and never ends are bounded: the oldest response counts
//     as ended, and the oldest call of a response is forgotten.
// RESPONSE-LEDGER-4. A tool call counts once, and only if the model completed it: the wire reports the
//     arguments of a call that was cut off like those of a complete one.

import { BoundedMap } from '../socket/bounded-map.ts';

const REMEMBERED_RESPONSES = 128;
const MAX_ACTIVE = 64;
const MAX_CALLS = 256;

export interface ToolCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
}

/** A response under way. */
export interface ResponseRecord {
  readonly responseId: string;
  readonly responseKey: string | null;
  isCancelled: boolean;
  /** The samples generated for each item, in the order of their first sound. */
  readonly samplesByItem: Map<string, number>;
  /** Calls whose arguments have arrived, but not yet the confirmation that they are complete. */
  readonly heldCalls: BoundedMap<string, ToolCall>;
  readonly completedCallIds: BoundedMap<string, true>;
}

interface Request {
  readonly responseKey: string;
  isCancelled: boolean;
}

export class ResponseLedger {
  /** Requests by event id, until the server created or refused the response. */
  readonly #requests = new Map<string, Request>();
  readonly #active = new Map<string, ResponseRecord>();
  readonly #ended = new BoundedMap<string, true>(REMEMBERED_RESPONSES);

  request(eventId: string, responseKey: string): void {
    this.#requests.set(eventId, { responseKey, isCancelled: false });
    const [oldest] = this.#requests.keys();
    if (this.#requests.size > MAX_ACTIVE && oldest !== undefined) this.#requests.delete(oldest);
  }

  /** Cancels all requested and running responses. @returns whether there was a new one among them */
  cancelAll(): boolean {
    let found = false;
    for (const entry of [...this.#requests.values(), ...this.#active.values()]) {
      found ||= !entry.isCancelled;
      entry.isCancelled = true;
    }
    return found;
  }

  /** Records a response that the server announced. @returns `undefined` if it was already announced */
  begin(responseId: string, responseKey: string | null): ResponseRecord | undefined {
    if (this.#active.has(responseId) || this.#ended.has(responseId)) return undefined;
    let isCancelled = false;
    for (const [eventId, request] of this.#requests) {
      if (responseKey === null || request.responseKey !== responseKey) continue;
      isCancelled = request.isCancelled;
      this.#requests.delete(eventId);
      break;
    }
    const record: ResponseRecord = {
      responseId,
      responseKey,
      isCancelled,
      samplesByItem: new Map(),
      heldCalls: new BoundedMap(MAX_CALLS),
      completedCallIds: new BoundedMap(MAX_CALLS),
    };
    this.#active.set(responseId, record);
    const [oldest] = this.#active.keys();
    if (this.#active.size > MAX_ACTIVE && oldest !== undefined) this.end(oldest);
    return record;
  }

  active(responseId: string): ResponseRecord | undefined {
    return this.#active.get(responseId);
  }

  /** RESPONSE-LEDGER-2, RESPONSE-LEDGER-3 */
  wantsSoundOf(responseId: string): boolean {
    return !this.#ended.has(responseId) && this.#active.get(responseId)?.isCancelled !== true;
  }

  /** @returns whether it ended now, not before */
  end(responseId: string): boolean {
    if (this.#ended.has(responseId)) return false;
    this.#active.delete(responseId);
    this.#ended.set(responseId, true);
    return true;
  }

  /** Records that the server refused the event `eventId`. @returns the key of its request */
  refuse(eventId: string): string | null {
    const request = this.#requests.get(eventId);
    this.#requests.delete(eventId);
    return request?.responseKey ?? null;
  }

  /** The event id of the only unanswered request, if there is exactly one. */
  get soleRequest(): string | null {
    const [first, second] = this.#requests.keys();
    return first !== undefined && second === undefined ? first : null;
  }
}
