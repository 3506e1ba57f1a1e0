// The model's tool calls, and their answers in the form of the wire.
//
//   (called) ──▶ open ──answer──▶ answered
//                 └──cancelled by the model──▶ cancelled
//
// TOOL-CALLS-1. A call id is reported once, however often the wire repeats it.
// TOOL-CALLS-2. Each answer names its call and is an object. A statement of completion replaces an empty output, after
//     which the model would call again.
// TOOL-CALLS-3. A call that the model has cancelled is not answered.
// TOOL-CALLS-4. Answers that the wire does not accept are sent as text: answers to a call of another connection, whose
//     id is unknown here, or to a call that was already answered.
// TOOL-CALLS-5. Calls that are never answered are bounded: the oldest is forgotten, and the model does not count as
//     waiting for it.

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

  /** Whether the model waits for an answer. */
  get areOpen(): boolean {
    return this.#open.size > 0;
  }

  /** @returns whether it is a new one (TOOL-CALLS-1) */
  called(callId: string, name: string): boolean {
    if (this.#calls.has(callId)) return false;
    this.#calls.set(callId, { name, state: 'open' });
    this.#open.add(callId);
    // A forgotten call cannot be answered, so the model does not count as waiting for it.
    for (const open of this.#open) if (!this.#calls.has(open)) this.#open.delete(open);
    return true;
  }

  /** Records a call of another connection. */
  recalled(callId: string, name: string): void {
    this.#calls.set(callId, { name, state: 'recalled' });
  }

  /** @returns whether an answer was still wanted */
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

  /** Returns how to send an answer: as a function response, as text (TOOL-CALLS-4), or not at all (TOOL-CALLS-3). */
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
      // The server reads an answer without a name as a failure.
      name: call?.name ?? '',
      response: responseOf(output),
      ...(scheduling !== null && { scheduling }),
    };
  }
}

/** Returns the object for this output. */
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
