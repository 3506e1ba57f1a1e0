// The control of the fake voice server by a test. The names are the same for the three wires, so that one test (or
// one conformance suite) can run on each of them.
//
// A server has connections; a connection is one `FakeVoiceModel`, between the user and the client (an adapter, an
// official SDK). The model follows a script of steps, given by the test (`model.answers`) or computed by `respond`
// for each turn. All time is the time of the server's `environment`.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { WebSocketFactory } from '../../../adapters/socket/web-socket.ts';
import type { FakeFaults } from './fault-control.ts';

/** The wires that the server speaks; the path of the URL decides which. */
export type VoiceWire = 'openai-realtime' | 'openai-live' | 'gemini-live';

/** One action of the model. Steps of a script follow one another. */
export type VoiceStep =
  /** Speaks: transcript in pieces, and PCM16 audio of `durationMs`, or of 60 ms for each character. */
  | { readonly say: string; readonly durationMs?: number }
  /**
   * Calls a tool by name; `arguments` is an object, or text as the model writes it. Gemini's wire cannot carry a text
   * that is not a JSON object: the turn then ends with `MALFORMED_FUNCTION_CALL`. OpenAI Live has no named calls: a
   * call is a delegation there, like `delegate`.
   */
  | { readonly call: string; readonly arguments?: unknown; readonly callId?: string }
  /** Reports that an action is needed (OpenAI Live only; no effect on the other wires). */
  | { readonly delegate: true; readonly delegationId?: string }
  /** Pauses for this time, in milliseconds. */
  | { readonly waitMs: number }
  /** Pauses until this promise settles. */
  | { readonly until: Promise<unknown> }
  /** The response fails; Gemini ends the turn silently, Live reports an error. */
  | { readonly fail: string };

/** The cause of the model's turn, derived from the newest item of the conversation on each wire. */
export type VoiceCause =
  /** The user spoke. Empty if the words are not known. */
  | { readonly type: 'utterance'; readonly text: string }
  /** A tool result arrived, or text for a delegation, whose id is then `callId`. */
  | {
      readonly type: 'result';
      readonly callId: string;
      readonly name: string;
      /** Text on the OpenAI wires, an object on Gemini's. */
      readonly output: unknown;
    }
  /** The client added a message that the model is to speak about. */
  | {
      readonly type: 'message';
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
    }
  /** A response was requested in an empty conversation, or the test requested a turn. */
  | { readonly type: 'nothing' };

/** A turn of the model. */
export interface VoiceTurn {
  /** The cause of the turn. */
  readonly cause: VoiceCause;
  /** Instructions for this response only, if the wire has them; else null. */
  readonly instructions: string | null;
  /** The connection of the turn. */
  readonly model: FakeVoiceModel;
}

/**
 * Computes the steps of the model in a turn. An empty script is a silent turn; `null` is a turn that never answers
 * and never ends (a silent model). Called when the turn begins.
 */
export type VoiceResponder = (turn: VoiceTurn) => readonly VoiceStep[] | null;

/** When the user's transcript arrives. */
export type TranscriptTiming =
  /** Piece by piece, the last piece when the user has ended; Realtime sends all pieces right after the end. */
  | 'prompt'
  /** All pieces before the user has ended; on Realtime like `prompt`. */
  | 'early'
  /** Like `prompt`, with the last piece a second time. */
  | 'duplicated'
  /** Never: the words stay unknown. */
  | 'none'
  /** The wire reports that transcription failed; like `none` on a wire without such a report. */
  | 'failed'
  /** The delay after the user has ended, in milliseconds, regardless of other events. */
  | { readonly lateMs: number };

/** The duration of the user's speech, and the arrival of the transcript. */
export interface UserSpeech {
  /** The duration of the speech (`says` only). @defaultValue 60 ms for each character */
  readonly durationMs?: number;
  /** @defaultValue 'prompt' */
  readonly transcript?: TranscriptTiming;
}

/** The user in front of one connection. */
export interface FakeUser {
  /** Whether the user speaks now. */
  readonly isSpeaking: boolean;
  /** The server hears the user begin to speak. No effect while the user speaks. */
  begins(): void;
  /** The user has ended; `text` has the words. Also begins the speech if `begins` was not called. */
  ends(text: string, speech?: Pick<UserSpeech, 'transcript'>): void;
  /** Begins now and ends after `durationMs`; resolves at the end. */
  says(text: string, speech?: UserSpeech): Promise<void>;
}

/** A frame of the client, as received. */
export interface ReceivedFrame {
  /** The event type; on Gemini's wire the name of the one field, such as `toolResponse`. */
  readonly type: string;
  /** The whole event; on Gemini's wire the value of that field. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The time of receipt, by the clock of the environment. */
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

/** An item of the model's memory, in the order of the conversation. */
export type FakeItem =
  | {
      readonly kind: 'message';
      /** The id of the wire; generated by the fake for Gemini's wire, which has no ids. */
      readonly id: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /**
       * The origin of the words: `speech`, or the event of the client that added them
       * (`conversation.item.create`, `session.thinking.append`, `clientContent` …).
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
      /** The client's scheduling of the spoken reaction, if the wire has a field for it. */
      readonly scheduling: string | null;
    }
  | { readonly kind: 'image'; readonly id: string; readonly mediaType: string };

/** One turn of the model, during and after its generation. */
export interface FakeReply {
  /** The id of the wire, or a generated one. */
  readonly id: string;
  /** The cause of the reply. */
  readonly cause: VoiceCause;
  /** The end of the reply, or `in_progress`. */
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
  /** The words so far. */
  readonly text: string;
  /** The audio that was sent so far, in milliseconds. */
  readonly audioMs: number;
  /** Resolves when the turn is over, for any reason. */
  readonly ended: Promise<void>;
}

/** One connection, seen from the model. */
export interface FakeVoiceModel {
  /** The wire of the connection. */
  readonly wire: VoiceWire;
  /** 1 for the first connection of the server. */
  readonly number: number;
  /** The requested URL. The key is in it or in `headers`, as it was sent. */
  readonly url: URL;
  /** The headers of the request that opened the socket. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the client is still connected. */
  readonly isOpen: boolean;
  /** Resolves when the connection is gone, with its close code (1006: without a close frame). */
  readonly closed: Promise<number>;
  /** Resolves when the client's first configuration was accepted. */
  readonly configured: Promise<void>;

  readonly user: FakeUser;
  readonly faults: FakeFaults;

  /**
   * Makes the model take a turn with this script now, or after the turn that is being generated.
   * @throws {ConfigurationError} `NOT_CONFIGURED` before the client configured the session
   */
  answers(...steps: VoiceStep[]): FakeReply;
  /**
   * The next turn that the wire begins uses this script instead of `respond`. Repeated calls queue: first in, first
   * out.
   */
  willAnswer(...steps: VoiceStep[]): void;
  /** Every turn, in order. */
  readonly replies: readonly FakeReply[];
  /** The turn that is being generated. */
  readonly reply: FakeReply | null;

  /** Every well-formed frame of the client except audio. */
  readonly received: readonly ReceivedFrame[];
  /** The audio that the client sent, in milliseconds. */
  readonly heardMs: number;
  /** Returns the next frame of this type, past or future; each is returned once for each type. */
  next(type: string): Promise<ReceivedFrame>;
  /** Events that the server sent, parsed, in order; without those that a fault made malformed. */
  readonly sent: readonly Readonly<Record<string, unknown>>[];

  /** The instructions in force. Empty before the client configured the session. */
  readonly instructions: string;
  /** The tools that the client has configured. */
  readonly tools: readonly FakeTool[];
  /** The items of the conversation, as the server keeps them. */
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
  /** The key that clients must present. @defaultValue any key that is not empty */
  readonly apiKey?: string;
  /**
   * The speed at which the model's audio is generated, as a multiple of the playing speed. `Infinity`: as fast as the
   * event loop turns. @defaultValue 4; 1 on the Live wire, whose model hears and speaks in real time
   */
  readonly speed?: number;
  /** The longest duration of a connection, in milliseconds. @defaultValue without a limit */
  readonly maxConnectionMs?: number;
  /**
   * Gemini only: also reports where speech begins and ends (`voiceActivity`), which some projects do not get.
   * @defaultValue false
   */
  readonly voiceActivity?: boolean;
  /** Whether `sent` and `received` are recorded; a benchmark switches it off. @defaultValue true */
  readonly keepFrames?: boolean;
  /** Called for each connection before its first frame, to set scripts and faults from the start. */
  readonly onConnection?: (model: FakeVoiceModel) => void;
}

/** The URL of a listening server. */
export interface VoiceServerAddress {
  /** The port that the server listens on. */
  readonly port: number;
  /** For example `http://127.0.0.1:4000`; clients add `/v1` and so on. */
  readonly baseUrl: string;
  /** The addresses of the sockets. */
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

/** The fake server: one responder, any number of connections on any of the wires. */
export interface VoiceServer {
  /** Sockets in memory, for the `webSocket` option of an adapter: no network, no real time. */
  readonly webSocket: WebSocketFactory;
  /**
   * Also listens on 127.0.0.1, for clients that open real sockets. May be called more than once.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY` (`ws` is not installed) or `LISTEN_FAILED`
   */
  listen(options?: ListenOptions): Promise<VoiceServerAddress>;
  /** All connections in the order of arrival, including closed ones. */
  readonly connections: readonly FakeVoiceModel[];
  /** Returns the next connection that was not yet returned. */
  nextConnection(): Promise<FakeVoiceModel>;
  /** Refuses the next upgrades with this HTTP status. @defaultValue once */
  refuseConnections(refusal: { readonly status: number; readonly times?: number }): void;
  /** Leaves the next upgrades without an answer. @defaultValue once */
  ignoreConnections(times?: number): void;
  /** Ends every connection and every listening port. */
  close(): Promise<void>;
}
