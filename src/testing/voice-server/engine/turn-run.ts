// Runs a turn on a wire without responses: its script, step by step, in the time of the environment. The
// engine defines the meaning of a step on the wire.
//
// TURN-RUN-1. After `cancel` no step follows, and `ended` was called once.
// TURN-RUN-2. Steps follow each other; nothing happens before `begin` returns.

import type { Scheduler } from '../../../actors/ports/environment.ts';
import type { CallStep } from './call-step.ts';
import type { VoiceStep } from './control.ts';
import { piecesOf, type SpeechPiece } from './sound.ts';

/** The engine's handling of the steps of a turn. */
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

  /** `null`: a turn that never answers and never ends. */
  begin(steps: readonly VoiceStep[] | null): void {
    if (steps !== null) void this.#run(steps);
  }

  /** @returns the next piece that was not spoken */
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
