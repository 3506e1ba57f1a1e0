// A run that an engine stores, from the perspective of the program that requested it: the program starts the run,
// passes its questions to handlers, and obtains the outcome. If the program dies, the next program with the same id
// receives the same questions.
//
// Owns:     the requests that this process's handlers are answering, including those of child runs, and the repetition
//           of calls while the engine is unreachable.
// Does not: run a turn (run-worker.ts), or store anything.
//
// Invariants
//   ENGINE-RUN-1. `result` resolves once, and never rejects.
//   ENGINE-RUN-2. A request is passed to its handler once in each process. The signal that the handler receives aborts
//       when the request is over.
//   ENGINE-RUN-3. A call to an unreachable engine is repeated until the run ends.
//   ENGINE-RUN-4. The engine's answers are validated like any external data. If an outcome or a question has an
//       unexpected shape, for example because it is packed, the run ends as lost (`JOB_UNREADABLE`).
//   ENGINE-RUN-5. Messages are sent in order once the run has started, and each is repeated until the engine has stored
//       it. A message's receipt settles once: when a view shows that the message was read, or when the run ends.

import { z } from 'zod';
import { CancelledError, messageOf } from '../../values/errors.ts';
import { reporter } from '../../values/reporter.ts';
import { readOutcome, type Outcome, type StoredOutcome } from '../contracts/outcome.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import type { Environment } from '../ports/environment.ts';
import { readFrom } from '../ports/jobs.ts';
import {
  MAX_UNREAD_MESSAGES,
  type MessageTaken,
  type RunAnswer,
  type RunEngine,
  type RunMessage,
  type RunOrder,
  type RunView,
  type RunWait,
} from '../ports/run-engine.ts';
import { pause, untilReached } from '../runtime/pause.ts';
import { idReused, isOther, lostBy } from './refusal.ts';
import { answerOf, contentOf, type ProgramHandlers, type ProgramRequest } from './program-ports.ts';

export interface EngineRunOptions extends Pick<ProgramHandlers, 'onQuestion' | 'onInput'> {
  readonly engine: RunEngine;
  readonly environment: Environment;
  readonly onError?: ((error: unknown, where: string) => void) | undefined;
}

const outcomeSchema = z.custom<StoredOutcome>(
  (outcome) => outcomeShape.safeParse(outcome).success,
  'expected an outcome: both ends need the same packing',
);
const outcomeShape = z.looseObject({
  status: z.enum(['completed', 'failed', 'cancelled', 'timed_out', 'lost']),
  text: z.string(),
  steps: z.number(),
  usage: z.looseObject({}),
  toolLedger: z.array(z.looseObject({ toolName: z.string(), status: z.string() })),
});
/** The shape of a question or a request. */
const askedSchema = z.looseObject(
  { requestId: z.string(), subagentId: z.string() },
  { error: 'expected a question: both ends need the same packing' },
);

const AGAIN = { baseMs: 100, maxMs: 10_000 };
const LOOK_MS = 1_000;
const FIRST_LOOK_MS = 10;

/** Starts the run, or attaches to it if it was already started. */
export function engineRun(order: RunOrder, options: EngineRunOptions) {
  const asking = new Asking(order, options);
  return {
    id: order.id,
    result: asking.result().catch(lostBy),
    send: (message: RunMessage) => asking.send(message),
    cancel(reason = 'cancelled'): void {
      asking.cancel(reason);
    },
  };
}

/** Whether the run has read a message. */
export type RunMessageReceipt =
  | { readonly applied: true }
  | { readonly applied: false; readonly reason: string };

const OVER: RunMessageReceipt = { applied: false, reason: 'The run ended before it read it' };
const FULL: RunMessageReceipt = {
  applied: false,
  reason: `${MAX_UNREAD_MESSAGES} messages are unread already`,
};

interface Sent {
  readonly id: string;
  /**
   * The message's number. `Infinity`: sending was interrupted or happened after the run had ended. In that case, the
   * ids in the view show whether the message was read.
   */
  readonly nth: number;
  settle(receipt: RunMessageReceipt): void;
}

class Asking {
  readonly #order: RunOrder;
  readonly #options: EngineRunOptions;
  readonly #report: (error: unknown, where: string) => void;
  /** Aborts when the run has ended. */
  readonly #over = new AbortController();
  readonly #started: Promise<void>;
  /** ENGINE-RUN-5 */
  #posting: Promise<unknown>;
  readonly #sent = new Set<Sent>();
  /** The newest view of the run, or null if there is none yet. */
  #view: RunView | null = null;

  constructor(order: RunOrder, options: EngineRunOptions) {
    this.#order = order;
    this.#options = options;
    this.#report = reporter(options.onError);
    this.#started = this.#again(() => options.engine.start(order), this.#over.signal);
    // The program handles the rejection through `result`.
    this.#started.catch(() => {});
    this.#posting = this.#started;
  }

  async result(): Promise<Outcome> {
    try {
      await this.#started;
      return await this.#follow(this.#order.id, this.#over.signal);
    } finally {
      this.#over.abort(new CancelledError('the run is over'));
      this.#tell();
    }
  }

  /** Sends a message, and never rejects. */
  async send(message: RunMessage): Promise<RunMessageReceipt> {
    const { engine } = this.#options;
    const { signal } = this.#over;
    const posted = this.#posting.then(() =>
      this.#again(async () => engine.message?.(this.#order.id, message) ?? null, signal),
    );
    this.#posting = posted.catch(() => {});
    let taken: MessageTaken | null;
    try {
      taken = await posted;
    } catch (error) {
      if (!signal.aborted) return { applied: false, reason: messageOf(error) };
      taken = { refused: 'over' };
    }
    if (taken === null)
      return { applied: false, reason: `The engine "${engine.name}" takes no messages for runs` };
    if ('refused' in taken && taken.refused === 'full') return FULL;
    const nth = 'nth' in taken ? taken.nth : Infinity;
    return new Promise((settle) => {
      this.#sent.add({ id: message.id, nth, settle });
      this.#tell();
    });
  }

  /** Settles the receipts of all messages that the latest view covers. */
  #tell(): void {
    const { last = 0, unread = [], read = [] } = this.#view?.messages ?? {};
    const isOver = this.#over.signal.aborted;
    for (const sent of this.#sent) {
      const isRead = read.includes(sent.id) || (sent.nth <= last && !unread.includes(sent.nth));
      if (!isRead && !isOver) continue;
      this.#sent.delete(sent);
      sent.settle(isRead ? { applied: true } : OVER);
    }
  }

  /** Passes the requests of a run and its children to the handlers until the run has ended. */
  async #follow(id: string, signal: AbortSignal): Promise<Outcome> {
    const { engine } = this.#options;
    const asked = new Map<string, AbortController>();
    const followed = new Map<string, AbortController>();
    const over = (): void => {
      this.#show(id, [], asked);
      this.#followAll([], followed);
    };
    signal.addEventListener('abort', over, { once: true });
    let after = 0;
    let looks = 0;
    try {
      for (;;) {
        const seen = after;
        const view = await this.#again(() => engine.view(id, seen, signal), signal);
        if (id === this.#order.id) {
          if (isOther(view.digest, this.#order.digest ?? '')) throw idReused(id);
          this.#view = view;
          this.#tell();
        }
        if (view.outcome !== null)
          return readOutcome(readFrom(engine.name, outcomeSchema, view.outcome));
        if (view.turn > after) {
          after = view.turn;
          looks = 0;
          for (const wait of view.waiting) readFrom(engine.name, askedSchema, wait.asked);
          this.#show(id, view.waiting, asked);
          this.#followAll(view.children ?? [], followed);
        } else {
          const { lookMs = LOOK_MS } = engine;
          const pauseMs = Math.min(lookMs, FIRST_LOOK_MS * 2 ** looks);
          await pause(this.#options.environment.scheduler, pauseMs, signal);
          looks += 1;
        }
      }
    } finally {
      signal.removeEventListener('abort', over);
      over();
    }
  }

  #followAll(ids: readonly string[], followed: Map<string, AbortController>): void {
    for (const [id, controller] of followed) {
      if (ids.includes(id)) continue;
      followed.delete(id);
      controller.abort(new CancelledError('the run is over'));
    }
    for (const id of ids) {
      if (followed.has(id)) continue;
      const controller = new AbortController();
      followed.set(id, controller);
      const { signal } = controller;
      this.#follow(id, signal).catch((error: unknown) => {
        if (!signal.aborted) this.#failed(error, 'questions');
      });
    }
  }

  cancel(reason: string): void {
    const { engine } = this.#options;
    const cancelling = async (): Promise<void> => {
      await this.#started;
      await this.#again(() => engine.cancel(this.#order.id, reason), this.#over.signal);
    };
    cancelling().catch((error: unknown) => this.#failed(error, 'cancel'));
  }

  /** ENGINE-RUN-2 */
  #show(id: string, waiting: readonly RunWait[], asked: Map<string, AbortController>): void {
    for (const [requestId, controller] of asked) {
      if (waiting.some((wait) => wait.requestId === requestId)) continue;
      asked.delete(requestId);
      controller.abort(new CancelledError('the question is over'));
    }
    for (const wait of waiting) {
      if (asked.has(wait.requestId)) continue;
      const controller = new AbortController();
      asked.set(wait.requestId, controller);
      this.#ask(id, wait, controller.signal).catch((error: unknown) =>
        this.#failed(error, 'answer'),
      );
    }
  }

  async #ask(id: string, wait: RunWait, signal: AbortSignal): Promise<void> {
    const { engine } = this.#options;
    const answer = await this.#answerTo(wait, signal);
    if (signal.aborted) return;
    await this.#again(() => engine.answer(id, answer), this.#over.signal);
  }

  async #answerTo({ requestId, kind, asked }: RunWait, signal: AbortSignal): Promise<RunAnswer> {
    const { onQuestion, onInput } = this.#options;
    try {
      if (kind === 'input') {
        const content = contentOf((await onInput?.(asked as ProgramRequest)) ?? null);
        return { requestId, content };
      }
      const question = asked as AskedQuestion;
      const given = (await onQuestion?.(question, signal)) ?? null;
      // The worker validates the answer as well.
      if (given !== null) answerOf(question, given);
      return { requestId, given };
    } catch (error) {
      if (!signal.aborted) this.#report(error, kind === 'input' ? 'onInput' : 'onQuestion');
      return kind === 'input' ? { requestId, content: null } : { requestId, given: null };
    }
  }

  #failed(error: unknown, what: string): void {
    if (!this.#over.signal.aborted) this.#report(error, `${what} of ${this.#order.id}`);
  }

  /** ENGINE-RUN-3 */
  #again<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { engine, environment } = this.#options;
    return untilReached(ask, environment, signal, AGAIN, (error) =>
      this.#report(error, `${engine.name}: ${this.#order.id}`),
    );
  }
}
