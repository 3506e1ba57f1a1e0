// The Gemini model's speech, turn by turn, and how a turn ends in the protocol.
//
// GEMINI-MODEL-TURNS-1. A normal turn ends with generationComplete, and then, when its audio would have been played,
//     with turnComplete. An interrupted turn ends with interrupted, then turnComplete.
// GEMINI-MODEL-TURNS-2. A turn with a blocking call ends silently: the result continues it.

import { encodePcm16Base64 } from '../../../voice/audio/pcm16.ts';
import type { CallStep } from '../engine/call-step.ts';
import type { EnginePorts } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/reply-record.ts';
import { tone, type SpeechPiece } from '../engine/sound.ts';
import { turnQueue } from '../engine/turn-queue.ts';
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

export type ModelTurns = ReturnType<typeof modelTurns>;

export function modelTurns(engine: EnginePorts, ports: ModelTurnsPorts) {
  /** When playback of the current turn started. */
  let playingSince: number | null = null;
  /** Why the current turn fails. */
  let failure: ServerContent['turnCompleteReason'];
  const content = (serverContent: ServerContent): void => ports.send({ serverContent });
  const queue = turnQueue(engine, {
    speed: engine.speed ?? DEFAULT_SPEED,
    piece: (piece, reply) => speak(piece, reply),
    call: (step) => ports.call(step),
    // This protocol calls tools by name.
    delegate: () => {},
    // The turn's end reports it.
    fail: () => {
      failure = 'RESPONSE_REJECTED';
    },
    generated: (reply) => generated(reply),
    ended: (reply, next) => end(reply, next),
  });

  function speak({ words, startMs, durationMs }: SpeechPiece, reply: ReplyRecord): void {
    const setup = ports.session()?.setup;
    playingSince ??= engine.environment.clock.now();
    reply.text += words;
    if (setup?.generationConfig?.responseModalities?.includes('TEXT')) {
      if (words !== '') content({ modelTurn: { role: 'model', parts: [{ text: words }] } });
      return;
    }
    reply.audioMs += durationMs;
    const data = encodePcm16Base64(tone(startMs, durationMs, OUTPUT_RATE_HZ));
    const inlineData = { mimeType: `audio/pcm;rate=${OUTPUT_RATE_HZ}`, data };
    content({ modelTurn: { role: 'model', parts: [{ inlineData }] } });
    if (words !== '' && setup?.outputAudioTranscription !== undefined) {
      content({ outputTranscription: { text: words } });
    }
  }

  /** @returns the remaining duration of its playback */
  function generated(reply: ReplyRecord): number {
    if (ports.session()?.isBlocked) return 0;
    content({ generationComplete: true });
    const since = playingSince;
    if (since === null) return 0;
    return Math.max(0, since + reply.audioMs - engine.environment.clock.now());
  }

  function end(reply: ReplyRecord, next: SpeechPiece | null): void {
    const session = ports.session();
    if (session === null) return;
    if (reply.text !== '') session.say('assistant', reply.text, 'speech');
    playingSince = null;
    if (reply.status === 'completed' && session.isBlocked) return;
    if (reply.status === 'cancelled') content({ interrupted: true });
    const isWorking = session.openCalls.size > 0 || !queue.isIdle;
    const responseTokens = Math.ceil(reply.audioMs / MS_PER_TOKEN);
    ports.send({
      serverContent: {
        turnComplete: true,
        ...(session.traits.reportsStatus && {
          interactionStatus: isWorking ? ('IN_PROGRESS' as const) : ('IDLE' as const),
        }),
        ...(failure !== undefined && { turnCompleteReason: failure }),
      },
      usageMetadata: {
        promptTokenCount: PROMPT_TOKENS,
        responseTokenCount: responseTokens,
        totalTokenCount: PROMPT_TOKENS + responseTokens,
      },
    });
    failure = undefined;
    if (next !== null && engine.faults.deltasAfterCancel) speak(next, reply);
    playingSince = null;
    ports.ended();
  }

  return {
    queue,
    /** Handles a call that cannot be parsed: the turn ends with that reason. */
    callIsMalformed(): void {
      failure = 'MALFORMED_FUNCTION_CALL';
    },
  };
}
