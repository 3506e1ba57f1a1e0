// The interfaces that a call uses, and its validated options.

import type { Observable } from 'rxjs';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { check } from '../../values/checks.ts';
import { readable } from '../../values/plain-checks.ts';
import type { AskedQuestion } from './keypad.ts';
import { reporter } from '../../values/reporter.ts';

/** The methods that a call uses of a server-side `WebSocket` (from the package `ws`). */
export interface TwilioSocket {
  /** Like `on` of `ws`: receives Twilio's messages, the end of the connection, and errors. */
  on(
    event: 'message',
    listener: (data: { toString(): string }, isBinary: boolean) => void,
  ): unknown;
  on(event: 'close', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Like `send` of `ws`: sends audio, marks and `clear` to Twilio, as JSON. */
  send(text: string): void;
  /** Like `close` of `ws`. Code 1000 ends the call normally, and 1008 refuses it. */
  close(code: number, reason: string): void;
}

/** The part of a session that a call uses. `VoiceSession` implements it. */
export interface CallSession {
  /** Receives the caller's audio, at 8 kHz. */
  readonly audioIn: { next(frame: AudioFrame): void };
  /** Emits the lead agent's speech, which the call sends to Twilio. */
  readonly audioOut: Observable<AudioFrame>;
  /** Receives reports of how much of an item the caller has heard, measured from its start, in milliseconds. */
  readonly playout: {
    next(report: { readonly itemId: string; readonly playedMs: number }): void;
  };
  /**
   * The session's events. On `playout.clear`, the call withdraws unplayed speech; at the end of the session, it hangs
   * up.
   */
  readonly events: Observable<{ readonly type: string }>;
  /** The session's state, in which the call finds the question that keys can answer. */
  readonly store: {
    getSnapshot(): { readonly context: { readonly questions: readonly AskedQuestion[] } };
  };
  /** Attaches the caller as a client. Returns a function that detaches the caller; it is called when the call ends. */
  attach(): () => void;
  /** Sends pressed keys that do not answer a question, as typed text. */
  sendText(text: string): Promise<void>;
  /** Answers a question with the option that the caller has chosen by its number. */
  answer(requestId: string, answer: { readonly optionId: string }): Promise<unknown>;
}

/** The options of a call: time limits, and amounts of audio to store. */
export interface TwilioCallOptions {
  /** The clock: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** The maximum wait for Twilio's first message after the socket has opened, in milliseconds. @defaultValue 10000 */
  readonly startTimeoutMs?: number;
  /**
   * The time without audio after which the call counts as lost, in milliseconds. Twilio sends audio continuously.
   * @defaultValue 15000
   */
  readonly silenceTimeoutMs?: number;
  /**
   * The amount of the caller's most recent audio that is stored until a session is connected, in milliseconds.
   * @defaultValue 10000
   */
  readonly keptAudioMs?: number;
  /**
   * The maximum amount of audio that Twilio may hold before it confirms playback, in milliseconds. A higher value
   * causes fewer gaps on a slow network. A lower value leaves less audio to withdraw. @defaultValue 1000
   */
  readonly maxAheadMs?: number;
  /**
   * The maximum amount of the lead agent's speech that is queued for Twilio, in milliseconds. Any further speech is
   * dropped.
   * @defaultValue 300000
   */
  readonly maxQueuedMs?: number;
  /**
   * The maximum length of a message, in characters. Twilio's messages have about 300 characters. @defaultValue 65536
   */
  readonly maxMessageLength?: number;
  /**
   * The time after the last digit at which a keypad number is complete, in milliseconds. `#` completes it immediately.
   * @defaultValue 2000
   */
  readonly keyPauseMs?: number;
  /** Called with errors that do not end the call, such as invalid messages from Twilio and refusals by the session. */
  readonly onError?: (error: unknown) => void;
}

const positive = z.number().positive();
const schema = z.strictObject({
  environment: z.custom<Environment>(
    (value) => typeof (value as Partial<Environment> | null)?.scheduler?.schedule === 'function',
    'Expected an environment, such as nodeEnvironment()',
  ),
  startTimeoutMs: positive.default(10_000),
  silenceTimeoutMs: positive.default(15_000),
  keptAudioMs: positive.default(10_000),
  maxAheadMs: positive.default(1000),
  maxQueuedMs: positive.default(300_000),
  maxMessageLength: z.number().int().min(1024).default(65_536),
  keyPauseMs: positive.default(2000),
  onError: z
    .custom<(error: unknown) => void>((value) => typeof value === 'function')
    .default(() => () => {}),
});

/** @throws {ConfigurationError} `INVALID_OPTION` */
export function checkCallOptions(options: TwilioCallOptions): z.output<typeof schema> {
  const given = withoutUndefined(readable('acceptTwilioCall', options));
  const checked = check('acceptTwilioCall', schema, given);
  return { ...checked, onError: reporter(checked.onError, 'twilio') };
}
export type CheckedCallOptions = ReturnType<typeof checkCallOptions>;
