// What we say to the model, and when. Client content that comes while the model talks is
// swallowed or cuts it off, so it waits until the model is done; what is said in one turn of
// the loop goes together, so that a result and the request to tell it are one message.
//
// Owns: the queue of what waits, and in which message a command travels.
// Does not: whether the model is busy (the translator), who is answered (requests).
//
// OUTGOING-1. Messages are told in the order of their commands, and before the request that follows them.
// OUTGOING-2. Nothing that interrupts is said while the model is busy, or for longer than HOLD_LIMIT_MS:
//     a turn whose end never comes holds up nobody for ever.
// OUTGOING-3. The answer to a call goes at once: it may be what the model waits for. Only one that goes
//     with a request waits with it.
// OUTGOING-4. Where the conversation can be added to only initially, messages wait for the next request.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import type { ModelTraits } from './models.ts';
import type { Requests } from './requests.ts';
import { answerTurn, systemText, textOf, YOUR_TURN } from './told-as-text.ts';
import type { Answer, ToolCalls } from './tool-calls.ts';
import * as wire from './wire/index.ts';

/** Since the last sign of the model. */
const HOLD_LIMIT_MS = 15_000;

export interface OutgoingPorts {
  readonly environment: Environment;
  readonly notes: NoteWriter;
  /** `lasting`: what of it a session that is resumed must be told again, if it was not taken in. */
  send(message: object, lasting?: object | null): void;
  /** The model talks, works, or may be about to answer. */
  isBusy(): boolean;
  /** For how long at least, in milliseconds, if that is known. */
  busyForMs(): number | null;
  /** It has been busy for too long without a sign. */
  giveUp(): void;
}

interface Request {
  readonly responseKey: string;
  readonly instructions: string | undefined;
  readonly about: string | undefined;
  readonly insists: boolean;
  /** What it tells is the result of this call. */
  answer: Answer | null;
}

type Waiting =
  | { readonly kind: 'turn'; readonly turn: wire.Turn }
  | { readonly kind: 'request'; readonly request: Request };

export class Outgoing {
  readonly #ports: OutgoingPorts;
  readonly #traits: ModelTraits;
  readonly #calls: ToolCalls;
  readonly #requests: Requests;
  #isOpen = false;
  #isStopped = false;
  #waiting: Waiting[] = [];
  /** Answers of this turn of the loop. */
  #answers: Answer[] = [];
  /** The request of this turn of the loop. */
  #newRequest: Request | null = null;
  #isScheduled = false;
  #lastSignAt: number;
  #cancelHold: () => void = () => {};

  constructor(ports: OutgoingPorts, traits: ModelTraits, calls: ToolCalls, requests: Requests) {
    this.#ports = ports;
    this.#traits = traits;
    this.#calls = calls;
    this.#requests = requests;
    this.#lastSignAt = ports.environment.clock.now();
  }

  /** The model can be talked to. */
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
   * A request that was not sent yet, or each of them, is not sent any more; what it was to tell is
   * told in silence.
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

  /** The server said something about what the model does. */
  sign(): void {
    this.#lastSignAt = this.#ports.environment.clock.now();
  }

  /** The model may be done: what waits may go. */
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
      else this.#ports.send(wire.clientContent(turns, false));
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelHold();
  }

  get #addsAnytime(): boolean {
    return this.#traits.clientContent === 'anytime';
  }

  /** What is said in one turn of the loop goes together. */
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

  /** A request that comes with an answer is to tell that answer (the last one). */
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
    this.#ports.send(wire.toolResponse(responses));
    // Else the model speaks to it, asked or not.
    if (!honoursScheduling) this.#requests.owes();
  }

  #ask(
    { responseKey, answer, instructions, about, insists }: Request,
    turns: readonly wire.Turn[],
  ): void {
    const { notes: writer } = this.#ports;
    // The call may have been cancelled while the request waited.
    const isOpen = answer !== null && this.#calls.wayOf(answer.callId) === 'response';
    const notes = this.#addsAnytime ? turns : [];
    const texts = this.#addsAnytime ? [] : [...textOf(turns)];
    if (instructions !== undefined)
      texts.push(systemText(writer, instructions, `${responseKey} instructions`));
    // What the model has just read need not be repeated.
    if (about !== undefined && !textOf(turns).some((text) => text.includes(about)))
      texts.push(about);
    if (isOpen) this.#tell(notes, texts.join('\n'), answer, insists);
    else {
      if (instructions === undefined) texts.push(writer.text(YOUR_TURN, `${responseKey} turn`));
      this.#nudge(notes, texts.join('\n'), insists, turns.length > 0);
    }
    this.sign();
    this.#requests.sent(responseKey);
  }

  #asText(answer: Answer): wire.Turn {
    return answerTurn(this.#ports.notes, this.#calls.nameOf(answer.callId), answer);
  }

  /** The model shall speak to the result of a call. */
  #tell(notes: readonly wire.Turn[], text: string, answer: Answer, insists: boolean): void {
    if (notes.length > 0) this.#ports.send(wire.clientContent(notes, false));
    const { honoursScheduling } = this.#traits;
    const scheduling = insists ? 'INTERRUPT' : 'WHEN_IDLE';
    const response = this.#calls.answer(answer, honoursScheduling ? scheduling : null);
    const spoken = text === '' ? response.response : { ...response.response, instructions: text };
    this.#ports.send(
      wire.toolResponse([{ ...response, response: spoken }]),
      wire.toolResponse([{ ...response, ...(honoursScheduling && { scheduling: 'SILENT' }) }]),
    );
  }

  /** Text in the stream of sound is answered for certain, but it is taken for words of the user. */
  #nudge(notes: readonly wire.Turn[], text: string, insists: boolean, hasNews: boolean): void {
    const lasting = notes.length > 0 ? wire.clientContent(notes, false) : null;
    if (this.#addsAnytime && !insists) {
      const nudge: wire.Turn = { role: 'user', parts: [{ text }] };
      this.#ports.send(wire.clientContent([...notes, nudge], true), lasting);
      return;
    }
    if (lasting !== null) this.#ports.send(lasting);
    const message = wire.realtimeText(text);
    // Where messages travel with a request they are told again with it.
    this.#ports.send(message, hasNews && !this.#addsAnytime ? message : null);
  }

  #takeTurns(): readonly wire.Turn[] {
    const end = this.#waiting.findIndex(({ kind }) => kind === 'request');
    const taken = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    return taken.flatMap((entry) => (entry.kind === 'turn' ? [entry.turn] : []));
  }

  /** OUTGOING-2 */
  #isHeld(): boolean {
    const { environment, isBusy, busyForMs, giveUp } = this.#ports;
    if (!isBusy()) return false;
    const limitMs = this.#lastSignAt + HOLD_LIMIT_MS - environment.clock.now();
    if (limitMs <= 0) {
      giveUp();
      return false;
    }
    const delayMs = Math.min(limitMs, busyForMs() ?? limitMs);
    this.#cancelHold = environment.scheduler.schedule(() => this.flush(), delayMs);
    return true;
  }
}
