// The fake of the OpenAI Live server with client delegation. The model hears and speaks at the same time and decides
// when to speak. The protocol has no turns and no responses, a delegation contains no task, and no event reports that
// audio was heard.
//
// Owns:     the session (its configuration, timeline and memory, most of which is fixed at the start), its audio
//           formats, delegations and their acknowledgements, and the choice of the next turn.
// Does not: define the schemas (`client-events.ts`) or run the script of a turn (`turn-queue.ts`).

import { Refusal } from '../../../adapters/local-voice/wire-events.ts';
import { messageOf } from '../../../values/errors.ts';
import type { FakeItem, VoiceCause } from '../engine/control.ts';
import type { EnginePorts, VoiceEngine } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/reply-record.ts';
import type { ResumeStore } from '../engine/resume-store.ts';
import type { SpeechPiece } from '../engine/sound.ts';
import { timersOf } from '../engine/timers.ts';
import { turnQueue } from '../engine/turn-queue.ts';
import { bringLastWords } from '../engine/user-words.ts';
import {
  parseLiveFrame,
  type LiveClientEvent,
  newSession,
  forkedSession,
} from './client-events.ts';
import type { ServerEvent, SessionResource } from './official.ts';
import type { Scheduler } from '../../../actors/ports/environment.ts';
import { decodePcm16Base64, encodePcm16Base64 } from '../../../voice/audio/pcm16.ts';
import { tone } from '../engine/sound.ts';
import { refusalOf } from '../../../adapters/local-voice/zod-refusal.ts';
type EventOf<Type extends LiveClientEvent['type']> = Extract<LiveClientEvent, { type: Type }>;
type AppendEvent = EventOf<
  'session.instructions.append' | 'session.thinking.append' | 'session.commentary.append'
>;
type WithoutId<Event> = Event extends { event_id: string } ? Omit<Event, 'event_id'> : never;

const FORK_PATH = /\/sessions\/([^/]+)\/fork\/?$/;
const ACKNOWLEDGEMENT = 'One moment.';
/** The model speaks a postponed message this long after the user has finished. */
const POSTPONED_MS = 2000;
const MAX_FIXTURE_MS = 30_000;
const FIXTURE_RATE_HZ = 24_000;
const CLOSE_NORMAL = 1000;
const CLOSE_REFUSED = 1008;

export function liveEngine(ports: EnginePorts, stored: ResumeStore<LiveMemory>): VoiceEngine {
  let live: LiveSession | null = null;
  let heardMs = 0;
  let isMuted = false;
  let isPlayingFixture = false;
  /** The track contains speech up to this position on the timeline. */
  let soundsUntilMs = 0;
  /**
   * The messages that the model had read, but not spoken about, when the user started to speak. It speaks about them
   * after it has answered the user.
   */
  const unspoken: VoiceCause[] = [];
  /** The position on the timeline at which the current utterance started. */
  let spokenFromMs = 0;
  const usage = (): { seconds: number } => ({ seconds: Math.round(nowMs() / 1000) });
  const delegations = delegationsOf(ports.environment.scheduler);
  const timers = timersOf(ports.environment.scheduler);
  const turns = turnQueue(ports, {
    // A duplex model speaks in real time.
    speed: ports.speed ?? 1,
    piece: speak,
    call: ({ call, callId }) => delegate(call, callId),
    delegate: (delegationId) => delegate('', delegationId),
    fail: (message) => refuse(new Refusal('server_error', message), null),
    generated: () => 0,
    ended: endTurn,
  });

  function userSays(words: string): void {
    if (isMuted || live === null) return;
    const startMs = spokenFromMs;
    spokenFromMs = nowMs();
    emit({
      type: 'session.input_transcript.delta',
      delta: words,
      start_ms: startMs,
      end_ms: nowMs(),
    });
  }

  function handle(event: LiveClientEvent, ack: { client_event_id?: string }): void {
    if (event.type === 'session.start') return start(event, ack);
    const session = live;
    if (session === null) {
      throw new Refusal('session_not_started', 'The first event must be session.start.', 'type');
    }
    switch (event.type) {
      case 'session.update':
        return update(session, event, ack);
      case 'session.input_audio.append':
        return hear(session, event);
      case 'session.input_audio.mute':
        isMuted = true;
        return emit({ type: 'session.input_audio.muted', ...ack });
      case 'session.input_audio.unmute':
        isMuted = false;
        return emit({ type: 'session.input_audio.unmuted', ...ack });
      case 'session.instructions.append':
      case 'session.thinking.append':
      case 'session.commentary.append':
        return append(event, ack);
      case 'session.output_audio.fixture.play':
        return playFixture(event.audio, ack);
      case 'session.close':
        return closeSession('close_requested', ack);
    }
  }

  /** Counts the user's audio, because input and output are two tracks of the same length. */
  function hear({ resource }: LiveSession, { audio }: EventOf<'session.input_audio.append'>): void {
    const durationMs = lengthOf(audio, resource);
    heardMs += durationMs;
    if (isPlayingFixture || nowMs() < soundsUntilMs) return;
    const delta = silenceOf(durationMs, resource);
    ports.send({ type: 'session.output_audio.delta', delta } satisfies ServerEvent);
  }

  function start(
    { session: given }: EventOf<'session.start'>,
    ack: { client_event_id?: string },
  ): void {
    if (live !== null) {
      throw new Refusal('session_already_started', 'The session has started already.', 'type');
    }
    const { clock, ids } = ports.environment;
    const parts = {
      id: ids.next('live'),
      now: clock.now(),
      newItemId: () => ids.next('item'),
    };
    const forked = FORK_PATH.exec(ports.url.pathname)?.[1];
    if (forked !== undefined && stored.find(forked) === null) {
      refuse(new Refusal('session_not_found', 'No stored session has this id.'), null);
      ports.close(CLOSE_REFUSED, 'session_not_found');
      return;
    }
    const session =
      forked === undefined
        ? startSession(given, parts)
        : forkSession(given, stored.find(forked), parts);
    live = session;
    if (session.resource.store) stored.save(session.resource.id, session);
    emit({ type: 'session.started', session: session.resource, ...ack });
    ports.configured();
  }

  function update(
    { resource }: LiveSession,
    { session: { delegation } }: EventOf<'session.update'>,
    ack: { client_event_id?: string },
  ): void {
    const { faults } = ports;
    if (faults.refuseConfiguration !== null) {
      const code = faults.refuseConfiguration;
      faults.refuseConfiguration = null;
      throw new Refusal(code, 'Refused on purpose: session.update');
    }
    if (delegation) resource.delegation = { ...resource.delegation, ...delegation };
    emit({ type: 'session.updated', session: resource, ...ack });
  }

  function append(event: AppendEvent, ack: { client_event_id?: string }): void {
    const { type, content, delegation_id: delegationId } = event;
    if (isPlayingFixture) {
      throw new Refusal('audio_fixture_active', 'Rejected while an audio fixture is active.');
    }
    const delegation = delegations.find(delegationId ?? '');
    if (delegationId !== null && delegation === undefined) {
      const message = `Delegation with id '${delegationId}' not found in the session.`;
      throw new Refusal('invalid_value', message, 'delegation_id');
    }
    const at = { start_ms: nowMs(), end_ms: nowMs() };
    remember('system', content, type);
    emit({ type: `${type}ed`, ...at, ...ack });
    if (type === 'session.instructions.append') return;
    delegations.stopAcknowledging();
    if (type === 'session.thinking.append') return;
    if (delegation === undefined) {
      turns.add({ type: 'message', role: 'system', text: content });
    } else {
      delegation.isAnswered = true;
      const { callId, name } = delegation;
      turns.add({ type: 'result', callId, name, output: content });
    }
  }

  function playFixture(audio: string, ack: { client_event_id?: string }): void {
    if (isPlayingFixture) {
      throw new Refusal('audio_fixture_active', 'Another audio fixture is active.');
    }
    const durationMs = pcmLength(audio, FIXTURE_RATE_HZ);
    if (durationMs > MAX_FIXTURE_MS) {
      throw new Refusal('invalid_value', 'A fixture lasts at most 30 seconds.', 'audio');
    }
    isPlayingFixture = true;
    turns.hold('fixture');
    turns.cancel();
    emit({ type: 'session.output_audio.fixture.playing', ...ack });
    ports.send({ type: 'session.output_audio.delta', delta: audio } satisfies ServerEvent);
    timers.later(() => {
      isPlayingFixture = false;
      emit({ type: 'session.output_audio.fixture.played', ...ack });
      turns.release('fixture');
    }, durationMs);
  }

  function delegate(name: string, delegationId?: string): void {
    const id = delegationId ?? ports.environment.ids.next('delegation');
    delegations.add(id, name);
    const event = {
      type: 'session.delegation.created',
      offset_ms: nowMs(),
      delegation: { id, type: 'delegation', target: 'client' },
    } as const;
    emit(event);
    if (ports.faults.duplicateCalls) emit(event);
    const delegation = live?.resource.delegation;
    if (delegation?.type !== 'client') return;
    delegations.acknowledge(() => {
      // A model that is already speaking does not need another acknowledgement.
      if (turns.isIdle) turns.addOwn([{ say: ACKNOWLEDGEMENT }]);
    }, delegation.acknowledgement_delay_ms ?? 0);
  }

  function speak(piece: SpeechPiece, reply: ReplyRecord): void {
    if (live === null) return;
    const { words, durationMs } = piece;
    const delta = soundOf(piece, live.resource);
    ports.send({ type: 'session.output_audio.delta', delta } satisfies ServerEvent);
    soundsUntilMs = nowMs() + durationMs;
    reply.audioMs += durationMs;
    if (words === '') return;
    reply.text += words;
    const at = { start_ms: nowMs(), end_ms: nowMs() + durationMs };
    emit({ type: 'session.output_transcript.delta', delta: words, ...at });
  }

  function endTurn(reply: ReplyRecord, next: SpeechPiece | null): void {
    if (reply.text !== '') remember('assistant', reply.text, 'speech');
    if (next !== null && ports.faults.deltasAfterCancel) speak(next, reply);
    emit({ type: 'session.usage.updated', usage: usage() });
  }

  function closeSession(
    reason: Extract<ServerEvent, { type: 'session.closed' }>['reason'],
    ack: { client_event_id?: string },
  ): void {
    if (live !== null) {
      const session = live.resource;
      emit({ type: 'session.closed', reason, session, usage: usage(), ...ack });
    }
    ports.close(CLOSE_NORMAL, reason);
  }

  /** The current time on the session's timeline. */
  function nowMs(): number {
    const { clock } = ports.environment;
    return live === null ? 0 : clock.now() - live.startedAt;
  }

  function remember(role: 'system' | 'user' | 'assistant', text: string, via: string): void {
    const id = ports.environment.ids.next('item');
    live?.items.push({ kind: 'message', id, role, text, via });
  }

  function refuse(error: unknown, eventId: string | null): void {
    const ack = eventId === null ? {} : { client_event_id: eventId };
    if (error instanceof Refusal) {
      const { code, message, param } = error;
      const type = code === 'server_error' ? 'server_error' : 'invalid_request_error';
      const details = { type, code, message, ...(param !== null && { param }), ...ack };
      emit({ type: 'error', error: details, ...ack });
    } else {
      const details = { type: 'server_error', code: 'internal_error', message: messageOf(error) };
      emit({ type: 'error', error: { ...details, ...ack }, ...ack });
    }
  }

  function emit(event: WithoutId<ServerEvent>): void {
    ports.send({ ...event, event_id: ports.environment.ids.next('event') });
  }

  return {
    open() {},
    receive(text) {
      const { eventId, event } = parseLiveFrame(text);
      try {
        if (event instanceof Refusal) throw event;
        if (event.type !== 'session.input_audio.append') {
          const body: Readonly<Record<string, unknown>> = { ...event };
          ports.received({ type: event.type, body });
        }
        handle(event, eventId === null ? {} : { client_event_id: eventId });
      } catch (error) {
        refuse(error, eventId);
      }
    },
    end() {
      turns.abandon();
      delegations.stopAcknowledging();
      timers.stop();
    },
    userBegins() {
      if (isMuted || live === null) return;
      spokenFromMs = nowMs();
      // The model notices the user and falls silent, but the protocol has no event for this.
      turns.hold('user');
      const postponed = turns.postpone();
      if (postponed) unspoken.push(postponed);
    },
    userSays,
    userEnds(text, rest, transcript) {
      if (isMuted || live === null) return;
      remember('user', text, 'speech');
      bringLastWords(rest, transcript, timers, (words) => userSays(words));
      // The model first answers the user, and then speaks about messages that it has read in the meantime.
      turns.addFirst({ type: 'utterance', text });
      turns.release('user');
      const causes = unspoken.splice(0);
      if (causes.length === 0) return;
      timers.later(() => {
        for (const cause of causes) turns.add(cause);
      }, POSTPONED_MS);
    },
    answers: (steps) => turns.addOwn(steps),
    get heardMs() {
      return heardMs;
    },
    get instructions() {
      return live?.resource.instructions ?? '';
    },
    /** The protocol has no tools. */
    tools: [],
    get items() {
      return live?.items ?? [];
    },
    get openCalls() {
      return delegations.open;
    },
    expire: () => closeSession('expired', {}),
    unknownEvent: (type) => ({
      type,
      event_id: ports.environment.ids.next('event'),
      weather: 'fine',
    }),
  };
}

interface Delegation {
  readonly callId: string;
  /** The name of the tool that the script called. It is not sent to the client. */
  readonly name: string;
  isAnswered: boolean;
}

function delegationsOf(scheduler: Scheduler) {
  const all: Delegation[] = [];
  const acknowledgements = timersOf(scheduler);

  return {
    get open(): { readonly callId: string; readonly name: string }[] {
      return all
        .filter(({ isAnswered }) => !isAnswered)
        .map(({ callId, name }) => ({ callId, name }));
    },
    find: (callId: string): Delegation | undefined =>
      all.find((delegation) => delegation.callId === callId),
    add: (callId: string, name: string): void => void all.push({ callId, name, isAnswered: false }),
    acknowledge: acknowledgements.later,
    /** Cancels the pending acknowledgement, because the client has appended a text. */
    stopAcknowledging: acknowledgements.stop,
  };
}

const TELEPHONE_RATE_HZ = 8_000;

/** This byte is silence in both G.711 encodings. */
const TELEPHONE_SILENCE = 0xff;

/** Returns the duration of audio from the client, in milliseconds. @throws {Refusal} */
export function lengthOf(base64: string, { audio }: SessionResource): number {
  const format = audio?.format;
  if (format?.type === 'audio/pcm') return pcmLength(base64, format.rate);
  return (Buffer.byteLength(base64, 'base64') * 1000) / TELEPHONE_RATE_HZ;
}

/** Returns the duration of PCM16 audio at this rate, in milliseconds. @throws {Refusal} */
export function pcmLength(base64: string, rateHz: number): number {
  try {
    return (decodePcm16Base64(base64).length * 1000) / rateHz;
  } catch (error) {
    throw new Refusal('invalid_value', `Invalid 'audio': ${messageOf(error)}`, 'audio');
  }
}

/** Returns silence of this duration, in base64. */
export function silenceOf(durationMs: number, { audio }: SessionResource): string {
  const format = audio?.format;
  if (format?.type === 'audio/pcm') {
    return encodePcm16Base64(new Int16Array(Math.round((durationMs * format.rate) / 1000)));
  }
  const samples = Math.round((durationMs * TELEPHONE_RATE_HZ) / 1000);
  return Buffer.alloc(samples, TELEPHONE_SILENCE).toString('base64');
}

/** Returns the audio of a piece of speech in base64. */
export function soundOf({ startMs, durationMs }: SpeechPiece, { audio }: SessionResource): string {
  const format = audio?.format;
  if (format?.type === 'audio/pcm') {
    return encodePcm16Base64(tone(startMs, durationMs, format.rate));
  }
  const samples = Math.round((durationMs * TELEPHONE_RATE_HZ) / 1000);
  return Buffer.alloc(samples, TELEPHONE_SILENCE).toString('base64');
}

const MAX_SESSION_S = 60 * 60;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

type Resource = Mutable<SessionResource>;

/** The initial memory of a fork. */
export interface LiveMemory {
  readonly resource: SessionResource;
  readonly items: readonly FakeItem[];
}

export interface LiveSession {
  /** The session in the form that the protocol uses. */
  readonly resource: Resource;
  readonly items: FakeItem[];
  /** When the session started, according to the environment's clock. */
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
