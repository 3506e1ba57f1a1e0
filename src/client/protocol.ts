// The protocol between `offstage/client` and `offstage/serve`, version 1: the frames of both sides, and the validation
// of client frames. docs/client-protocol.md describes the protocol for other clients.
//
//   text frames     JSON, one frame each: `ClientFrame` up, `ServerFrame` down
//   binary frames   audio: a header of 8 bytes, then Int16 samples, little-endian, mono
//
// Owns:     the names and shapes of the frames, and their validation.
// Does not: open a connection (`line.ts`) or apply a change to the state (`session-state.ts`).
//
// Invariants
//   CLIENT-PROTOCOL-1. Validation never throws. It returns a new object that contains only the known fields.
//   CLIENT-PROTOCOL-2. No client frame states an identity: the server gets the client's identity from `authorize`.
//   CLIENT-PROTOCOL-3. A client ignores frames of unknown types; a server answers them with `refused`.

import type { SendRequest } from '../actors/contracts/service-types.ts';
import type { SessionCommand } from '../actors/contracts/session-command.ts';
import type { SessionEvent, SessionState } from '../actors/contracts/session-views.ts';

export const PROTOCOL_VERSION = 1;

/** The WebSocket subprotocol. A second subprotocol is the token: `TOKEN_PREFIX`, then the token in base64url. */
export const SUBPROTOCOL = 'offstage.v1';
export const TOKEN_PREFIX = 'offstage.token.';

/** The sample rate of the server's audio. */
export const SPEECH_RATE_HZ = 24_000;

export const MAX_TEXT_CHARS = 8_000;
const MAX_ID_CHARS = 200;
const MAX_PLAYED_MS = 86_400_000;
const MIN_RATE_HZ = 8_000;
const MAX_RATE_HZ = 48_000;

/** A client's position in the sequence of a server's frames. The server continues with the next frame. */
export interface Position {
  /** The id of one run of a server's session; `seq` counts within this run. */
  readonly epoch: string;
  readonly seq: number;
}

/** The first frame on every connection. `client` is a secret that identifies the client on all of its connections. */
export interface HelloFrame {
  readonly type: 'hello';
  readonly v: number;
  readonly client: string;
  readonly after?: Position;
}

/** The server sends a receipt with the same `id`, and executes each `id` only once. */
export type CommandFrame = SessionCommand & { readonly id: number };

/** A command from a client that executes tool calls. The server sends a receipt, as for a `CommandFrame`. */
export type CallFrame = CallCommand & { readonly id: number };

export type CallCommand =
  /** The client claims the call. */
  | { readonly type: 'call.claim'; readonly callId: string }
  /** The result of the call, or the reason why the client could not execute it. */
  | {
      readonly type: 'call.result';
      readonly callId: string;
      readonly output?: unknown;
      readonly error?: string;
    };

/** A tool call that the client may execute. */
export interface OfferedCall {
  readonly callId: string;
  /** The name of the tool. */
  readonly name: string;
  readonly input: unknown;
  readonly dueAt: number;
  /** Whether this client has claimed the call. */
  readonly own: boolean;
}

/** A frame that the server does not confirm with a receipt. */
export type NoticeFrame =
  /** The client can play audio, so the session speaks only to this client from now on. */
  | { readonly type: 'voice.take' }
  | { readonly type: 'voice.release' }
  /** The sample rate of the binary frames that follow. */
  | { readonly type: 'microphone'; readonly sampleRateHz: number }
  /** How much of an item has been played, measured from the start of the item. */
  | { readonly type: 'playout'; readonly itemId: string; readonly playedMs: number }
  /** The client has missed a frame and requests the complete state. */
  | { readonly type: 'resync' };

/**
 * Requests `pong`, to check that the server is reachable. The frame's text is exactly `PING`, so that a platform can
 * answer it while the server is asleep.
 */
export interface PingFrame {
  readonly type: 'ping';
}

export const PING = '{"type":"ping"}';
export const PONG = '{"type":"pong"}';

export type ClientFrame = HelloFrame | CommandFrame | CallFrame | NoticeFrame | PingFrame;

/** The lists in the state whose views are updated by patches. */
export type ViewList = 'transcript' | 'subagents' | 'questions' | 'deliveries';

/** The fields of a view that have changed. The client already has the other fields. */
export interface ViewPatch {
  readonly type: 'patch';
  readonly of: ViewList;
  readonly id: string;
  readonly set?: Readonly<Record<string, unknown>>;
  /** Texts to append to the current texts. */
  readonly append?: Readonly<Record<string, string>>;
  readonly unset?: readonly string[];
}

export type WireEvent = SessionEvent | ViewPatch;

/** A watcher may only read; an operator may also raise subagents' budgets. */
export type ClientRole = 'user' | 'watcher' | 'operator';

export type ServerFrame =
  /** The complete state after frame `seq`. */
  | {
      readonly type: 'welcome';
      readonly v: number;
      readonly epoch: string;
      readonly seq: number;
      /** The server's clock, in milliseconds since 1970. */
      readonly now: number;
      readonly sessionId: string;
      readonly user: string;
      readonly role: ClientRole;
      /** The maximum time between two frames of the server, in milliseconds. */
      readonly aliveMs: number;
      /** Whether the session has a voice and this connection can transport audio. */
      readonly hasVoice: boolean;
      /**
       * The id of the record that the server keeps of this client. A new id means that the server has lost its record,
       * including earlier receipts. If the connection is still open, the server sends all earlier receipts before this
       * frame.
       */
      readonly memory: string;
      /** The server sends no heartbeats, so the client sends `ping` after `aliveMs` of silence. */
      readonly isSilent?: boolean;
      readonly state: SessionState;
    }
  /** The client has missed no frame and continues from its position. */
  | {
      readonly type: 'resumed';
      readonly epoch: string;
      readonly seq: number;
      readonly now: number;
      readonly hasVoice: boolean;
      readonly memory: string;
    }
  /** `seq` is one higher than in the previous frame. */
  | {
      readonly type: 'events';
      readonly seq: number;
      readonly now: number;
      readonly events: readonly WireEvent[];
    }
  /**
   * The server's heartbeat, sent when it has sent no other frame for some time. A client that does not receive it
   * treats the connection as lost.
   */
  | { readonly type: 'alive'; readonly seq: number; readonly now: number }
  /** The response to `ping`. */
  | { readonly type: 'pong' }
  | { readonly type: 'receipt'; readonly id: number; readonly ok: true; readonly value: unknown }
  | {
      readonly type: 'receipt';
      readonly id: number;
      readonly ok: false;
      readonly code: string;
      readonly message: string;
    }
  /**
   * All calls that this client has claimed or may claim. A call that is missing from the list has ended or belongs to
   * another client.
   */
  | { readonly type: 'calls'; readonly calls: readonly OfferedCall[] }
  /** Whether the session speaks to this client and listens to its microphone. */
  | { readonly type: 'voice'; readonly own: boolean }
  /**
   * Binary frames with this `ref` contain audio of this item. The client does not report the playback of audio whose
   * `ref` is 0.
   */
  | { readonly type: 'audio.item'; readonly ref: number; readonly itemId: string }
  /** The server has refused the client's latest frame without an id. */
  | { readonly type: 'refused'; readonly code: string; readonly message: string }
  /** The last frame on a connection. `retry`: whether the client may reconnect, at `url` if it is set. */
  | {
      readonly type: 'bye';
      readonly code: string;
      readonly message: string;
      readonly retry: boolean;
      readonly url?: string;
    };

/** The body of a POST request in which a client without a WebSocket sends its frames. */
export interface PostedFrames {
  readonly client: string;
  readonly frames: readonly ClientFrame[];
}

type Check = (value: unknown) => boolean;

/** The session ignores longer values. */
const MAX_TRACEPARENT_CHARS = 512;

const isText =
  (maxChars: number): Check =>
  (value) =>
    typeof value === 'string' && value.length > 0 && value.length <= maxChars;
const isId = isText(MAX_ID_CHARS);
const isCallId = isText(1_000);
const isIdOrNull: Check = (value) => value === null || isId(value);
const isWords: Check = (value) => isText(MAX_TEXT_CHARS)(value) && String(value).trim() !== '';
const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isSerial: Check = (value) => isCount(value) && value !== 0;
const isBetween =
  (least: number, most: number): Check =>
  (value) =>
    typeof value === 'number' && value >= least && value <= most;
const isFlag: Check = (value) => typeof value === 'boolean';
const MODES: ReadonlySet<unknown> = new Set<SendRequest['mode']>(['queue', 'steer', 'interrupt']);
const isMode: Check = (value) => MODES.has(value);
const isAnything: Check = () => true;
const isAmount: Check = (value) => typeof value === 'number' && Number.isFinite(value);

type Shape = Readonly<Record<string, Check>>;

const isScope: Check = (value) => value === 'task' || value === 'session';

const position: Shape = { epoch: isId, seq: isCount };
const answers: readonly Shape[] = [
  { optionId: isId },
  { text: isWords },
  { approved: isFlag, 'input?': isAnything, 'lasts?': isScope },
];

const budget: Shape = {
  'tokens?': isAmount,
  'steps?': isAmount,
  'timeMs?': isAmount,
  'agents?': isAmount,
  'cost?': isAmount,
};

const offer: Shape = {
  callId: isCallId,
  name: isId,
  'input?': isAnything,
  dueAt: isAmount,
  own: isFlag,
};

const isOffer: Check = (value) => typeof fieldsOf(value, offer) === 'object';

const isLimits: Check = (value) => typeof fieldsOf(value, budget) === 'object';

const isAnswer: Check = (value) =>
  answers.some((shape) => typeof fieldsOf(value, shape) === 'object');

/** The fields of each frame. A name that ends in `?` is optional. */
const clientShapes: Readonly<Record<ClientFrame['type'], Shape>> = {
  hello: {
    v: isCount,
    client: isText(64),
    'after?': (value) => typeof fieldsOf(value, position) === 'object',
  },
  send: { id: isSerial, text: isWords, 'traceparent?': isText(MAX_TRACEPARENT_CHARS) },
  answer: { id: isSerial, requestId: isId, answer: isAnswer },
  cancel: { id: isSerial, subagentId: isId, 'reason?': isWords },
  message: { id: isSerial, subagentId: isId, text: isWords, 'mode?': isMode },
  raise: { id: isSerial, subagentId: isIdOrNull, limits: isLimits },
  dismiss: { id: isSerial, deliveryId: isId },
  shown: { id: isSerial, deliveryId: isId },
  'question.shown': { id: isSerial, requestId: isId },
  'call.claim': { id: isSerial, callId: isCallId },
  'call.result': {
    id: isSerial,
    callId: isCallId,
    'output?': isAnything,
    'error?': isText(MAX_TEXT_CHARS),
  },
  'voice.take': {},
  'voice.release': {},
  microphone: {
    sampleRateHz: (value) => Number.isInteger(value) && isBetween(MIN_RATE_HZ, MAX_RATE_HZ)(value),
  },
  playout: { itemId: isId, playedMs: isBetween(0, MAX_PLAYED_MS) },
  resync: {},
  ping: {},
};

const serverShapes: Readonly<Record<ServerFrame['type'], Shape>> = {
  welcome: {
    v: isCount,
    epoch: isId,
    seq: isCount,
    now: isCount,
    sessionId: isId,
    user: isId,
    role: isId,
    aliveMs: isSerial,
    hasVoice: isFlag,
    memory: isId,
    'isSilent?': isFlag,
    state: isState,
  },
  resumed: { epoch: isId, seq: isCount, now: isCount, hasVoice: isFlag, memory: isId },
  events: { seq: isCount, now: isCount, events: isEvents },
  alive: { seq: isCount, now: isCount },
  pong: {},
  receipt: {
    id: isSerial,
    ok: isFlag,
    'value?': isAnything,
    'code?': isId,
    'message?': isAnything,
  },
  calls: { calls: (value) => Array.isArray(value) && value.every(isOffer) },
  voice: { own: isFlag },
  'audio.item': { ref: isSerial, itemId: isId },
  refused: { code: isId, message: isAnything },
  bye: { code: isId, message: isAnything, retry: isFlag, 'url?': isText(2_000) },
};

/** Validates a client frame: returns the frame or the reason why it is invalid. */
export function readClientFrame(value: unknown): ClientFrame | string {
  return readFrame<ClientFrame>(value, clientShapes);
}

/**
 * Validates a server frame: returns the frame, null for an unknown type, or the reason why it is invalid. The fields of
 * events are not validated.
 */
export function readServerFrame(value: unknown): ServerFrame | string | null {
  const { type } = objectOf(value) ?? {};
  if (typeof type === 'string' && !Object.hasOwn(serverShapes, type)) return null;
  return readFrame<ServerFrame>(value, serverShapes);
}

/** Returns the frames in a POST, or the reason why the POST is invalid. */
export function readPostedFrames(value: unknown): PostedFrames | string {
  const fields = fieldsOf(value, { client: isText(64), frames: Array.isArray });
  if (typeof fields === 'string') return fields;
  const frames: ClientFrame[] = [];
  for (const each of fields['frames'] as readonly unknown[]) {
    const frame = readClientFrame(each);
    if (typeof frame === 'string') return frame;
    frames.push(frame);
  }
  return { client: String(fields['client']), frames };
}

/** Parses JSON; returns undefined for invalid text. */
export function valueOfJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function readFrame<Frame extends { readonly type: string }>(
  value: unknown,
  shapes: Readonly<Record<Frame['type'], Shape>>,
): Frame | string {
  const type = objectOf(value)?.['type'] as Frame['type'];
  if (typeof type !== 'string' || !Object.hasOwn(shapes, type))
    return `expected an object with one of the types ${Object.keys(shapes).join(', ')}`;
  const fields = fieldsOf(value, { type: isAnything, ...shapes[type] });
  return typeof fields === 'string' ? `${type}: ${fields}` : (fields as unknown as Frame);
}

/** Returns a copy that contains only the fields of the shape, or a message that names the first invalid field. */
function fieldsOf(value: unknown, shape: Shape): Readonly<Record<string, unknown>> | string {
  const given = objectOf(value);
  if (!given) return 'expected an object';
  const fields: Record<string, unknown> = {};
  for (const [name, check] of Object.entries(shape)) {
    const isOptional = name.endsWith('?');
    const key = isOptional ? name.slice(0, -1) : name;
    const field = Object.hasOwn(given, key) ? given[key] : undefined;
    if (field === undefined && isOptional) continue;
    if (!check(field)) return `the field \`${key}\` is missing or not as expected`;
    fields[key] = field;
  }
  for (const name of Object.keys(given))
    if (!Object.hasOwn(fields, name)) return `unknown field \`${name.slice(0, 40)}\``;
  return fields;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : null;
}

function isState(value: unknown): boolean {
  const state = objectOf(value);
  return (
    state !== null &&
    ['transcript', 'subagents', 'questions', 'deliveries', 'limits'].every((name) =>
      Array.isArray(state[name]),
    )
  );
}

function isEvents(value: unknown): boolean {
  return (
    Array.isArray(value) && value.every((each) => typeof objectOf(each)?.['type'] === 'string')
  );
}

/** A packet of audio. */
export interface SoundPacket {
  /** The `ref` of an `audio.item`; 0 for a client's audio and for audio whose playback is not reported. */
  readonly ref: number;
  readonly samples: Int16Array;
}

/** The kind of a binary frame, stored in its first byte. */
const SOUND = 1;
const HEADER_BYTES = 8;

/** Header: the kind, three zero bytes, then `ref` as an unsigned little-endian integer. */
export function encodeSound({ ref, samples }: SoundPacket): Uint8Array<ArrayBuffer> {
  const packet = new Uint8Array(HEADER_BYTES + samples.length * 2);
  const view = new DataView(packet.buffer);
  view.setUint8(0, SOUND);
  view.setUint32(4, ref, true);
  for (let index = 0; index < samples.length; index++)
    view.setInt16(HEADER_BYTES + index * 2, samples[index] ?? 0, true);
  return packet;
}

/** Parses a binary frame: returns the packet or the reason why it is invalid. */
export function decodeSound(bytes: Uint8Array): SoundPacket | string {
  const { byteLength } = bytes;
  if (byteLength <= HEADER_BYTES || byteLength % 2 === 1)
    return `expected a header of ${HEADER_BYTES} bytes and 16-bit samples, got ${byteLength} bytes`;
  const view = new DataView(bytes.buffer, bytes.byteOffset, byteLength);
  if (view.getUint8(0) !== SOUND) return 'expected the kind 1 in the first byte';
  const samples = new Int16Array((byteLength - HEADER_BYTES) / 2);
  for (let index = 0; index < samples.length; index++)
    samples[index] = view.getInt16(HEADER_BYTES + index * 2, true);
  return { ref: view.getUint32(4, true), samples };
}
