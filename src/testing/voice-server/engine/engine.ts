// The fake server's engine for one protocol and one client. It handles the client's frames, keeps the model's memory
// and sends the events that the real server would send. It does not use a socket. Its time and ids come from the
// environment.

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

/** The faults that the engine itself applies. */
export interface EngineFaults {
  /** No turn starts. */
  silence: boolean;
  /** How many more `response.create` events are refused, and the error code for this. */
  refuseResponses: { times: number; code: string };
  /** The error code for the next `session.update`, or null to accept it. */
  refuseConfiguration: string | null;
  deltasAfterCancel: boolean;
  duplicateCalls: boolean;
}

export interface EnginePorts {
  readonly environment: Environment;
  readonly url: URL;
  /** The speed of audio generation as a multiple of the playback speed, or null for the protocol's default. */
  readonly speed: number | null;
  readonly faults: EngineFaults;
  /** Gemini: whether the server reports where speech starts and ends. */
  readonly voiceActivity: boolean;
  /** The configuration that an ephemeral token prescribes for this connection. */
  readonly preset: unknown;
  /** Returns the steps of the turn that is starting, or null if the turn never responds and never ends. */
  nextTurn(cause: VoiceCause, instructions: string | null): readonly VoiceStep[] | null;
  beginReply(id: string, cause: VoiceCause): ReplyRecord;
  /** Sends an event. `text` is the event as JSON, if it is known. */
  send(event: object, text?: string): void;
  close(code: number, reason: string): void;
  /** Records a well-formed frame from the client. */
  received(frame: Omit<ReceivedFrame, 'at'>): void;
  /** Called when the client's first configuration has been accepted. */
  configured(): void;
}

export interface VoiceEngine {
  /** Handles the opening of the connection. */
  open(): void;
  /** Handles a frame from the client. Never throws. */
  receive(text: string): void;
  /** Handles the end of the connection: stops sending events and stops its timers. */
  end(): void;

  userBegins(): void;
  /** Handles a piece of the user's speech at the time when the server hears it. */
  userSays(words: string): void;
  /** Handles the end of an utterance. `text`: the whole utterance; `rest`: what `userSays` has not received. */
  userEnds(text: string, rest: string, transcript: TranscriptTiming): void;

  /** Starts a turn of the model with these steps. */
  answers(steps: readonly VoiceStep[]): ReplyRecord;

  readonly heardMs: number;
  readonly instructions: string;
  readonly tools: readonly FakeTool[];
  readonly items: readonly FakeItem[];
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];

  /** Reports the end of the session as this protocol does, and closes the connection. */
  expire(): void;
  /** Returns an event whose type the protocol does not know. */
  unknownEvent(type: string): object;
  /** Faults that only this protocol has; absent for the others. */
  readonly goAway?: (timeLeftMs: number) => void;
  readonly cancelCalls?: (callIds?: readonly string[]) => void;
}
