// The messages of a bidirectional Twilio Media Stream (`<Connect><Stream>`): JSON in text frames. Source:
// twilio.com/docs/voice/media-streams/websocket-messages (November 2026); that Twilio refuses messages other
// than `media`, `mark` and `clear`, and binary frames: its errors 31924, 31950.
//
// Owns:     the shapes of the messages, both ways.
// Does not: know their order or meaning (twilio-call).

import { z } from 'zod';
import { ProtocolError } from '../../values/errors.ts';

const sid = z.string().min(1).max(64);
const inStream = { streamSid: sid };

const startSchema = z.object({
  event: z.literal('start'),
  ...inStream,
  start: z.object({
    accountSid: sid,
    callSid: sid,
    customParameters: z.record(z.string(), z.string()).default({}),
    mediaFormat: z.object({
      encoding: z.literal('audio/x-mulaw'),
      sampleRate: z.literal(8000),
      channels: z.literal(1),
    }),
  }),
});

const incomingSchema = z.discriminatedUnion('event', [
  z.object({ event: z.literal('connected') }),
  startSchema,
  z.object({
    event: z.literal('media'),
    ...inStream,
    // A unidirectional stream also names its other track; a bidirectional one has only this.
    media: z.object({ track: z.string().default('inbound'), payload: z.base64() }),
  }),
  z.object({
    event: z.literal('dtmf'),
    ...inStream,
    dtmf: z.object({ digit: z.string().regex(/^[0-9*#A-D]$/) }),
  }),
  z.object({ event: z.literal('mark'), ...inStream, mark: z.object({ name: z.string() }) }),
  z.object({ event: z.literal('stop'), ...inStream }),
]);

const events: ReadonlySet<unknown> = new Set(
  incomingSchema.options.map(({ shape }) => shape.event.value),
);

/** A message of Twilio. */
export type IncomingMessage = z.output<typeof incomingSchema>;
export type StartMessage = z.output<typeof startSchema>;

/** A message to Twilio. */
export type OutgoingMessage =
  | { readonly event: 'media'; readonly media: { readonly payload: string } }
  /** Returned when all sound before it was played or cleared. */
  | { readonly event: 'mark'; readonly mark: { readonly name: string } }
  /** Drops the sound that was sent and is not played. */
  | { readonly event: 'clear' };

/**
 * Returns the message of this text; null for an unknown and irrelevant kind.
 * @throws {ProtocolError} `INVALID_MESSAGE`
 */
export function readMessage(text: string): IncomingMessage | null {
  const raw = fromJson(text);
  const event = (raw as { event?: unknown } | null | undefined)?.event;
  if (typeof event === 'string' && !events.has(event)) return null;
  const parsed = incomingSchema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw new ProtocolError(
    'INVALID_MESSAGE',
    `Expected a message of Twilio Media Streams. ${z.prettifyError(parsed.error)}`,
    { raw },
  );
}

/** Returns the value of JSON text; undefined, which matches no schema, for any other text. */
function fromJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
