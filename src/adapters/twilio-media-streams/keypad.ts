// The keys that a caller presses. While a question with options is open, a number answers it. The options are numbered
// from 1, in their order. All other keys are handled like text that the user types.
//
// Owns:     the pressed keys that may be part of a longer number.
// Does not: decide whether an answer is accepted (the session does).
//
// Invariants
//   KEYPAD-1. Keys never approve anything, because approvals must be answered in words.
//   KEYPAD-2. Each key is used only once, either in an answer or in typed text.

import type { Scheduler } from '../../actors/ports/environment.ts';

/** The part of a question that keys can answer. */
export interface AskedQuestion {
  /** The id with which the call answers the question. */
  readonly requestId: string;
  /** `question` or `approval`. Keys answer only a `question`, because approvals need words. */
  readonly kind: string;
  /** The question's state. Keys answer it while it is `presenting` or `open`. */
  readonly state: string;
  /**
   * The options, which the caller chooses by their numbers, counted from 1. Keys cannot answer a question without any.
   */
  readonly options: readonly { readonly id: string }[];
}

export interface KeypadPorts {
  questions(): readonly AskedQuestion[];
  answer(requestId: string, optionId: string): void;
  typed(text: string): void;
}

/** The maximum number of options among which a single key can choose. */
const KEYS = 9;
const END_OF_NUMBER = '#';

export class Keypad {
  readonly #ports: KeypadPorts;
  readonly #scheduler: Scheduler;
  readonly #pauseMs: number;
  #pressed = '';
  #cancel: (() => void) | null = null;

  constructor(ports: KeypadPorts, scheduler: Scheduler, pauseMs: number) {
    this.#ports = ports;
    this.#scheduler = scheduler;
    this.#pauseMs = pauseMs;
  }

  press(key: string): void {
    this.#cancel?.();
    if (key !== END_OF_NUMBER) this.#pressed += key;
    const options = this.#asked?.options.length ?? 0;
    const isChoice = options > 0 && options <= KEYS;
    if (isChoice || key === END_OF_NUMBER) this.#finish();
    else this.#cancel = this.#scheduler.schedule(() => this.#finish(), this.#pauseMs);
  }

  /** Discards an unfinished number. */
  stop(): void {
    this.#cancel?.();
    this.#pressed = '';
  }

  #finish(): void {
    const pressed = this.#pressed;
    this.stop();
    if (pressed === '') return;
    const question = this.#asked;
    const option = /^\d+$/.test(pressed) ? question?.options[Number(pressed) - 1] : undefined;
    if (question && option) this.#ports.answer(question.requestId, option.id);
    else this.#ports.typed(pressed);
  }

  /** The open question if it can be answered with a number. */
  get #asked(): AskedQuestion | undefined {
    return this.#ports
      .questions()
      .findLast(
        ({ kind, state, options }) =>
          kind === 'question' && options.length > 0 && (state === 'presenting' || state === 'open'),
      );
  }
}
