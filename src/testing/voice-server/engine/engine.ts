// The fake server's engine for one wire and one client: it reads the frames of the client, keeps the memory
// of the model, and sends the events of the real server. It has no socket, and its time and ids come from the
// environment.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { FakeItem, FakeTool, ReceivedFrame, TranscriptTiming, VoiceStep } from './control.ts';
import type { FakeReplies, ReplyRecord } from './fake-replies.ts';
import type { TurnSource } from './turn-source.ts';

/** Faults that the engine itself applies. */
export interface EngineFaults {
  /** How many of the next `response.create` are refused, and the code of the error. */
  refuseResponses: { times: number; code: string };
  /** The error code for the next `session.update`; null: accept it. */
  refuseConfiguration: string | null;
  deltasAfterCancel: boolean;
  duplicateCalls: boolean;
}

export interface EnginePorts {
  readonly environment: Environment;
  readonly url: URL;
  /** The speed of audio generation as a multiple of playing speed; null: the default of the wire. */
  readonly speed: number | null;
  readonly turns: TurnSource;
  readonly replies: FakeReplies;
  readonly faults: EngineFaults;
  /** Gemini: whether it reports where speech begins and ends. */
  readonly voiceActivity: boolean;
  /** The configuration that an ephemeral token fixed for this connection. */
  readonly preset: unknown;
  /** Sends an event; `text` is the event as JSON, if it is known. */
  send(event: object, text?: string): void;
  close(code: number, reason: string): void;
  /** Records a well-formed frame of the client. */
  received(frame: Omit<ReceivedFrame, 'at'>): void;
  /** The client's first configuration was accepted. */
  configured(): void;
}

export interface VoiceEngine {
  /** Handles the opening of the connection. */
  open(): void;
  /** Handles a frame of the client. Never throws. */
  receive(text: string): void;
  /** Handles the end of the connection: sends nothing more, and stops timers. */
  end(): void;

  userBegins(): void;
  /** Handles a piece of the user's words when the server hears it. */
  userSays(words: string): void;
  /** Handles the end of an utterance. `text`: all words; `rest`: the words that `userSays` has not received. */
  userEnds(text: string, rest: string, transcript: TranscriptTiming): void;

  /** Takes a turn of the model with these steps. */
  answers(steps: readonly VoiceStep[]): ReplyRecord;

  readonly heardMs: number;
  readonly instructions: string;
  readonly tools: readonly FakeTool[];
  readonly items: readonly FakeItem[];
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];

  /** Reports the end of the session as this wire does, and closes. */
  expire(): void;
  /** Returns an event of a type that the wire does not know. */
  unknownEvent(type: string): object;
  /** Faults of this wire only; absent on other wires. */
  readonly goAway?: (timeLeftMs: number) => void;
  readonly cancelCalls?: (callIds?: readonly string[]) => void;
}
