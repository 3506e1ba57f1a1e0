// The protocol between page and server on the WebSocket `/client`.
//
//   text frames    JSON, one message each: the page's are checked with `clientMessageSchema`
//   binary frames  page → server: Int16 samples, little-endian, mono, at the rate that
//                  `microphone.open` announced; server → page: see audio-packet.ts
//
// The page imports only types from here: it trusts its own server.

import { z } from 'zod';
import type {
  AnswerReceipt,
  SessionEvent,
  SessionState,
} from '../../../src/actors/contracts/session-views.ts';

/** Names the protocol when the WebSocket is opened; a second one, `token.<token>`, proves who asks. */
export const SUBPROTOCOL = 'offstage-demo';
export const TOKEN_PREFIX = 'token.';

export const MAX_TEXT_CHARS = 2000;

const id = z.string().min(1).max(200);

export const clientMessageSchema = z.discriminatedUnion('type', [
  /** The page can play sound: from now on the session speaks to it, and to no other page. */
  z.strictObject({ type: z.literal('client.attach') }),
  /** Binary frames that follow have this rate. */
  z.strictObject({
    type: z.literal('microphone.open'),
    sampleRateHz: z.number().int().min(8000).max(48_000),
  }),
  z.strictObject({
    type: z.literal('text.send'),
    text: z.string().trim().min(1).max(MAX_TEXT_CHARS),
  }),
  z.strictObject({
    type: z.literal('question.answer'),
    requestId: id,
    answer: z.union([
      z.strictObject({ optionId: id }),
      z.strictObject({ text: z.string().trim().min(1).max(MAX_TEXT_CHARS) }),
      z.strictObject({ approved: z.boolean() }),
    ]),
  }),
  /** The question's card is on the screen. */
  z.strictObject({ type: z.literal('question.shown'), requestId: id }),
  /** The words of a result or notice are on the screen. */
  z.strictObject({ type: z.literal('delivery.shown'), deliveryId: id }),
  z.strictObject({ type: z.literal('delivery.dismiss'), deliveryId: id }),
  z.strictObject({ type: z.literal('subagent.cancel'), subagentId: id }),
  /** So much of an item has left the speaker. */
  z.strictObject({
    type: z.literal('playout.report'),
    itemId: id,
    playedMs: z.number().min(0).max(86_400_000),
  }),
]);

export type ClientMessage = z.infer<typeof clientMessageSchema>;

/** The models behind the page, in words. */
export interface About {
  /** As in `TRANSPORT`. */
  readonly transport: string;
  /** The model that leads. */
  readonly lead: string;
  readonly subagents: string;
  readonly speech: string;
  /** `POST /crash` kills the server. */
  readonly canCrash?: boolean;
}

/** Something to try: `say` is said or typed, `run` is run in a terminal. */
export interface Suggestion {
  readonly title: string;
  readonly hint: string;
  readonly say?: string;
  readonly run?: string;
}

/** The arguments of a lead agent's tool call. */
export interface CallInput {
  readonly callId: string;
  readonly input: unknown;
}

export type ServerMessage =
  /** First on every connection: all that there is. `now` is the server's clock, in milliseconds since 1970. */
  | {
      readonly type: 'welcome';
      readonly now: number;
      readonly state: SessionState;
      readonly calls: readonly CallInput[];
      readonly about: About;
      readonly suggestions: readonly Suggestion[];
    }
  | { readonly type: 'session.event'; readonly now: number; readonly event: SessionEvent }
  /** Whether this page is the one that speaks and listens. */
  | { readonly type: 'voice.owner'; readonly own: boolean }
  /** Audio packets with this `ref` belong to this item. */
  | { readonly type: 'audio.item'; readonly ref: number; readonly itemId: string }
  | {
      readonly type: 'answer.receipt';
      readonly requestId: string;
      readonly receipt: AnswerReceipt;
    }
  /** The last message was refused; `message` says what was expected. */
  | { readonly type: 'client.error'; readonly code: string; readonly message: string };
