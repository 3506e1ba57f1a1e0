// How a test controls the fake voice server. The names are the same for the three protocols, so that one test (or
// conformance suite) can run on each.
//
// A server has connections; a connection is a `FakeVoiceModel` between the user and the client (an adapter, an official
// SDK). The model follows a script of steps, given by the test (`model.answers`) or computed by `respond` for each
// turn. All time is that of the server's `environment`.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { WebSocketFactory } from '../../../adapters/socket/web-socket.ts';
import type { FakeFaults } from './fault-control.ts';

/** The protocols that the server speaks; the URL's path selects one. */
export type VoiceWire = 'openai-realtime' | 'openai-live' | 'gemini-live';

/** One action of the model. A script's steps run one after another. */
export type VoiceStep =
  /** Speaks: a transcript in pieces, and PCM16 audio of `durationMs`, or of 60 ms per character. */
  | { readonly say: string; readonly durationMs?: number }
  /**
   * Calls a tool by name; `arguments` is an object, or text as the model writes it. Gemini's protocol cannot represent
   * a text that is not a JSON object: the turn then ends with `MALFORMED_FUNCTION_CALL`. OpenAI Live has no named
   * calls: there, a call is a delegation, like `delegate`.
   */
  | { readonly call: string; readonly arguments?: unknown; readonly callId?: string }
  /** Reports that an action is needed (OpenAI Live only; no effect in the other protocols). */
  | { readonly delegate: true; readonly delegationId?: string }
  /** Pauses for this time, in milliseconds. */
  | { readonly waitMs: number }
  /** Pauses until this promise settles. */
  | { readonly until: Promise<unknown> }
  /** The response fails; Gemini ends the turn silently, Live reports an error. */
  | { readonly fail: string };

/** The cause of the model's turn, derived from the conversation's newest item in each protocol. */
export type VoiceCause =
  /** The user spoke. Empty if the words are unknown. */
  | { readonly type: 'utterance'; readonly text: string }
  /** A tool result arrived, or text for a delegation, whose id is then `callId`. */
  | {
      readonly type: 'result';
      readonly callId: string;
      readonly name: string;
      /** Text in the OpenAI protocols, an object in Gemini's. */
      readonly output: unknown;
    }
  /** The client added a message that the model should speak about. */
  | {
      readonly type: 'message';
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
    }
  /** A response was requested in an empty conversation, or the test requested a turn. */
  | { readonly type: 'nothing' };

/** A model turn. */
export interface VoiceTurn {
  /** The turn's cause. */
  readonly cause: VoiceCause;
  /** Instructions for this response only, if the protocol has them; otherwise null. */
  readonly instructions: string | null;
  /** The turn's connection. */
  readonly model: FakeVoiceModel;
}

/**
 * Computes the model's steps for a turn. An empty script is a silent turn; `null` is a turn that never responds and
 * never ends (a silent model). Called when the turn starts.
 */
export type VoiceResponder = (turn: VoiceTurn) => readonly VoiceStep[] | null;

/** When the user's transcript arrives. */
export type TranscriptTiming =
  /** Piece by piece, the last piece when the user has finished; Realtime sends all pieces right after the end. */
  | 'prompt'
  /** All pieces before the user has finished; on Realtime like `prompt`. */
  | 'early'
  /** Like `prompt`, with the last piece repeated. */
  | 'duplicated'
  /** Never: the words stay unknown. */
  | 'none'
  /** The server reports that transcription failed; like `none` in a protocol without such a report. */
  | 'failed'
  /** The delay after the user has finished, in milliseconds, regardless of other events. */
  | { readonly lateMs: number };

/** How long the user speaks, and when the transcript arrives. */
export interface UserSpeech {
  /** The speech duration (`says` only). @defaultValue 60 ms per character */
  readonly durationMs?: number;
  /** @defaultValue 'prompt' */
  readonly transcript?: TranscriptTiming;
}

/** The user of one connection. */
export interface FakeUser {
  /** Whether the user is speaking. */
  readonly isSpeaking: boolean;
  /** The server hears the user start to speak. No effect if the user is already speaking. */
  begins(): void;
  /** The user has finished; `text` contains the words. Also starts the speech if `begins` was not called. */
  ends(text: string, speech?: Pick<UserSpeech, 'transcript'>): void;
  /** Starts now and ends after `durationMs`; resolves at the end. */
  says(text: string, speech?: UserSpeech): Promise<void>;
}

/** A client frame, as received. */
export interface ReceivedFrame {
  /** The event type; in Gemini's protocol the name of the one field, such as `toolResponse`. */
  readonly type: string;
  /** The whole event; in Gemini's protocol the value of that field. */
  readonly body: Readonly<Record<string, unknown>>;
  /** When it was received, by the environment's clock. */
  readonly at: number;
}

/** A tool that the client declared. */
export interface FakeTool {
  /** The name that the client sent. */
  readonly name: string;
  /** The description that the client sent. */
  readonly description: string;
  /** The parameters as the client wrote them; null if it declared none. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
}

/** An item in the model's memory, in conversation order. */
export type FakeItem =
  | {
      readonly kind: 'message';
      /** The protocol's id; generated by the fake for Gemini's protocol, which has no ids. */
      readonly id: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /**
       * Where the words came from: `speech`, or the client event that added them (`conversation.item.create`,
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
      /** The client's scheduling of the spoken reaction, if the protocol has such a field. */
      readonly scheduling: string | null;
    }
  | { readonly kind: 'image'; readonly id: string; readonly mediaType: string };

/** One turn of the model, during and after its generation. */
export interface FakeReply {
  /** The protocol's id, or a generated one. */
  readonly id: string;
  /** The reply's cause. */
  readonly cause: VoiceCause;
  /** How the reply ended, or `in_progress`. */
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
  /** The words so far. */
  readonly text: string;
  /** The audio sent so far, in milliseconds. */
  readonly audioMs: number;
  /** Resolves when the turn ends, for any reason. */
  readonly ended: Promise<void>;
}

/** One connection from the model's point of view. */
export interface FakeVoiceModel {
  /** The connection's protocol. */
  readonly wire: VoiceWire;
  /** The connection number; 1 for the server's first connection. */
  readonly number: number;
  /** The requested URL. Contains the key if the client sent it there instead of in `headers`. */
  readonly url: URL;
  /** The headers of the upgrade request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the client is still connected. */
  readonly isOpen: boolean;
  /** Resolves when the connection is gone, with its close code (1006: without a close frame). */
  readonly closed: Promise<number>;
  /** Resolves when the client's first configuration has been accepted. */
  readonly configured: Promise<void>;

  readonly user: FakeUser;
  readonly faults: FakeFaults;

  /**
   * Makes the model take a turn with this script now, or after the current turn.
   * @throws {ConfigurationError} `NOT_CONFIGURED` if the client has not configured the session yet
   */
  answers(...steps: VoiceStep[]): FakeReply;
  /**
   * The next turn that the model starts uses this script instead of `respond`. Scripts of repeated calls queue up:
   * first in, first out.
   */
  willAnswer(...steps: VoiceStep[]): void;
  /** All turns, in order. */
  readonly replies: readonly FakeReply[];
  /** The turn that is being generated. */
  readonly reply: FakeReply | null;

  /** All well-formed client frames except audio. */
  readonly received: readonly ReceivedFrame[];
  /** The audio that the client sent, in milliseconds. */
  readonly heardMs: number;
  /** Returns the next frame of this type, past or future; each frame is returned once per type. */
  next(type: string): Promise<ReceivedFrame>;
  /** Events that the server sent, parsed, in order; without those that a fault made malformed. */
  readonly sent: readonly Readonly<Record<string, unknown>>[];

  /** The instructions in force. Empty before the client has configured the session. */
  readonly instructions: string;
  /** The tools that the client has configured. */
  readonly tools: readonly FakeTool[];
  /** The conversation items, as stored by the server. */
  readonly items: readonly FakeItem[];
  /** Calls and delegations without a result, oldest first. */
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];
}

/** The options of `createVoiceServer`. */
export interface VoiceServerOptions {
  /** Time, ids and randomness. @see simulatedEnvironment for tests, nodeEnvironment for real sockets */
  readonly environment: Environment;
  /** @defaultValue `echoResponder` */
  readonly respond?: VoiceResponder;
  /** The key that clients must present. @defaultValue any non-empty key */
  readonly apiKey?: string;
  /**
   * The generation speed of the model's audio, as a multiple of the playback speed. `Infinity`: as fast as the event
   * loop allows. @defaultValue 4; 1 with the Live protocol, whose model hears and speaks in real time
   */
  readonly speed?: number;
  /** The maximum duration of a connection, in milliseconds. @defaultValue unlimited */
  readonly maxConnectionMs?: number;
  /**
   * Gemini only: also reports where speech starts and ends (`voiceActivity`), which some projects do not receive.
   * @defaultValue false
   */
  readonly voiceActivity?: boolean;
  /** Whether `sent` and `received` are recorded; a benchmark turns this off. @defaultValue true */
  readonly keepFrames?: boolean;
  /** Called for each connection before its first frame, to set scripts and faults from the start. */
  readonly onConnection?: (model: FakeVoiceModel) => void;
}

/** The URL of a listening server. */
export interface VoiceServerAddress {
  /** The port that the server listens on. */
  readonly port: number;
  /** For example `http://127.0.0.1:4000`; clients append `/v1` and so on. */
  readonly baseUrl: string;
  /** The base URL of the sockets. */
  readonly urls: Readonly<Record<VoiceWire, string>>;
  /** The certificate to trust, in PEM; null without TLS. */
  readonly ca: string | null;
}

/** The options of a fake voice server's `listen()`. */
export interface ListenOptions {
  /** @defaultValue 0: any free port */
  readonly port?: number;
  /** `true`: with a new self-signed certificate for 127.0.0.1. @defaultValue without TLS */
  readonly tls?: boolean | { readonly key: string; readonly cert: string };
}

/** The fake server: one responder, any number of connections with any of the protocols. */
export interface VoiceServer {
  /** Sockets in memory, for an adapter's `webSocket` option: no network, no real time. */
  readonly webSocket: WebSocketFactory;
  /**
   * Also listens on 127.0.0.1, for clients that open real sockets. May be called several times.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY` (`ws` is not installed) or `LISTEN_FAILED`
   */
  listen(options?: ListenOptions): Promise<VoiceServerAddress>;
  /** All connections in order of arrival, including closed ones. */
  readonly connections: readonly FakeVoiceModel[];
  /** Returns the next connection that has not been returned yet. */
  nextConnection(): Promise<FakeVoiceModel>;
  /** Refuses the next upgrades with this HTTP status. @defaultValue once */
  refuseConnections(refusal: { readonly status: number; readonly times?: number }): void;
  /** Leaves the next upgrades unanswered. @defaultValue once */
  ignoreConnections(times?: number): void;
  /** Ends all connections and stops listening. */
  close(): Promise<void>;
}
