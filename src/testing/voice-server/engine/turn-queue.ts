// The turns of a model that responds without a request (Live, Gemini): one at a time, in order, and none while a holder
// delays them (a speaking user, a blocking call).
//
// TURN-QUEUE-1. At most one turn is being generated; the next one starts when it has ended.
// TURN-QUEUE-2. A delayed turn starts when each holder has released it.
// TURN-QUEUE-3. A turn without a response (a silent model) does not delay the next one.
// TURN-RUN-1. After `cancel` no step follows, and `ended` has been called once.
// TURN-RUN-2. Steps run one after another in the environment's time; no step runs before `begin` returns. The
// protocol's engine defines the meaning of a step.

import type { CallStep } from './call-step.ts';
import type { VoiceCause, VoiceStep } from './control.ts';
import type { EnginePorts } from './engine.ts';
import type { ReplyRecord } from './fake-replies.ts';
import type { SpeechPiece } from './sound.ts';
import type { Scheduler } from '../../../actors/ports/environment.ts';
import { piecesOf } from './sound.ts';

/** The meaning of a turn's steps in the protocol. */
export interface TurnWords {
  readonly speed: number;
  piece(piece: SpeechPiece, reply: ReplyRecord): void;
  call(step: CallStep): void;
  delegate(delegationId: string | undefined): void;
  fail(message: string): void;
  /** The script is done. @returns the remaining duration of the turn, in milliseconds */
  generated(reply: ReplyRecord): number;
  /** The turn has ended; `next`: the next unspoken piece, if the turn was cancelled. */
  ended(reply: ReplyRecord, next: SpeechPiece | null): void;
}

/** Why turns wait. */
export type TurnHolder = 'user' | 'call' | 'fixture';

interface Waiting {
  readonly reply: ReplyRecord;
  /** The script; null: `respond` computes it when the turn starts. */
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

  /** Adds a turn before all pending turns. */
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

  /** Ends the current turn, so that the next one starts. @returns whether there was a turn */
  cancel(): boolean {
    const running = this.#running;
    if (running === null) return false;
    const next = running.run.cancel();
    this.#end(running, 'cancelled', next);
    return true;
  }

  /**
   * Like `cancel`. @returns the turn's cause if the turn has said nothing yet: the model has read the message, and may
   * still speak about it
   */
  postpone(): VoiceCause | null {
    const running = this.#running;
    this.cancel();
    return running?.reply.text === '' && running.reply.cause.type === 'message'
      ? running.reply.cause
      : null;
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

/** How the engine handles a turn's steps. */
export interface TurnVoice {
  piece(piece: SpeechPiece): void;
  call(step: CallStep): void;
  delegate(delegationId: string | undefined): void;
  fail(message: string): void;
  /** The script is done. @returns the remaining duration of the turn, in milliseconds */
  generated(): number;
  ended(status: 'completed' | 'cancelled' | 'failed'): void;
}

export class TurnRun {
  readonly #scheduler: Scheduler;
  readonly #speed: number;
  readonly #voice: TurnVoice;
  #isOver = false;
  #cancelPause: () => void = () => {};
  /** The next piece of speech. */
  #next: SpeechPiece | null = null;

  constructor(scheduler: Scheduler, speed: number, voice: TurnVoice) {
    this.#scheduler = scheduler;
    this.#speed = speed;
    this.#voice = voice;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** `null`: a turn that never responds and never ends. */
  begin(steps: readonly VoiceStep[] | null): void {
    if (steps !== null) void this.#run(steps);
  }

  /** @returns the next unspoken piece */
  cancel(): SpeechPiece | null {
    const next = this.#next;
    this.#end('cancelled');
    return next;
  }

  /** Stops silently: the connection is gone. */
  abandon(): void {
    this.#isOver = true;
    this.#cancelPause();
  }

  async #run(steps: readonly VoiceStep[]): Promise<void> {
    await this.#pause(0);
    for (const step of steps) {
      if (this.#isOver) return;
      if ('say' in step) await this.#say(step);
      else if ('call' in step) this.#voice.call(step);
      else if ('delegate' in step) this.#voice.delegate(step.delegationId);
      else if ('waitMs' in step) await this.#pause(step.waitMs);
      else if ('until' in step) await Promise.allSettled([step.until]);
      else {
        this.#voice.fail(step.fail);
        this.#end('failed');
        return;
      }
    }
    if (this.#isOver) return;
    const restMs = this.#voice.generated();
    if (restMs > 0) await this.#pause(restMs);
    this.#end('completed');
  }

  async #say(step: Extract<VoiceStep, { say: string }>): Promise<void> {
    for (const piece of piecesOf(step)) {
      this.#next = piece;
      if (this.#isOver) return;
      this.#voice.piece(piece);
      await this.#pause(piece.durationMs / this.#speed);
    }
    this.#next = null;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#cancelPause = this.#scheduler.schedule(resolve, ms);
    });
  }

  #end(status: 'completed' | 'cancelled' | 'failed'): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelPause();
    this.#voice.ended(status);
  }
}
