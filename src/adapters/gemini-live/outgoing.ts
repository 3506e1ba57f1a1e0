// The queue of messages to the model. Client content that arrives while the model is speaking is lost or interrupts the
// model, so the queue waits until the model has finished. Messages from one tick are combined, so that a result and the
// request to deliver it become one message.
//
// Owns:     the queue, and how commands are grouped into messages.
// Does not: determine whether the model is busy (`translator.ts`), or which request a response belongs to
//           (`responses.ts`).
//
// OUTGOING-1. Messages are sent in the order of their commands, and before the response request that follows them.
// OUTGOING-2. A message that would interrupt the model waits while the model is busy, but at most for HOLD_LIMIT_MS. A
//     turn whose end is never reported therefore cannot block the queue.
// OUTGOING-3. The response to a call is sent immediately, because the model may be waiting for it. The response waits
//     only if it belongs to a request, and is then sent together with that request.
// OUTGOING-4. If the model accepts added content only at the start, messages wait for the next response request.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import type { ModelTraits } from './models.ts';
import type { Requests } from './responses.ts';
import type { Resumption } from './resumption.ts';
import { answerTurn, systemText, textOf, YOUR_TURN } from './told-as-text.ts';
import type { Answer, ToolCalls } from './tool-calls.ts';
import * as wire from './wire.ts';

/** The maximum wait since the model's last activity, in milliseconds. */
const HOLD_LIMIT_MS = 15_000;

/** The state of the model that determines whether a message can be sent. */
interface ModelActivity {
  /** Whether the model is speaking, working or possibly about to respond. */
  isBusy(): boolean;
  /** Returns how long the model will stay busy at least, in milliseconds; null if this is unknown. */
  busyForMs(): number | null;
  /** Treats the model as idle after too long without any activity. */
  giveUp(): void;
}

interface Request {
  readonly responseKey: string;
  readonly instructions: string | undefined;
  readonly about: string | undefined;
  readonly insists: boolean;
  /** The call whose result the model should report; null if there is none. */
  answer: Answer | null;
}

type Waiting =
  | { readonly kind: 'turn'; readonly turn: wire.Turn }
  | { readonly kind: 'request'; readonly request: Request };

export class Outgoing {
  readonly #environment: Environment;
  readonly #resumption: Resumption;
  readonly #notes: NoteWriter;
  readonly #activity: ModelActivity;
  readonly #traits: ModelTraits;
  readonly #calls: ToolCalls;
  readonly #requests: Requests;
  #isOpen = false;
  #isStopped = false;
  #waiting: Waiting[] = [];
  /** The tool responses added in this tick. */
  #answers: Answer[] = [];
  /** The response request added in this tick. */
  #newRequest: Request | null = null;
  #isScheduled = false;
  #lastSignAt: number;
  #cancelHold: () => void = () => {};

  constructor(
    environment: Environment,
    resumption: Resumption,
    notes: NoteWriter,
    activity: ModelActivity,
    traits: ModelTraits,
    calls: ToolCalls,
    requests: Requests,
  ) {
    this.#environment = environment;
    this.#resumption = resumption;
    this.#notes = notes;
    this.#activity = activity;
    this.#traits = traits;
    this.#calls = calls;
    this.#requests = requests;
    this.#lastSignAt = environment.clock.now();
  }

  /** Starts sending because the model is ready. */
  open(): void {
    this.#isOpen = true;
    this.sign();
    this.#schedule();
  }

  add(turn: wire.Turn): void {
    this.#waiting.push({ kind: 'turn', turn });
    this.#schedule();
  }

  answer(answer: Answer): void {
    this.#answers.push(answer);
    this.#schedule();
  }

  request(command: Extract<TransportCommand, { type: 'response.request' }>): void {
    const { responseKey, instructions, about, insist = false } = command;
    const request: Request = { responseKey, instructions, about, insists: insist, answer: null };
    this.#newRequest = request;
    this.#waiting.push({ kind: 'request', request });
    this.#schedule();
  }

  /**
   * Withdraws one unsent request, or all of them (null). The tool response that belonged to the request is sent as
   * silent.
   */
  withdraw(responseKey: string | null): void {
    this.#pairAnswers();
    const isMeant = (entry: Waiting): entry is Extract<Waiting, { kind: 'request' }> =>
      entry.kind === 'request' &&
      (responseKey === null || entry.request.responseKey === responseKey);
    const withdrawn = this.#waiting.filter(isMeant);
    this.#waiting = this.#waiting.filter((entry) => !isMeant(entry));
    for (const { request } of withdrawn) {
      if (request.answer) this.#answers.push(request.answer);
      this.#requests.inVain(request.responseKey, 'cancelled');
    }
    this.#schedule();
  }

  /** Records that the server reported the model's state. */
  sign(): void {
    this.#lastSignAt = this.#environment.clock.now();
  }

  /** Sends the waiting messages if the model is idle. */
  flush(): void {
    if (!this.#isOpen || this.#isStopped) return;
    for (;;) {
      this.#cancelHold();
      const isWaiting = this.#waiting.some(
        (entry) => entry.kind === 'request' || this.#addsAnytime,
      );
      if (!isWaiting || this.#isHeld()) return;
      const turns = this.#takeTurns();
      const entry = this.#waiting.shift();
      if (entry?.kind === 'request') this.#ask(entry.request, turns);
      else this.#send(wire.clientContent(turns, false));
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelHold();
  }

  get #addsAnytime(): boolean {
    return this.#traits.clientContent === 'anytime';
  }

  /** Schedules a flush at the end of this tick, so that its messages are sent together. */
  #schedule(): void {
    if (this.#isScheduled || !this.#isOpen) return;
    this.#isScheduled = true;
    void Promise.resolve().then(() => {
      this.#isScheduled = false;
      if (!this.#isStopped) this.#endOfTurn();
    });
  }

  #endOfTurn(): void {
    this.#pairAnswers();
    this.#sendAnswers();
    this.flush();
  }

  /**
   * Attaches the last tool response of this tick to its request. Responses that the protocol cannot represent are sent
   * as text.
   */
  #pairAnswers(): void {
    this.#answers = this.#answers.filter((answer) => {
      const way = this.#calls.wayOf(answer.callId);
      if (way !== 'text') return way === 'response';
      this.#beforeLastRequest(this.#asText(answer));
      return false;
    });
    const request = this.#newRequest;
    this.#newRequest = null;
    if (request !== null) request.answer = this.#answers.pop() ?? null;
  }

  #beforeLastRequest(turn: wire.Turn): void {
    const index = this.#waiting.at(-1)?.kind === 'request' ? -1 : this.#waiting.length;
    this.#waiting.splice(index, 0, { kind: 'turn', turn });
  }

  /** OUTGOING-3 */
  #sendAnswers(): void {
    const answers = this.#answers;
    this.#answers = [];
    if (answers.length === 0) return;
    const { honoursScheduling } = this.#traits;
    const scheduling = honoursScheduling ? 'SILENT' : null;
    const responses = answers.map((answer) => this.#calls.answer(answer, scheduling));
    this.#send(wire.toolResponse(responses));
    // Without scheduling support, the model always speaks about a tool response.
    if (!honoursScheduling) this.#requests.owes();
  }

  #ask(
    { responseKey, answer, instructions, about, insists }: Request,
    turns: readonly wire.Turn[],
  ): void {
    const writer = this.#notes;
    // The call may have been cancelled while its request was waiting.
    const isOpen = answer !== null && this.#calls.wayOf(answer.callId) === 'response';
    const notes = this.#addsAnytime ? turns : [];
    const texts = this.#addsAnytime ? [] : [...textOf(turns)];
    if (instructions !== undefined)
      texts.push(systemText(writer, instructions, `${responseKey} instructions`));
    // A quotation that follows its note has no marker (MARK-6).
    const quotation = about?.replace(/^\[data \S+\] /, '') ?? '';
    if (about !== undefined && !textOf(turns).some((text) => text.includes(quotation)))
      texts.push(about);
    if (isOpen) this.#answerCall(notes, texts.join('\n'), answer, insists);
    else {
      if (instructions === undefined) texts.push(writer.text(YOUR_TURN, `${responseKey} turn`));
      this.#prompt(notes, texts.join('\n'), insists, turns.length > 0);
    }
    this.sign();
    this.#requests.sent(responseKey);
  }

  #asText(answer: Answer): wire.Turn {
    return answerTurn(this.#notes, this.#calls.nameOf(answer.callId), answer);
  }

  /** Makes the model speak about a call's result. */
  #answerCall(notes: readonly wire.Turn[], text: string, answer: Answer, insists: boolean): void {
    if (notes.length > 0) this.#send(wire.clientContent(notes, false));
    const { honoursScheduling } = this.#traits;
    const scheduling = insists ? 'INTERRUPT' : 'WHEN_IDLE';
    const response = this.#calls.answer(answer, honoursScheduling ? scheduling : null);
    const spoken = text === '' ? response.response : { ...response.response, instructions: text };
    this.#send(
      wire.toolResponse([{ ...response, response: spoken }]),
      wire.toolResponse([{ ...response, ...(honoursScheduling && { scheduling: 'SILENT' }) }]),
    );
  }

  /**
   * Makes the model respond to a text. The model reliably responds to text in the realtime input, but it treats the
   * text as the user's words.
   */
  #prompt(notes: readonly wire.Turn[], text: string, insists: boolean, hasNews: boolean): void {
    const lasting = notes.length > 0 ? wire.clientContent(notes, false) : null;
    if (this.#addsAnytime && !insists) {
      const nudge: wire.Turn = { role: 'user', parts: [{ text }] };
      this.#send(wire.clientContent([...notes, nudge], true), lasting);
      return;
    }
    if (lasting !== null) this.#send(lasting);
    const message = wire.realtimeText(text);
    // Messages that were sent together with a request must not be lost on resumption, so the whole message is sent
    // again.
    this.#send(message, hasNews && !this.#addsAnytime ? message : null);
  }

  #send(message: object, lasting: object | null = message): void {
    this.#resumption.send(message, lasting);
  }

  #takeTurns(): readonly wire.Turn[] {
    const end = this.#waiting.findIndex(({ kind }) => kind === 'request');
    const taken = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    return taken.flatMap((entry) => (entry.kind === 'turn' ? [entry.turn] : []));
  }

  /** OUTGOING-2 */
  #isHeld(): boolean {
    const { isBusy, busyForMs, giveUp } = this.#activity;
    if (!isBusy()) return false;
    const limitMs = this.#lastSignAt + HOLD_LIMIT_MS - this.#environment.clock.now();
    if (limitMs <= 0) {
      giveUp();
      return false;
    }
    const delayMs = Math.min(limitMs, busyForMs() ?? limitMs);
    this.#cancelHold = this.#environment.scheduler.schedule(() => this.flush(), delayMs);
    return true;
  }
}
