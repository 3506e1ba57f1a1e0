// What a test holds of the fake voice server: the same names for the three wires, so
// that one test (or one conformance suite) can be run on each of them.
//
// A server has connections; a connection is one `FakeVoiceModel`: the user on its one
// side, the model in its middle, the client (an adapter, an official SDK) on its other side.
// What the model does is a script of steps, given by hand (`model.answers`) or worked out
// by a `brain` for each turn. All time is the time of the server's `environment`.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { WebSocketFactory } from '../../../adapters/socket/web-socket.ts';
import type { FakeFaults } from './fault-control.ts';

/** The wires that the server speaks; the path of the address decides which. */
export type VoiceWire = 'openai-realtime' | 'openai-live' | 'gemini-live';

/** One thing that the model does. Steps of a script follow one another. */
export type VoiceStep =
  /** Speaks: transcript in pieces, and PCM16 sound of `durationMs`. @defaultValue 60 ms for each character */
  | { readonly say: string; readonly durationMs?: number }
  /**
   * Calls a tool by name; `arguments` is an object, or text as the model writes it. Gemini cannot
   * say a text that is no object in JSON: there the turn ends with `MALFORMED_FUNCTION_CALL`.
   * OpenAI Live has no named calls: there it delegates, like `delegate`.
   */
  | { readonly call: string; readonly arguments?: unknown; readonly callId?: string }
  /** Says that something is to be done (OpenAI Live only; nothing on the other wires). */
  | { readonly delegate: true; readonly delegationId?: string }
  /** Does nothing for so long, in milliseconds. */
  | { readonly waitMs: number }
  /** Does nothing until this settles. */
  | { readonly until: Promise<unknown> }
  /** The response fails; Gemini ends the turn without a word, Live reports an error. */
  | { readonly fail: string };

/** Why the model acts now. Derived from the newest thing in the conversation on each wire. */
export type VoiceCause =
  /** The user spoke. Empty where the words are not known. */
  | { readonly type: 'utterance'; readonly text: string }
  /** A tool result, or what was appended to a delegation, came. `callId` is the delegation's there. */
  | {
      readonly type: 'result';
      readonly callId: string;
      readonly name: string;
      /** Text on the OpenAI wires, an object on Gemini's. */
      readonly output: unknown;
    }
  /** The client added a message and wants it spoken of. */
  | {
      readonly type: 'message';
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
    }
  /** A response was asked for in an empty conversation, or the test acted by hand. */
  | { readonly type: 'nothing' };

/** A turn that the model is to take. */
export interface VoiceTurn {
  readonly cause: VoiceCause;
  /** Instructions for this response only, where the wire has such; else null. */
  readonly instructions: string | null;
  readonly model: FakeVoiceModel;
}

/**
 * Works out what the model does in a turn; an empty script is a turn without a word, `null` no answer
 * at all, for ever (a silent model). Called when the turn begins.
 */
export type VoiceBrain = (turn: VoiceTurn) => readonly VoiceStep[] | null;

/** When the words of the user arrive. */
export type TranscriptTiming =
  /** Piece by piece, the last when the user has ended; Realtime brings all of them right after the end. */
  | 'prompt'
  /** All of them before the user has ended; on Realtime like `prompt`. */
  | 'early'
  /** As `prompt`, and the last one comes a second time. */
  | 'duplicated'
  /** Never: what was said stays unknown. */
  | 'none'
  /** The wire says that it could not transcribe; `none` where it has no word for that. */
  | 'failed'
  /** So long after the user has ended, in milliseconds, whatever happened in between. */
  | { readonly lateMs: number };

export interface UserSpeech {
  /** How long the user speaks (`says` only). @defaultValue 60 ms for each character */
  readonly durationMs?: number;
  /** @defaultValue 'prompt' */
  readonly transcript?: TranscriptTiming;
}

/** The user in front of one connection. */
export interface FakeUser {
  readonly isSpeaking: boolean;
  /** The server hears that the user begins to speak. Nothing when already speaking. */
  begins(): void;
  /** The user has ended; `text` is what was said. Begins first where that was left out. */
  ends(text: string, speech?: Pick<UserSpeech, 'transcript'>): void;
  /** Begins now, ends after `durationMs`; resolves then. */
  says(text: string, speech?: UserSpeech): Promise<void>;
}

/** A frame of the client, as it came. */
export interface ReceivedFrame {
  /** The event type; on Gemini's wire the name of the one field, such as `toolResponse`. */
  readonly type: string;
  /** The whole event; on Gemini's wire the value of that field. */
  readonly body: Readonly<Record<string, unknown>>;
  /** By the clock of the environment. */
  readonly at: number;
}

/** A tool that the client declared. */
export interface FakeTool {
  readonly name: string;
  readonly description: string;
  /** As the client wrote it; null where it declared none. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
}

/** Something that the model remembers, in the order of the conversation. */
export type FakeItem =
  | {
      readonly kind: 'message';
      /** On Gemini's wire, which has no ids, of our own making. */
      readonly id: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /**
       * How it came: `speech`, or the event of the client that added it (`conversation.item.create`,
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
      /** What the client said of when it is to be spoken of, where the wire has a word for it. */
      readonly scheduling: string | null;
    }
  | { readonly kind: 'image'; readonly id: string; readonly mediaType: string };

/** One turn of the model, while it is made and after. */
export interface FakeReply {
  /** That of the wire, or of our own making. */
  readonly id: string;
  readonly cause: VoiceCause;
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
  /** What was said so far. */
  readonly text: string;
  /** Sound that was sent so far, in milliseconds. */
  readonly audioMs: number;
  /** Resolves when it is over, however. */
  readonly ended: Promise<void>;
}

/** One connection, from the inside. */
export interface FakeVoiceModel {
  readonly wire: VoiceWire;
  /** 1 for the first connection of the server. */
  readonly number: number;
  /** What the client asked for. The key is in it or in `headers`, as it was sent. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the client is still connected. */
  readonly isOpen: boolean;
  /** Resolves when the connection is gone, with its close code (1006: without a word). */
  readonly closed: Promise<number>;
  /** Resolves when the client's first configuration was accepted. */
  readonly configured: Promise<void>;

  readonly user: FakeUser;
  readonly faults: FakeFaults;

  /**
   * The model takes a turn of its own now, with this script; after the one that is in the making.
   * @throws {ConfigurationError} `NOT_CONFIGURED` before the client configured the session
   */
  answers(...steps: VoiceStep[]): FakeReply;
  /** The next turn that the wire begins uses this script and not the brain. May be called again: first in, first out. */
  willAnswer(...steps: VoiceStep[]): void;
  /** Every turn, in order. */
  readonly replies: readonly FakeReply[];
  /** The turn in the making. */
  readonly reply: FakeReply | null;

  /** Every well-formed frame of the client except sound. */
  readonly received: readonly ReceivedFrame[];
  /** Sound that the client sent, in milliseconds. */
  readonly heardMs: number;
  /** The next frame of this type, past or future; each is given out once for each type. */
  next(type: string): Promise<ReceivedFrame>;
  /** Events that the server sent, parsed, in order; what a fault made malformed is not among them. */
  readonly sent: readonly Readonly<Record<string, unknown>>[];

  /** What is in force. Empty before the client configured the session. */
  readonly instructions: string;
  readonly tools: readonly FakeTool[];
  readonly items: readonly FakeItem[];
  /** Calls and delegations that no result answered yet, oldest first. */
  readonly openCalls: readonly { readonly callId: string; readonly name: string }[];
}

export interface VoiceServerOptions {
  /** Time, ids and chance. @see simulatedEnvironment for tests, nodeEnvironment for real sockets */
  readonly environment: Environment;
  /** @defaultValue `echoBrain` */
  readonly brain?: VoiceBrain;
  /** The key that clients must present. @defaultValue any key that is not empty */
  readonly apiKey?: string;
  /**
   * How many times faster than it plays the sound of the model is made. `Infinity`: as fast as the
   * event loop turns. @defaultValue 4; 1 on the Live wire, whose model hears and speaks in real time
   */
  readonly speed?: number;
  /** So long a connection may last, in milliseconds. @defaultValue without a limit */
  readonly maxConnectionMs?: number;
  /**
   * Gemini only: also says where speech begins and ends (`voiceActivity`), which not every
   * project gets. @defaultValue false
   */
  readonly voiceActivity?: boolean;
  /** Whether `sent` and `received` are kept; a benchmark does without. @defaultValue true */
  readonly keepFrames?: boolean;
  /** Called for each connection before its first frame: scripts and faults that must be there from the start. */
  readonly onConnection?: (model: FakeVoiceModel) => void;
}

/** Where a listening server is. */
export interface VoiceServerAddress {
  readonly port: number;
  /** Such as `http://127.0.0.1:4000`; clients add `/v1` and so on. */
  readonly baseUrl: string;
  /** The addresses of the sockets. */
  readonly urls: Readonly<Record<VoiceWire, string>>;
  /** The certificate to trust, in PEM; null without TLS. */
  readonly ca: string | null;
}

export interface ListenOptions {
  /** @defaultValue 0: any free port */
  readonly port?: number;
  /** `true`: with a self-signed certificate for 127.0.0.1 made now. @defaultValue without TLS */
  readonly tls?: boolean | { readonly key: string; readonly cert: string };
}

/** The fake server: one brain, any number of connections on any of the wires. */
export interface VoiceServer {
  /** Sockets in memory, for the `webSocket` option of an adapter: no network, no real time. */
  readonly webSocket: WebSocketFactory;
  /**
   * Also listens on 127.0.0.1, for clients that open real sockets. May be called more than once.
   * @throws {ConfigurationError} `MISSING_DEPENDENCY` (`ws` is not installed) or `LISTEN_FAILED`
   */
  listen(options?: ListenOptions): Promise<VoiceServerAddress>;
  /** In the order of their coming, closed ones included. */
  readonly connections: readonly FakeVoiceModel[];
  /** The next connection that was not given out yet. */
  nextConnection(): Promise<FakeVoiceModel>;
  /** Refuses the next upgrades with this HTTP status. @defaultValue once */
  refuseConnections(refusal: { readonly status: number; readonly times?: number }): void;
  /** Leaves the next upgrades without an answer. @defaultValue once */
  ignoreConnections(times?: number): void;
  /** Ends every connection and every listening port. */
  close(): Promise<void>;
}
