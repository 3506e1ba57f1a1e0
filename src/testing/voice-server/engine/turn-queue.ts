// The turns of a model that answers by itself (Live, Gemini): one at a time, in order, none while a holder
// delays them (the user who speaks, a call that blocks).
//
// TURN-QUEUE-1. At most one turn is being generated; the next begins when it is over.
// TURN-QUEUE-2. A delayed turn begins when each holder has released it.
// TURN-QUEUE-3. A turn without an answer (a silent model) does not delay the next.

import type { CallStep } from './call-step.ts';
import type { VoiceCause, VoiceStep } from './control.ts';
import type { EnginePorts } from './engine.ts';
import type { ReplyRecord } from './fake-replies.ts';
import type { SpeechPiece } from './sound.ts';
import { TurnRun } from './turn-run.ts';

/** The meaning of a turn's steps on the wire. */
export interface TurnWords {
  readonly speed: number;
  piece(piece: SpeechPiece, reply: ReplyRecord): void;
  call(step: CallStep): void;
  delegate(delegationId: string | undefined): void;
  fail(message: string): void;
  /** The script is done. @returns the remaining duration of the turn, in milliseconds */
  generated(reply: ReplyRecord): number;
  /** The turn is over; `next`: the next piece that was not spoken, if the turn was cancelled. */
  ended(reply: ReplyRecord, next: SpeechPiece | null): void;
}

/** A reason for which turns wait. */
export type TurnHolder = 'user' | 'call' | 'fixture';

interface Waiting {
  readonly reply: ReplyRecord;
  /** The script; null: the brain computes it when the turn begins. */
  readonly steps: readonly VoiceStep[] | null;
}

interface Running {
  readonly reply: ReplyRecord;
  readonly run: TurnRun;
}

export class TurnQueue {
  readonly #ports: EnginePorts;
  readonly #words: TurnWords;
  readonly #waiting: Waiting[] = [];
  #running: Running | null = null;
  #isOver = false;
  readonly #holders = new Set<TurnHolder>();

  constructor(ports: EnginePorts, words: TurnWords) {
    this.#ports = ports;
    this.#words = words;
  }

  get isIdle(): boolean {
    return this.#running === null && this.#waiting.length === 0;
  }

  /** The reply that is being generated. */
  get reply(): ReplyRecord | null {
    return this.#running?.reply ?? null;
  }

  add(cause: VoiceCause): void {
    this.#waiting.push({ reply: this.#begin(cause), steps: null });
    this.#next();
  }

  /** Adds a turn before all that wait. */
  addFirst(cause: VoiceCause): void {
    this.#waiting.unshift({ reply: this.#begin(cause), steps: null });
    this.#next();
  }

  addOwn(steps: readonly VoiceStep[]): ReplyRecord {
    const reply = this.#begin({ type: 'nothing' });
    this.#waiting.push({ reply, steps });
    this.#next();
    return reply;
  }

  hold(holder: TurnHolder): void {
    this.#holders.add(holder);
  }

  release(holder: TurnHolder): void {
    this.#holders.delete(holder);
    this.#next();
  }

  /** Ends the turn that is being generated; the next begins. @returns whether there was one */
  cancel(): boolean {
    const running = this.#running;
    if (running === null) return false;
    const next = running.run.cancel();
    this.#end(running, 'cancelled', next);
    return true;
  }

  abandon(): void {
    this.#isOver = true;
    this.#running?.run.abandon();
    this.#running = null;
  }

  #begin(cause: VoiceCause): ReplyRecord {
    const { environment, replies } = this.#ports;
    return replies.begin(environment.ids.next('reply'), cause);
  }

  #next(): void {
    if (this.#isOver || this.#holders.size > 0 || this.#running !== null) return;
    const waiting = this.#waiting.shift();
    if (waiting === undefined) return;
    const { reply } = waiting;
    const steps = waiting.steps ?? this.#ports.turns.next(reply.cause, null);
    if (steps === null) {
      reply.end('cancelled');
      this.#next();
      return;
    }
    const { scheduler } = this.#ports.environment;
    const running: Running = {
      reply,
      run: new TurnRun(scheduler, this.#words.speed, {
        piece: (piece) => this.#words.piece(piece, reply),
        call: (step) => this.#words.call(step),
        delegate: (id) => this.#words.delegate(id),
        fail: (message) => this.#words.fail(message),
        generated: () => this.#words.generated(reply),
        ended: (status) => {
          if (status !== 'cancelled') this.#end(running, status, null);
        },
      }),
    };
    this.#running = running;
    running.run.begin(steps);
  }

  #end(
    running: Running,
    status: 'completed' | 'cancelled' | 'failed',
    next: SpeechPiece | null,
  ): void {
    if (this.#running !== running) return;
    this.#running = null;
    running.reply.end(status);
    this.#words.ended(running.reply, next);
    this.#next();
  }
}
