// The Live protocol without a socket. It contains schemas for the fields of server events that this package reads, and
// a builder for each client event. The builders are checked against the official union, because the server rejects
// unknown fields.
//
// One table lists each server event of the official union, either with a schema of the fields that are read or with the
// reason why the event is ignored. If the official union gains an event, compilation fails until the table lists it. A
// type test fails if a field that is read changes.

// The official types are used only for checks at compile time: `openai` is a development dependency, so no public
// declaration may depend on these types. They are used in `satisfies` and in checks that are not exported.
// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
import type { ForkClientEvent } from 'openai/resources/live/forks/forks';
// oxlint-disable-next-line offstage/import-direction -- types only; in no published declaration
import type {
  ClientEvent as LiveClientEvent,
  ServerEvent as LiveServerEvent,
} from 'openai/resources/live/live';
import { z } from 'zod';
import { parseEvent, type EventOf, type ParsedEvent } from '../socket/event-table.ts';

/** The role of a text: an instruction, knowledge (`thinking`), or words to say (`commentary`). */
export type AppendChannel = 'instructions' | 'thinking' | 'commentary';

/** A conversation message from before the session. */
export interface HistoryMessage {
  readonly role: 'developer' | 'user' | 'assistant';
  readonly text: string;
}

/** The settings that cannot change after the start. */
export interface SessionSettings {
  readonly model: string;
  readonly voice: string | { readonly id: string };
  readonly sampleRateHz: 16_000 | 24_000;
  readonly acknowledgementDelayMs?: number;
  readonly store: boolean;
}

/** A new session's first event, which contains the whole configuration. */
export function sessionStart(
  eventId: string,
  settings: SessionSettings,
  instructions: string,
  history: readonly HistoryMessage[],
) {
  const { model, voice, acknowledgementDelayMs, store } = settings;
  return {
    type: 'session.start',
    event_id: eventId,
    session: {
      model,
      instructions,
      audio: { format: audioFormat(settings), output: { voice } },
      delegation: {
        type: 'client',
        ...(acknowledgementDelayMs !== undefined && {
          acknowledgement_delay_ms: acknowledgementDelayMs,
        }),
      },
      ...(history.length > 0 && { input: history.map(inputItem) }),
      store,
    },
  } satisfies LiveClientEvent;
}

/** The first event of a session that resumes a stored session and inherits the rest of its configuration. */
export function forkStart(
  eventId: string,
  settings: Pick<SessionSettings, 'sampleRateHz' | 'store'>,
) {
  return {
    type: 'session.start',
    event_id: eventId,
    session: { audio: { format: audioFormat(settings) }, store: settings.store },
  } satisfies ForkClientEvent;
}

/**
 * Adds a text of at most 500 tokens. `delegationId`: the delegation that the text belongs to; null for the whole
 * session.
 */
export function append(
  eventId: string,
  channel: AppendChannel,
  content: string,
  delegationId: string | null,
) {
  return {
    type: `session.${channel}.append`,
    event_id: eventId,
    delegation_id: delegationId,
    content,
  } satisfies LiveClientEvent;
}

export function sessionClose(eventId: string) {
  return { type: 'session.close', event_id: eventId } satisfies LiveClientEvent;
}

/** Returns the JSON text of a `session.input_audio.append` frame. Base64 needs no escaping. */
export function audioAppendText(base64: string): string {
  return `{"type":"session.input_audio.append","audio":"${base64}"}`;
}

function audioFormat({ sampleRateHz }: Pick<SessionSettings, 'sampleRateHz'>) {
  return { type: 'audio/pcm' as const, rate: sampleRateHz };
}

function inputItem({ role, text }: HistoryMessage) {
  return role === 'assistant'
    ? { type: 'message' as const, role, content: [{ type: 'output_text' as const, text }] }
    : { type: 'message' as const, role, content: [{ type: 'input_text' as const, text }] };
}

const clientEventId = { client_event_id: z.string().nullish() } as const;

const words = {
  event_id: z.string(),
  delta: z.string(),
  start_ms: z.number(),
  end_ms: z.number(),
} as const;

const usage = z.object({ seconds: z.number() });

const serverEventTable = {
  'session.started': z.object({
    type: z.literal('session.started'),
    session: z.object({ id: z.string(), expires_at: z.number().nullish() }),
  }),
  'session.closed': z.object({
    type: z.literal('session.closed'),
    reason: z.string(),
    usage: usage.nullish(),
  }),
  error: z.object({
    type: z.literal('error'),
    ...clientEventId,
    error: z.object({
      type: z.string(),
      code: z.string().nullish(),
      message: z.string(),
      client_event_id: z.string().nullish(),
    }),
  }),

  'session.output_audio.delta': z.object({
    type: z.literal('session.output_audio.delta'),
    delta: z.string(),
  }),
  'session.output_transcript.delta': z.object({
    type: z.literal('session.output_transcript.delta'),
    ...words,
  }),
  'session.input_transcript.delta': z.object({
    type: z.literal('session.input_transcript.delta'),
    ...words,
  }),
  'session.delegation.created': z.object({
    type: z.literal('session.delegation.created'),
    delegation: z.object({ id: z.string(), target: z.string() }),
  }),
  'session.instructions.appended': z.object({
    type: z.literal('session.instructions.appended'),
    ...clientEventId,
  }),
  'session.thinking.appended': z.object({
    type: z.literal('session.thinking.appended'),
    ...clientEventId,
  }),
  'session.commentary.appended': z.object({
    type: z.literal('session.commentary.appended'),
    ...clientEventId,
  }),
  'session.usage.updated': z.object({ type: z.literal('session.usage.updated'), usage }),

  'session.updated': 'nothing of a client delegation is ever changed',
  'session.input_audio.muted': 'never asked for: a muted microphone sends silence',
  'session.input_audio.unmuted': 'never asked for: a muted microphone sends silence',
  'session.input_audio.append': 'sideband connections only',
  'session.output_audio.fixture.playing': 'no fixtures are played',
  'session.output_audio.fixture.played': 'no fixtures are played',
  'decision.event': 'delegation to Decisions only',
  'decision.item.created': 'delegation to Decisions only',
  'decision.item.deleted': 'delegation to Decisions only',
  'response.event': 'delegation to Responses only',
  info: 'notices on what a data channel may do, and this wire has none',
  'transport.dtmf.received': 'telephone (SIP) only',
  'transport.dtmf.send': 'telephone (SIP) only',
  'transport.dtmf.sent': 'telephone (SIP) only',
  'transport.ringing': 'telephone (SIP) only',
  'transport.answered': 'telephone (SIP) only',
  'transport.failed': 'telephone (SIP) only',
} satisfies Record<LiveServerEvent['type'], z.ZodType | string>;

/** A server event with only the fields that this package reads. */
export type ServerEvent = EventOf<typeof serverEventTable>;

/** Parses one text frame. Never throws. */
export function parseServerEvent(text: string): ParsedEvent<ServerEvent> {
  return parseEvent(serverEventTable, text);
}
