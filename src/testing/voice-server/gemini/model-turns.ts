// The Gemini model's speech, turn by turn, and how a turn ends in the protocol.
//
// GEMINI-MODEL-TURNS-1. A normal turn ends with generationComplete, and then, when its audio would have been played,
//     with turnComplete. An interrupted turn ends with interrupted, then turnComplete.
// GEMINI-MODEL-TURNS-2. A turn with a blocking call ends silently: the result continues it.

import { encodePcm16Base64 } from '../../../voice/audio/pcm16.ts';
import type { CallStep } from '../engine/call-step.ts';
import type { EnginePorts } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/fake-replies.ts';
import { tone, type SpeechPiece } from '../engine/sound.ts';
import { TurnQueue } from '../engine/turn-queue.ts';
import type { GeminiSession } from './gemini-memory.ts';
import type { ServerContent, ServerMessage } from './official.ts';

const OUTPUT_RATE_HZ = 24_000;
const DEFAULT_SPEED = 4;
const PROMPT_TOKENS = 50;
const MS_PER_TOKEN = 40;

export interface ModelTurnsPorts {
  /** null before the setup. */
  session(): GeminiSession | null;
  send(message: ServerMessage): void;
  call(step: CallStep): void;
  /** Called after a turn's end has been sent. */
  ended(): void;
}

export class ModelTurns {
  readonly queue: TurnQueue;
  readonly #engine: EnginePorts;
  readonly #ports: ModelTurnsPorts;
  /** When playback of the current turn started. */
  #playingSince: number | null = null;
  /** Why the current turn fails. */
  #failure: ServerContent['turnCompleteReason'];

  constructor(engine: EnginePorts, ports: ModelTurnsPorts) {
    this.#engine = engine;
    this.#ports = ports;
    this.queue = new TurnQueue(engine, {
      speed: engine.speed ?? DEFAULT_SPEED,
      piece: (piece, reply) => this.#speak(piece, reply),
      call: (step) => ports.call(step),
      // This protocol calls tools by name.
      delegate: () => {},
      // The turn's end reports it.
      fail: () => {
        this.#failure = 'RESPONSE_REJECTED';
      },
      generated: (reply) => this.#generated(reply),
      ended: (reply, next) => this.#end(reply, next),
    });
  }

  /** Handles a call that cannot be parsed: the turn ends with that reason. */
  callIsMalformed(): void {
    this.#failure = 'MALFORMED_FUNCTION_CALL';
  }

  #speak({ words, startMs, durationMs }: SpeechPiece, reply: ReplyRecord): void {
    const setup = this.#ports.session()?.setup;
    this.#playingSince ??= this.#engine.environment.clock.now();
    reply.text += words;
    if (setup?.generationConfig?.responseModalities?.includes('TEXT')) {
      if (words !== '') this.#content({ modelTurn: { role: 'model', parts: [{ text: words }] } });
      return;
    }
    reply.audioMs += durationMs;
    const data = encodePcm16Base64(tone(startMs, durationMs, OUTPUT_RATE_HZ));
    const inlineData = { mimeType: `audio/pcm;rate=${OUTPUT_RATE_HZ}`, data };
    this.#content({ modelTurn: { role: 'model', parts: [{ inlineData }] } });
    if (words !== '' && setup?.outputAudioTranscription !== undefined) {
      this.#content({ outputTranscription: { text: words } });
    }
  }

  /** @returns the remaining duration of its playback */
  #generated(reply: ReplyRecord): number {
    if (this.#ports.session()?.isBlocked) return 0;
    this.#content({ generationComplete: true });
    const since = this.#playingSince;
    if (since === null) return 0;
    return Math.max(0, since + reply.audioMs - this.#engine.environment.clock.now());
  }

  #end(reply: ReplyRecord, next: SpeechPiece | null): void {
    const session = this.#ports.session();
    if (session === null) return;
    if (reply.text !== '') session.say('assistant', reply.text, 'speech');
    this.#playingSince = null;
    if (reply.status === 'completed' && session.isBlocked) return;
    if (reply.status === 'cancelled') this.#content({ interrupted: true });
    const isWorking = session.openCalls.size > 0 || !this.queue.isIdle;
    const responseTokens = Math.ceil(reply.audioMs / MS_PER_TOKEN);
    this.#ports.send({
      serverContent: {
        turnComplete: true,
        ...(session.traits.reportsStatus && {
          interactionStatus: isWorking ? ('IN_PROGRESS' as const) : ('IDLE' as const),
        }),
        ...(this.#failure !== undefined && { turnCompleteReason: this.#failure }),
      },
      usageMetadata: {
        promptTokenCount: PROMPT_TOKENS,
        responseTokenCount: responseTokens,
        totalTokenCount: PROMPT_TOKENS + responseTokens,
      },
    });
    this.#failure = undefined;
    if (next !== null && this.#engine.faults.deltasAfterCancel) this.#speak(next, reply);
    this.#playingSince = null;
    this.#ports.ended();
  }

  #content(serverContent: ServerContent): void {
    this.#ports.send({ serverContent });
  }
}
