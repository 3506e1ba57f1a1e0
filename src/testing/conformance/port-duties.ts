// Checks the duties of a transport towards a session (see the comments in `voice/connection/transport.ts`), and those
// of a session towards a transport. It checks all traffic between them.
//
// Owns:     the judgement of one connection, entry by entry.
// Does not: know the purpose of the traffic (promises).

import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportEvent } from '../../voice/connection/transport.ts';
import type { TappedConnection } from './wire-tap.ts';

export interface Leniency {
  /** The case makes the model hang. */
  readonly mayHang: boolean;
  /** A noise continues until the end, so the record may end during the noise. */
  readonly isNoisy: boolean;
}

/** Returns the duties that were violated on this connection, each as a sentence. */
export function neglectedDuties(
  { passed, isHungUp }: TappedConnection,
  leniency: Leniency,
): readonly string[] {
  const judge = new Judge(leniency);
  for (const entry of passed) {
    if ('command' in entry) judge.command(entry.command);
    else if ('event' in entry) judge.event(entry.event);
    else judge.frame(entry.frame);
  }
  if (!isHungUp) judge.end();
  return judge.faults;
}

interface UtteranceSeen {
  hasEnded: boolean;
  isKnown: boolean;
}

class Judge {
  readonly faults: string[] = [];
  readonly #mayHang: boolean;
  readonly #isNoisy: boolean;
  readonly #utterances = new Map<string, UtteranceSeen>();
  /** The responses by id. The value is true once the response has ended. */
  readonly #responses = new Map<string, boolean>();
  /** The requests by key. The value is true once the request has ended. */
  readonly #requests = new Map<string, boolean>();
  /** The requests that the session abandoned because the model started a response without a request. */
  readonly #overtaken = new Set<string>();
  readonly #withdrawn = new Set<string>();
  #isReady = false;
  #isClosed = false;

  constructor({ mayHang, isNoisy }: Leniency) {
    this.#mayHang = mayHang;
    this.#isNoisy = isNoisy;
  }

  command(command: TransportCommand): void {
    if (command.type === 'response.withdraw') this.#withdrawn.add(command.responseKey);
    if (command.type !== 'response.request') return;
    const { responseKey } = command;
    for (const key of this.#overtaken)
      if (!this.#withdrawn.has(key) && this.#requests.get(key) === false)
        this.faults.push(
          `RESPONSES-1: ${key} was overtaken, and not taken back before ${responseKey}`,
        );
    if (this.#requests.has(responseKey) && this.#requests.get(responseKey) === false)
      this.faults.push(`RESPONSES-1: ${responseKey} was requested again before it had ended`);
    const open = [...this.#requests].find(
      ([key, hasEnded]) => !hasEnded && !this.#overtaken.has(key),
    )?.[0];
    const made = [...this.#responses].find(([, hasEnded]) => !hasEnded)?.[0];
    if (!this.#mayHang && open !== undefined)
      this.faults.push(`RESPONSES-1: ${responseKey} was requested while ${open} was under way`);
    if (!this.#mayHang && made !== undefined)
      this.faults.push(
        `RESPONSES-1: ${responseKey} was requested while the response ${made} was in the making`,
      );
    if (!this.#isNoisy && [...this.#utterances.values()].some(({ hasEnded }) => !hasEnded))
      this.faults.push(`TURNS-2: ${responseKey} was requested while the user spoke`);
    this.#requests.set(responseKey, false);
  }

  event(event: TransportEvent): void {
    if (this.#isClosed) {
      this.faults.push(`${event.type} came after transport.closed`);
      return;
    }
    switch (event.type) {
      case 'transport.ready':
        if (this.#isReady) this.faults.push('transport.ready came twice');
        this.#isReady = true;
        return;
      case 'transport.closed':
        this.#isClosed = true;
        return;
      case 'utterance.started':
      case 'utterance.ended':
      case 'utterance.transcribed':
      case 'utterance.untranscribed':
        return this.#utterance(event);
      case 'response.started':
        return this.#started(event);
      case 'response.ended':
        return this.#ended(event);
      case 'tool.called':
        if (!this.#responses.has(event.responseId))
          this.faults.push(`${event.callId} was called in a response that had not begun`);
        return;
      case 'transport.error':
        if (event.responseKey !== null) this.#requests.set(event.responseKey, true);
        return;
      case 'transport.expiring':
      case 'transport.resumable':
      case 'session.configured':
      case 'session.refused':
      case 'assistant.transcribed':
      case 'model.changed':
      case 'delegation.created':
      case 'usage.reported':
      case 'limits.reported':
      case 'tool.cancelled':
    }
  }

  frame({ itemId, responseId }: Omit<AudioFrame, 'samples'>): void {
    if (itemId === undefined || responseId === undefined)
      this.faults.push('Sound came without the ids of its item and response');
    else if (!this.#responses.has(responseId))
      this.faults.push(`Sound came of the response ${responseId}, which had not begun`);
  }

  /** Ends the record because the connection or the conversation has ended. */
  end(): void {
    if (this.#isClosed) return;
    for (const [id, { hasEnded, isKnown }] of this.#utterances) {
      if (!hasEnded) this.faults.push(`The utterance ${id} never ended`);
      else if (!isKnown)
        this.faults.push(`The words of the utterance ${id} never came, nor that there are none`);
    }
    for (const [id, hasEnded] of this.#responses)
      if (!hasEnded && !this.#mayHang) this.faults.push(`The response ${id} never ended`);
    for (const [key, hasEnded] of this.#requests)
      if (!hasEnded && !this.#mayHang) this.faults.push(`The request ${key} came to no end`);
  }

  #utterance(event: Extract<TransportEvent, { type: `utterance.${string}` }>): void {
    const { type, utteranceId } = event;
    const seen = this.#utterances.get(utteranceId);
    if (type === 'utterance.started') {
      if (seen) this.faults.push(`The utterance ${utteranceId} began twice`);
      this.#utterances.set(utteranceId, { hasEnded: false, isKnown: false });
    } else if (!seen) {
      this.faults.push(`${type} came of ${utteranceId}, which had not begun`);
    } else if (type === 'utterance.ended') {
      if (seen.hasEnded) this.faults.push(`The utterance ${utteranceId} ended twice`);
      seen.hasEnded = true;
    } else if (type === 'utterance.untranscribed' || event.final) {
      if (!seen.hasEnded)
        this.faults.push(`The words of ${utteranceId} were final before it ended`);
      seen.isKnown = true;
    }
  }

  #started({
    responseId,
    responseKey,
  }: Extract<TransportEvent, { type: 'response.started' }>): void {
    if (this.#responses.has(responseId)) this.faults.push(`The response ${responseId} began twice`);
    this.#responses.set(responseId, false);
    if (responseKey === null)
      for (const [key, hasEnded] of this.#requests) if (!hasEnded) this.#overtaken.add(key);
    if (responseKey !== null && this.#requests.get(responseKey) !== false)
      this.faults.push(`The response ${responseId} claims ${responseKey}, which is not asked for`);
  }

  #ended({ responseId, responseKey }: Extract<TransportEvent, { type: 'response.ended' }>): void {
    if (this.#responses.get(responseId) === true)
      this.faults.push(`The response ${responseId} ended twice`);
    else if (this.#responses.has(responseId)) this.#responses.set(responseId, true);
    else if (responseKey === null)
      this.faults.push(`The response ${responseId} ended, and had not begun`);
    if (responseKey === null) return;
    if (this.#requests.get(responseKey) !== false)
      this.faults.push(`The request ${responseKey} ended, and is not under way`);
    this.#requests.set(responseKey, true);
  }
}
