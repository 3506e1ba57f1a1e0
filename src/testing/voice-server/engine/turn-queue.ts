// The turns of a model that responds without a request (Live, Gemini). They run one at a time and in order, and none
// starts while something delays it (a user who is speaking, a blocking call).
//
// TURN-QUEUE-1. At most one turn is being generated. The next one starts when that turn has ended.
// TURN-QUEUE-2. A delayed turn starts when every holder that delays it has released it.
// TURN-QUEUE-3. A turn without a response (a silent model) does not delay the next one.
// TURN-RUN-1. After `cancel`, no further step follows, and `ended` has been called exactly once.
// TURN-RUN-2. Steps run one after another in the environment's time. No step runs before `begin` returns. The
// protocol's engine defines what a step does.

import type { CallStep } from './call-step.ts';
import type { VoiceCause, VoiceStep } from './control.ts';
import type { EnginePorts } from './engine.ts';
import type { ReplyRecord } from './reply-record.ts';
import type { SpeechPiece } from './sound.ts';
import type { Scheduler } from '../../../actors/ports/environment.ts';
import { piecesOf } from './sound.ts';

/** How the protocol carries out the steps of a turn. */
export interface TurnWords {
  readonly speed: number;
  piece(piece: SpeechPiece, reply: ReplyRecord): void;
  call(step: CallStep): void;
  delegate(delegationId: string | undefined): void;
  fail(message: string): void;
  /** All steps of the script have run. @returns how long the turn still takes, in milliseconds */
  generated(reply: ReplyRecord): number;
  /** The turn has ended. If it was cancelled, `next` is the next piece that was not spoken. */
  ended(reply: ReplyRecord, next: SpeechPiece | null): void;
}

/** Why turns wait. */
export type TurnHolder = 'user' | 'call' | 'fixture';

interface Waiting {
  readonly reply: ReplyRecord;
  /** The script; null: If null, `respond` computes the steps when the turn starts. */
  readonly steps: readonly VoiceStep[] | null;
}

interface Running {
  readonly reply: ReplyRecord;
  readonly run: TurnRun;
}

export function turnQueue(ports: EnginePorts, words: TurnWords) {
  const pending: Waiting[] = [];
  let current: Running | null = null;
  let isOver = false;
  const holders = new Set<TurnHolder>();

  /** Ends the current turn, so that the next one can start. @returns whether there was a turn */
  function cancel(): boolean {
    const running = current;
    if (running === null) return false;
    const next = running.run.cancel();
    end(running, 'cancelled', next);
    return true;
  }

  function begin(cause: VoiceCause): ReplyRecord {
    return ports.beginReply(ports.environment.ids.next('reply'), cause);
  }

  function startNext(): void {
    if (isOver || holders.size > 0 || current !== null) return;
    const waiting = pending.shift();
    if (waiting === undefined) return;
    const { reply } = waiting;
    const steps = waiting.steps ?? ports.nextTurn(reply.cause, null);
    if (steps === null) {
      reply.end('cancelled');
      startNext();
      return;
    }
    const { scheduler } = ports.environment;
    const running: Running = {
      reply,
      run: turnRun(scheduler, words, reply, (status) => end(running, status, null)),
    };
    current = running;
    running.run.begin(steps);
  }

  function end(
    running: Running,
    status: 'completed' | 'cancelled' | 'failed',
    next: SpeechPiece | null,
  ): void {
    if (current !== running) return;
    current = null;
    running.reply.end(status);
    words.ended(running.reply, next);
    startNext();
  }

  return {
    get isIdle(): boolean {
      return current === null && pending.length === 0;
    },
    /** The reply that is being generated now. */
    get reply(): ReplyRecord | null {
      return current?.reply ?? null;
    },
    add(cause: VoiceCause): void {
      pending.push({ reply: begin(cause), steps: null });
      startNext();
    },
    /** Adds a turn before all pending turns. */
    addFirst(cause: VoiceCause): void {
      pending.unshift({ reply: begin(cause), steps: null });
      startNext();
    },
    addOwn(steps: readonly VoiceStep[]): ReplyRecord {
      const reply = begin({ type: 'nothing' });
      pending.push({ reply, steps });
      startNext();
      return reply;
    },
    hold: (holder: TurnHolder): void => void holders.add(holder),
    release(holder: TurnHolder): void {
      holders.delete(holder);
      startNext();
    },
    cancel,
    /**
     * Like `cancel`. @returns the turn's cause if it is a message about which the model has not said anything yet, so
     * that the model can still speak about it
     */
    postpone(): VoiceCause | null {
      const running = current;
      cancel();
      return running?.reply.text === '' && running.reply.cause.type === 'message'
        ? running.reply.cause
        : null;
    },
    abandon(): void {
      isOver = true;
      current?.run.abandon();
      current = null;
    },
  };
}

type TurnRun = ReturnType<typeof turnRun>;

/** Runs the steps of a turn. `over` is called after the last step or after a step has failed. */
function turnRun(
  scheduler: Scheduler,
  words: TurnWords,
  reply: ReplyRecord,
  over: (status: 'completed' | 'failed') => void,
) {
  let isOver = false;
  let cancelPause: () => void = () => {};
  /** The next piece of speech. */
  let upcoming: SpeechPiece | null = null;

  async function run(steps: readonly VoiceStep[]): Promise<void> {
    await pause(0);
    for (const step of steps) {
      if (isOver) return;
      if ('say' in step) await say(step);
      else if ('call' in step) words.call(step);
      else if ('delegate' in step) words.delegate(step.delegationId);
      else if ('waitMs' in step) await pause(step.waitMs);
      else if ('until' in step) await Promise.allSettled([step.until]);
      else {
        words.fail(step.fail);
        end('failed');
        return;
      }
    }
    if (isOver) return;
    const restMs = words.generated(reply);
    if (restMs > 0) await pause(restMs);
    end('completed');
  }

  async function say(step: Extract<VoiceStep, { say: string }>): Promise<void> {
    for (const piece of piecesOf(step)) {
      upcoming = piece;
      if (isOver) return;
      words.piece(piece, reply);
      await pause(piece.durationMs / words.speed);
    }
    upcoming = null;
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      cancelPause = scheduler.schedule(resolve, ms);
    });
  }

  function end(status: 'completed' | 'failed'): void {
    if (isOver) return;
    abandon();
    over(status);
  }

  /** Prevents further steps. */
  function abandon(): void {
    isOver = true;
    cancelPause();
  }

  return {
    begin: (steps: readonly VoiceStep[]): void => void run(steps),
    /** @returns the next piece that was not spoken */
    cancel(): SpeechPiece | null {
      abandon();
      return upcoming;
    },
    abandon,
  };
}
