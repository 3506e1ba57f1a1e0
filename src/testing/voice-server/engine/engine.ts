// One side of the fake server for each wire: a protocol engine. It reads the frames of one
// client, keeps what the model remembers, and says what the real server would say. It knows
// no socket, and its time and ids come from the environment.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { FakeItem, FakeTool, ReceivedFrame, TranscriptTiming, VoiceStep } from './control.ts';
import type { FakeReplies, ReplyRecord } from './fake-replies.ts';
import type { TurnSource } from './turn-source.ts';

/** Faults that an engine has to look at by itself. */
export interface EngineFaults {
  /** `response.create` that are still to be refused, and the code of the error. */
  refuseResponses: { times: number; code: string };
  /** The next `session.update` is refused with this. */
  refuseConfiguration: string | null;
  deltasAfterCancel: boolean;
  duplicateCalls: boolean;
}

export interface EnginePorts {
  readonly environment: Environment;
  readonly url: URL;
  /** How many times faster than it plays sound is made; null: as this wire does. */
  readonly speed: number | null;
  readonly turns: TurnSource;
  readonly replies: FakeReplies;
  readonly faults: EngineFaults;
  /** Gemini: whether it tells where speech begins and ends. */
  readonly voiceActivity: boolean;
  /** What an ephemeral token fixed for this connection. */
  readonly preset: unknown;
  /** Sends an event; `text` is the same as JSON, where it is known. */
  send(event: object, text?: string): void;
  close(code: number, reason: string): void;
  /** Notes a well-formed frame of the client. */
  received(frame: Omit<ReceivedFrame, 'at'>): void;
  /** The client's first configuration was accepted. */
  configured(): void;
}

export interface VoiceEngine {
  /** The connection is open. */
  open(): void;
  /** A frame of the client. Never throws. */
  receive(text: string): void;
  /** The connection is gone: nothing is said any more, timers stop. */
  end(): void;

  userBegins(): void;
  /** A piece of what the user is saying, as it is heard. */
  userSays(words: string): void;
  /** `text`: all of it; `rest`: what `userSays` did not bring yet. */
  userEnds(text: string, rest: string, transcript: TranscriptTiming): void;

  /** The model takes a turn of its own. */
  answers(steps: readonly VoiceStep[]): ReplyRecord;

  readonly heardMs: number;
  readonly instructions: string;
  readonly tools: readonly FakeTool[];
  readonly items: readonly FakeItem[];
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];

  /** Says that the session is over, as this wire does, and closes. */
  expire(): void;
  /** An event of a type that the wire does not know. */
  unknownEvent(type: string): object;
  /** What only this wire can suffer; absent where it cannot. */
  readonly goAway?: (timeLeftMs: number) => void;
  readonly cancelCalls?: (callIds?: readonly string[]) => void;
}
