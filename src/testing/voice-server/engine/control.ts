// The interface through which a test controls the fake voice server. All three protocols use the same names, so one
// test (or conformance suite) can run on each of them.
//
// A server has connections. A connection is a `FakeVoiceModel` between the user and the client (an adapter or an
// official SDK). The model follows a script of steps. The test supplies the script (`model.answers`), or `respond`
// computes it for each turn. The `environment` of the server determines all times.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { WebSocketFactory } from '../../../adapters/socket/web-socket.ts';
import type { FakeFaults } from './fault-control.ts';

/** The protocols that the server speaks. The path of the URL selects one. */
export type VoiceWire = 'openai-realtime' | 'openai-live' | 'gemini-live';

/** One action of the model. The steps of a script run one after another. */
export type VoiceStep =
  /** Speaks: sends a transcript in pieces, and PCM16 audio for `durationMs` (by default 60 ms per character). */
  | { readonly say: string; readonly durationMs?: number }
  /**
   * Calls a tool by name. `arguments` is an object, or text as the model writes it. Gemini's protocol cannot represent
   * a text that is not a JSON object, so the turn then ends with `MALFORMED_FUNCTION_CALL`. OpenAI Live has no named
   * calls. There, a call becomes a delegation, like `delegate`.
   */
  | { readonly call: string; readonly arguments?: unknown; readonly callId?: string }
  /** Reports that an action is needed. Only OpenAI Live has such reports; other protocols ignore the step. */
  | { readonly delegate: true; readonly delegationId?: string }
  /** Pauses for this time, in milliseconds. */
  | { readonly waitMs: number }
  /** Pauses until the promise settles. */
  | { readonly until: Promise<unknown> }
  /** The response fails. Gemini then ends the turn silently, and Live reports an error. */
  | { readonly fail: string };

/** The cause of the model's turn. In each protocol, it is derived from the newest item of the conversation. */
export type VoiceCause =
  /** The user spoke. Empty if the transcript is unknown. */
  | { readonly type: 'utterance'; readonly text: string }
  /** A tool result has arrived, or a text for the delegation with the id `callId`. */
  | {
      readonly type: 'result';
      readonly callId: string;
      readonly name: string;
      /** Text in the OpenAI protocols, an object in Gemini's protocol. */
      readonly output: unknown;
    }
  /** The client has added a message that the model should speak about. */
  | {
      readonly type: 'message';
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
    }
  /** A response was requested although the conversation was empty, or the test requested a turn. */
  | { readonly type: 'nothing' };

/** A model turn. */
export interface VoiceTurn {
  /** The turn's cause. */
  readonly cause: VoiceCause;
  /** Instructions for this response only, if the protocol supports them; otherwise null. */
  readonly instructions: string | null;
  /** The turn's connection. */
  readonly model: FakeVoiceModel;
}

/**
 * Computes the model's steps for a turn. An empty script is a silent turn. With `null`, the model never responds and
 * the turn never ends (a silent model). It is called when the turn starts.
 */
export type VoiceResponder = (turn: VoiceTurn) => readonly VoiceStep[] | null;

/** When the user's transcript arrives. */
export type TranscriptTiming =
  /** Piece by piece; the last one arrives when the user has finished. Realtime sends all pieces right after the end. */
  | 'prompt'
  /** All pieces arrive before the user has finished. On Realtime, this is the same as `prompt`. */
  | 'early'
  /** Like `prompt`, but the last piece is repeated. */
  | 'duplicated'
  /** The transcript never arrives, so the text of the utterance stays unknown. */
  | 'none'
  /** The server reports that transcription failed. In a protocol without such a report, this is the same as `none`. */
  | 'failed'
  /** The transcript arrives this long after the user has finished, in milliseconds. */
  | { readonly lateMs: number };

/** How long the user speaks, and when the transcript arrives. */
export interface UserSpeech {
  /** The duration of the speech (`says` only). @defaultValue 60 ms per character */
  readonly durationMs?: number;
  /** @defaultValue 'prompt' */
  readonly transcript?: TranscriptTiming;
}

/** The user on one connection. */
export interface FakeUser {
  /** Whether the user is speaking. */
  readonly isSpeaking: boolean;
  /** The server hears that the user starts to speak. This has no effect if the user is already speaking. */
  begins(): void;
  /** The user has finished; `text` is what the user said. Also starts the speech if `begins` has not been called. */
  ends(text: string, speech?: Pick<UserSpeech, 'transcript'>): void;
  /** Starts to speak now and stops after `durationMs`. Resolves at the end of the speech. */
  says(text: string, speech?: UserSpeech): Promise<void>;
}

/** A frame as it was received from the client. */
export interface ReceivedFrame {
  /** The type of the event. In Gemini's protocol, this is the name of the only field, such as `toolResponse`. */
  readonly type: string;
  /** The whole event. In Gemini's protocol, this is the value of the only field. */
  readonly body: Readonly<Record<string, unknown>>;
  /** When it was received, according to the environment's clock. */
  readonly at: number;
}

/** A tool that the client has declared. */
export interface FakeTool {
  /** The name as the client sent it. */
  readonly name: string;
  /** The description as the client sent it. */
  readonly description: string;
  /** The parameters as the client wrote them, or null if it declared none. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
}

/** An item in the model's memory. Items are in the order of the conversation. */
export type FakeItem =
  | {
      readonly kind: 'message';
      /** The id in the protocol. Gemini's protocol has no ids, so the fake generates them. */
      readonly id: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /**
       * Where the text came from: `speech`, or the client event that added it (`conversation.item.create`,
       * `session.thinking.append`, `clientContent` …).
       */
      readonly via: string;
    }
  | {
      readonly kind: 'call';
      readonly id: string;
      readonly callId: string;
      readonly name: string;
      /** JSON text. */
      readonly arguments: string;
    }
  | {
      readonly kind: 'result';
      readonly id: string;
      readonly callId: string;
      readonly output: unknown;
      /** When the client wants the model to speak about the result, if the protocol has a field for this. */
      readonly scheduling: string | null;
    }
  | { readonly kind: 'image'; readonly id: string; readonly mediaType: string };

/** One turn of the model, during and after its generation. */
export interface FakeReply {
  /** The id in the protocol, or a generated one. */
  readonly id: string;
  /** The reply's cause. */
  readonly cause: VoiceCause;
  /** How the reply ended, or `in_progress`. */
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
  /** The text that the model has spoken so far. */
  readonly text: string;
  /** The duration of the audio that has been sent so far, in milliseconds. */
  readonly audioMs: number;
  /** Resolves when the turn ends for any reason. */
  readonly ended: Promise<void>;
}

/** A connection, as the model sees it. */
export interface FakeVoiceModel {
  /** The connection's protocol. */
  readonly wire: VoiceWire;
  /** The number of the connection; 1 for the first connection of the server. */
  readonly number: number;
  /** The requested URL. It contains the key if the client sent the key in the URL instead of in `headers`. */
  readonly url: URL;
  /** The headers of the upgrade request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the client is still connected. */
  readonly isOpen: boolean;
  /** Resolves with the close code when the connection is gone (1006: without a close frame). */
  readonly closed: Promise<number>;
  /** Resolves when the client's first configuration has been accepted. */
  readonly configured: Promise<void>;

  /** Speaks to the model on this connection. */
  readonly user: FakeUser;
  /** Breaks this connection, or makes its model fail or misbehave. */
  readonly faults: FakeFaults;

  /**
   * Makes the model take a turn with this script, either immediately or after the current turn.
   * @throws {ConfigurationError} `NOT_CONFIGURED` if the client has not configured the session yet
   */
  answers(...steps: VoiceStep[]): FakeReply;
  /**
   * The next turn that the model starts uses this script instead of `respond`. If this is called several times, the
   * scripts are used in the order of the calls.
   */
  willAnswer(...steps: VoiceStep[]): void;
  /** All turns, in order. */
  readonly replies: readonly FakeReply[];
  /** The turn that is being generated now. */
  readonly reply: FakeReply | null;

  /** All well-formed client frames except audio. */
  readonly received: readonly ReceivedFrame[];
  /** The duration of the audio that the client has sent, in milliseconds. */
  readonly heardMs: number;
  /**
   * Returns the next frame of this type, whether or not it has arrived yet. Never returns a frame twice.
   */
  next(type: string): Promise<ReceivedFrame>;
  /** The events that the server has sent, parsed and in order, except those that a fault has made malformed. */
  readonly sent: readonly Readonly<Record<string, unknown>>[];

  /** The instructions that are currently in effect. They are empty until the client has configured the session. */
  readonly instructions: string;
  /** The tools that the client has configured. */
  readonly tools: readonly FakeTool[];
  /** The items of the conversation, as stored by the server. */
  readonly items: readonly FakeItem[];
  /** The calls and delegations without a result, oldest first. */
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];
}

/** The options for `createVoiceServer`. */
export interface VoiceServerOptions {
  /** The source of time, ids and randomness. @see simulatedEnvironment for tests, nodeEnvironment for real sockets */
  readonly environment: Environment;
  /** @defaultValue `echoResponder` */
  readonly respond?: VoiceResponder;
  /** The key that clients must send. @defaultValue any non-empty key */
  readonly apiKey?: string;
  /**
   * How fast the model generates audio, as a multiple of the playback speed. `Infinity`: as fast as the event loop
   * allows. @defaultValue 4, or 1 with the Live protocol, whose model hears and speaks in real time
   */
  readonly speed?: number;
  /** The maximum duration of a connection, in milliseconds. @defaultValue unlimited */
  readonly maxConnectionMs?: number;
  /**
   * Gemini only: also reports where speech starts and ends (`voiceActivity`). Some projects do not receive these
   * reports.
   * @defaultValue false
   */
  readonly voiceActivity?: boolean;
  /** Whether `sent` and `received` are recorded. A benchmark turns this off. @defaultValue true */
  readonly keepFrames?: boolean;
  /** Called for each connection before its first frame, so that the test can set scripts and faults from the start. */
  readonly onConnection?: (model: FakeVoiceModel) => void;
}

/** The URL of a server that is listening. */
export interface VoiceServerAddress {
  /** The port that the server listens on. */
  readonly port: number;
  /** For example `http://127.0.0.1:4000`. Clients append `/v1` and so on. */
  readonly baseUrl: string;
  /** The base URL for sockets. */
  readonly urls: Readonly<Record<VoiceWire, string>>;
  /** The certificate that clients must trust, in PEM format; null without TLS. */
  readonly ca: string | null;
}

/** The options for a fake voice server's `listen()`. */
export interface ListenOptions {
  /** @defaultValue 0: any free port */
  readonly port?: number;
  /** `true`: uses a new self-signed certificate for 127.0.0.1. @defaultValue without TLS */
  readonly tls?: boolean | { readonly key: string; readonly cert: string };
}

/** The fake server: one responder, and any number of connections with any of the protocols. */
export interface VoiceServer {
  /** Creates in-memory sockets for an adapter's `webSocket` option, which use neither the network nor real time. */
  readonly webSocket: WebSocketFactory;
  /**
   * Also listens on 127.0.0.1, for clients that open real sockets. This may be called several times.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY` (`ws` is not installed) or `LISTEN_FAILED`
   */
  listen(options?: ListenOptions): Promise<VoiceServerAddress>;
  /** All connections in the order in which they arrived, including closed ones. */
  readonly connections: readonly FakeVoiceModel[];
  /** Returns the next connection that has not been returned yet. */
  nextConnection(): Promise<FakeVoiceModel>;
  /** Refuses the next upgrades with this HTTP status. @defaultValue once */
  refuseConnections(refusal: { readonly status: number; readonly times?: number }): void;
  /** Leaves the next upgrades unanswered. @defaultValue once */
  ignoreConnections(times?: number): void;
  /** Closes all connections and stops listening. */
  close(): Promise<void>;
}
