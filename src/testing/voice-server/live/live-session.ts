// The session of one Live connection: its configuration, its timeline, and the memory of the model. Nearly
// all of it is fixed when it starts.

import { Refusal } from '../../../adapters/local-voice/wire-events.ts';
import { refusalOf } from '../../../adapters/local-voice/zod-refusal.ts';
import type { FakeItem } from '../engine/control.ts';
import { forkedSession, newSession } from './client-events.ts';
import type { SessionResource } from './official.ts';

const MAX_SESSION_S = 60 * 60;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type Resource = Mutable<SessionResource>;

/** The initial memory of a fork. */
export interface LiveMemory {
  readonly resource: SessionResource;
  readonly items: readonly FakeItem[];
}

export interface LiveSession {
  /** The session as the wire shows it. */
  readonly resource: Resource;
  readonly items: FakeItem[];
  /** The start time, by the clock of the environment. */
  readonly startedAt: number;
}

export interface NewSessionParts {
  readonly id: string;
  readonly now: number;
  readonly newItemId: () => string;
}

/** @throws {Refusal} */
export function startSession(given: unknown, { id, now, newItemId }: NewSessionParts): LiveSession {
  const checked = newSession.safeParse(given);
  if (!checked.success) throw refusalOf(checked.error, given, 'session');
  const { audio, delegation, input = [], instructions, model, store = false } = checked.data;
  const resource: Resource = {
    id,
    status: 'active',
    expires_at: Math.floor(now / 1000) + MAX_SESSION_S,
    model,
    instructions: instructions ?? '',
    audio: {
      format: audio?.format ?? { type: 'audio/pcm', rate: 24_000 },
      output: { voice: audio?.output?.voice ?? 'marin' },
    },
    delegation: delegation ?? { type: 'client', acknowledgement_delay_ms: 0 },
    store,
  };
  const items = input.map((item): FakeItem => ({
    kind: 'message',
    id: item.id ?? newItemId(),
    role: item.role === 'developer' ? 'system' : item.role,
    text: item.content[0]?.text ?? '',
    via: 'session.start',
  }));
  return { resource, items, startedAt: now };
}

/** @throws {Refusal} */
export function forkSession(
  given: unknown,
  from: LiveMemory | null,
  { id, now }: NewSessionParts,
): LiveSession {
  if (from === null) {
    throw new Refusal('session_not_found', 'No stored session has this id.', 'session_id');
  }
  const checked = forkedSession.safeParse(given);
  if (!checked.success) throw refusalOf(checked.error, given, 'session');
  const { audio, store } = checked.data;
  const { resource, items } = from;
  return {
    resource: {
      ...resource,
      id,
      expires_at: Math.floor(now / 1000) + MAX_SESSION_S,
      audio: { ...resource.audio, ...(audio?.format !== undefined && { format: audio.format }) },
      store: store ?? resource.store,
    },
    items: [...items],
    startedAt: now,
  };
}
