// The client events of the Live wire. Each builder is checked against the official union: the server refuses
// unknown fields.

import type { ForkClientEvent, LiveClientEvent } from './official.ts';

/** How the model takes a text: as a rule, as knowledge, as words to say. */
export type AppendChannel = 'instructions' | 'thinking' | 'commentary';

/** A message of the conversation before the session began. */
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

/** The first event of a new session: the whole configuration. */
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

/** The first event of a session that resumes a stored one: the rest is inherited. */
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
 * Adds a text of at most 500 tokens. `delegationId`: the task that it belongs to; null: the whole session.
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

/** The frame of `session.input_audio.append`, as text: base64 needs no escaping. */
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
