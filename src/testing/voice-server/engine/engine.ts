// The fake server's engine for one protocol and one client: it handles the client's frames, keeps the model's memory,
// and sends the real server's events. It has no socket, and its time and ids come from the environment.

import type { Environment } from '../../../actors/ports/environment.ts';
import type {
  FakeItem,
  FakeTool,
  ReceivedFrame,
  TranscriptTiming,
  VoiceCause,
  VoiceStep,
} from './control.ts';
import type { ReplyRecord } from './reply-record.ts';

/** Faults that the engine itself applies. */
export interface EngineFaults {
  /** No turn starts. */
  silence: boolean;
  /** How many of the next `response.create` events are refused, and the error code. */
  refuseResponses: { times: number; code: string };
  /** The error code for the next `session.update`; null accepts it. */
  refuseConfiguration: string | null;
  deltasAfterCancel: boolean;
  duplicateCalls: boolean;
}

export interface EnginePorts {
  readonly environment: Environment;
  readonly url: URL;
  /** The audio generation speed as a multiple of playback speed; null for the protocol's default. */
  readonly speed: number | null;
  readonly faults: EngineFaults;
  /** Gemini: whether it reports where speech starts and ends. */
  readonly voiceActivity: boolean;
  /** The configuration that an ephemeral token fixed for this connection. */
  readonly preset: unknown;
  /** Returns the steps of the turn that starts now; null if it never responds and never ends. */
  nextTurn(cause: VoiceCause, instructions: string | null): readonly VoiceStep[] | null;
  beginReply(id: string, cause: VoiceCause): ReplyRecord;
  /** Sends an event; `text` is the event as JSON, if known. */
  send(event: object, text?: string): void;
  close(code: number, reason: string): void;
  /** Records a well-formed client frame. */
  received(frame: Omit<ReceivedFrame, 'at'>): void;
  /** The client's first configuration was accepted. */
  configured(): void;
}

export interface VoiceEngine {
  /** Handles the opening of the connection. */
  open(): void;
  /** Handles a client frame. Never throws. */
  receive(text: string): void;
  /** Handles the end of the connection: sends nothing more, and stops timers. */
  end(): void;

  userBegins(): void;
  /** Handles a piece of the user's words when the server hears it. */
  userSays(words: string): void;
  /** Handles the end of an utterance. `text`: all words; `rest`: the words that `userSays` has not received. */
  userEnds(text: string, rest: string, transcript: TranscriptTiming): void;

  /** Starts a model turn with these steps. */
  answers(steps: readonly VoiceStep[]): ReplyRecord;

  readonly heardMs: number;
  readonly instructions: string;
  readonly tools: readonly FakeTool[];
  readonly items: readonly FakeItem[];
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];

  /** Reports the end of the session as this protocol does, and closes. */
  expire(): void;
  /** Returns an event of a type that the protocol does not know. */
  unknownEvent(type: string): object;
  /** Faults of this protocol only; absent for others. */
  readonly goAway?: (timeLeftMs: number) => void;
  readonly cancelCalls?: (callIds?: readonly string[]) => void;
}
