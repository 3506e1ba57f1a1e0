// What is known about the responses of one connection: which were asked for,
// which are in the making, what each has made.
//
//   asked for ──response.created──▶ in the making ──response.done──▶ ended
//       └── refused (error)               │
//       └─────────────── cancelled ───────┘   (a mark: the end still comes)
//
// RESPONSE-LEDGER-1. A response carries the `responseKey` of the request that made it, or none.
// RESPONSE-LEDGER-2. After a cancel, sound of every response that was asked for before it is no longer
//     wanted, also of one that the server has not yet announced.
// RESPONSE-LEDGER-3. Sound of a response that has ended is not wanted.
// RESPONSE-LEDGER-5. What the server begins and never ends is bounded: of responses the oldest counts as ended,
//     of the calls of one response the oldest is forgotten.
// RESPONSE-LEDGER-4. A tool call counts once, and only when the model completed it: the wire reports the
//     arguments of a call that was cut off in the same way as those of a complete one.

import { BoundedMap } from '../socket/bounded-map.ts';

const REMEMBERED_RESPONSES = 128;
const MAX_ACTIVE = 64;
const MAX_CALLS = 256;

export interface ToolCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
}

/** A response in the making. */
export interface ResponseRecord {
  readonly responseId: string;
  readonly responseKey: string | null;
  isCancelled: boolean;
  /** Samples made of each item, in the order of their first sound. */
  readonly samplesByItem: Map<string, number>;
  /** Calls whose arguments are there, but not yet the word that they are complete. */
  readonly heldCalls: BoundedMap<string, ToolCall>;
  readonly completedCallIds: BoundedMap<string, true>;
}

interface Request {
  readonly responseKey: string;
  isCancelled: boolean;
}

export class ResponseLedger {
  /** By event id, until the server created or refused the response. */
  readonly #requests = new Map<string, Request>();
  readonly #active = new Map<string, ResponseRecord>();
  readonly #ended = new BoundedMap<string, true>(REMEMBERED_RESPONSES);

  request(eventId: string, responseKey: string): void {
    this.#requests.set(eventId, { responseKey, isCancelled: false });
    const [oldest] = this.#requests.keys();
    if (this.#requests.size > MAX_ACTIVE && oldest !== undefined) this.#requests.delete(oldest);
  }

  /** Marks all that is asked for or in the making. @returns whether that was anything new */
  cancelAll(): boolean {
    let found = false;
    for (const entry of [...this.#requests.values(), ...this.#active.values()]) {
      found ||= !entry.isCancelled;
      entry.isCancelled = true;
    }
    return found;
  }

  /** The server announced a response. @returns `undefined` when it had already done so */
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

  /**
   * The server refused the event `eventId`. @returns the key of the response that it asked for
   */
  refuse(eventId: string): string | null {
    const request = this.#requests.get(eventId);
    this.#requests.delete(eventId);
    return request?.responseKey ?? null;
  }

  /** The event id of the one request that is not yet answered, if it is one. */
  get soleRequest(): string | null {
    const [first, second] = this.#requests.keys();
    return first !== undefined && second === undefined ? first : null;
  }
}
