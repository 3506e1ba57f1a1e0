// The model's tool calls, and their responses in the protocol's form.
//
//   (called) ──▶ open ──answer──▶ answered
//                 └──cancelled by the model──▶ cancelled
//
// TOOL-CALLS-1. A call id is reported once, even if the server repeats the call.
// TOOL-CALLS-2. Each response names its call, and its payload is an object. An empty output is replaced by a statement
//     of completion, because the model would otherwise repeat the call.
// TOOL-CALLS-3. If the model has cancelled a call, no response is sent.
// TOOL-CALLS-4. Responses that the server does not accept are sent as text. This applies to a call from an earlier
//     connection, whose id is unknown here, and to a call that already has a response.
// TOOL-CALLS-5. The number of open calls is limited. If the limit is exceeded, the oldest call is dropped, and the
//     model no longer counts as waiting for it.

import { isRecord } from '../../values/json.ts';
import { BoundedMap } from '../socket/bounded-map.ts';
import type { FunctionResponse } from './wire.ts';

const REMEMBERED_CALLS = 512;

type State = 'open' | 'answered' | 'cancelled' | 'recalled';

interface Call {
  readonly name: string;
  state: State;
}

export interface Answer {
  readonly callId: string;
  readonly output: string;
}

export class ToolCalls {
  readonly #calls = new BoundedMap<string, Call>(REMEMBERED_CALLS);
  readonly #open = new Set<string>();

  /** Whether the model is waiting for a response. */
  get areOpen(): boolean {
    return this.#open.size > 0;
  }

  /** @returns whether the call is new (TOOL-CALLS-1) */
  called(callId: string, name: string): boolean {
    if (this.#calls.has(callId)) return false;
    this.#calls.set(callId, { name, state: 'open' });
    this.#open.add(callId);
    // A dropped call cannot get a response, so the model does not count as waiting for it.
    for (const open of this.#open) if (!this.#calls.has(open)) this.#open.delete(open);
    return true;
  }

  /** Records a call from an earlier connection. */
  recalled(callId: string, name: string): void {
    this.#calls.set(callId, { name, state: 'recalled' });
  }

  /** @returns whether the call was still waiting for a response */
  cancelled(callId: string): boolean {
    const call = this.#calls.get(callId);
    if (call?.state !== 'open') return false;
    call.state = 'cancelled';
    this.#open.delete(callId);
    return true;
  }

  nameOf(callId: string): string | undefined {
    return this.#calls.get(callId)?.name;
  }

  /**
   * Returns how a call's output is sent: as a function response, as text (TOOL-CALLS-4), or not at all (TOOL-CALLS-3).
   */
  wayOf(callId: string): 'response' | 'text' | 'none' {
    const state = this.#calls.get(callId)?.state;
    if (state === 'open') return 'response';
    return state === 'cancelled' ? 'none' : 'text';
  }

  /** TOOL-CALLS-2 */
  answer(
    { callId, output }: Answer,
    scheduling: FunctionResponse['scheduling'] | null,
  ): FunctionResponse {
    const call = this.#calls.get(callId);
    if (call) call.state = 'answered';
    this.#open.delete(callId);
    return {
      id: callId,
      // The server treats a response without a name as a failure.
      name: call?.name ?? '',
      response: responseOf(output),
      ...(scheduling !== null && { scheduling }),
    };
  }
}

/** Wraps an output in an object. */
function responseOf(output: string): Readonly<Record<string, unknown>> {
  const value = parsed(output);
  if (isEmpty(value)) {
    return {
      output: value ?? null,
      status: 'complete',
      retryable: false,
      message: 'This is the whole result. Calling again gives the same.',
    };
  }
  return isRecord(value) ? value : { output: value };
}

function parsed(output: string): unknown {
  try {
    return JSON.parse(output) as unknown;
  } catch {
    return output;
  }
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() === '';
  if (typeof value !== 'object' || value === null) return value === null;
  return Object.keys(value).length === 0;
}
