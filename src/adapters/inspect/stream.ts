// Turns XState's inspection events into messages for viewers.
//
// Owns:     the observed actors, the viewers, and the flush schedule.
// Does not: depend on how a viewer is connected.
//
// Invariants
//   STREAM-1. `inspect` never throws and only records events. It neither converts nor sends anything. Recorded lines
//       are sent `flushMs` later, in one slice per turn of the event loop.
//   STREAM-2. A viewer learns that an actor has started before it receives any other message about the actor. A late
//       viewer first receives all actors with their latest snapshots.
//   STREAM-3. An actor whose machine has thrown is shown as failed, even though XState does not report the failure.
//   STREAM-4. A failing viewer is removed without affecting the other viewers or the actors.
//   VIEWER-QUEUE-1. The start and the latest snapshot of an actor are dropped only if a later actor has the same name.
//   VIEWER-QUEUE-2. Dropped lines are counted, and the inspector shows their number at the gap.

import type { InspectionEvent } from 'xstate';
import type { Environment } from '../../actors/ports/environment.ts';
import { ActorRegistry, type Change, type SeenActor, type SeenSnapshot } from './actor-registry.ts';
import type { Redact } from './shown-value.ts';
import {
  Converter,
  type ActorLine,
  type Converted,
  type Line,
  type SeenEvent,
} from './trace-line.ts';

/** A recipient of the stream. */
interface Viewer {
  /** False while the viewer is busy. The stream then tries again a moment later. */
  isReady(): boolean;
  /** Called with each new message, in order. */
  send(converted: Converted): void;
}

export interface StreamOptions {
  readonly environment: Environment;
  readonly redact: Redact;
  readonly maxBytes: number;
  readonly maxQueuedLines: number;
  readonly maxEndedActors: number;
  readonly flushMs: number;
  readonly onError: (error: unknown, where: string) => void;
}

const INIT = 'xstate.init';
/** The maximum number of lines to convert and send in one turn of the event loop, and the time limit for doing so. */
const SLICE_LINES = 25;
const SLICE_MS = 2;

export class InspectionStream {
  readonly #options: StreamOptions;
  readonly #actors: ActorRegistry;
  readonly #converter: Converter;
  readonly #viewers = new Map<Viewer, ViewerQueue>();
  /** The actors whose machines may have thrown an error, because they have received an event since the last flush. */
  readonly #touched = new Set<SeenActor>();
  /** Actors that were announced but have not started and have no snapshot. */
  readonly #beginning = new WeakMap<SeenActor, ActorLine>();
  #cancelFlush: (() => void) | null = null;
  #stopped = false;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#actors = new ActorRegistry(options.maxEndedActors);
    this.#converter = new Converter(options.redact, options.maxBytes);
  }

  /** The inspection callback for XState. */
  readonly inspect = (event: InspectionEvent): void => {
    if (this.#stopped) return;
    try {
      this.#note(event);
    } catch (error) {
      this.#options.onError(error, 'inspect');
    }
  };

  /** Adds a viewer. @returns a function that removes the viewer */
  attach(viewer: Viewer): () => void {
    const queue = new ViewerQueue(this.#options.maxQueuedLines);
    const at = this.#options.environment.clock.now();
    for (const record of this.#actors.records) {
      const { identity } = record;
      const snapshot = record.snapshot();
      queue.push({ kind: 'actor', identity, at, snapshot });
      if (snapshot) queue.push({ kind: 'snapshot', identity, at, snapshot, event: NO_EVENT });
    }
    this.#viewers.set(viewer, queue);
    this.#schedule();
    return () => {
      this.#viewers.delete(viewer);
    };
  }

  /** Sends the pending lines to the viewers that are ready, and removes all viewers. */
  stop(): void {
    if (this.#stopped) return;
    this.#noteCrashes();
    this.#stopped = true;
    this.#cancelFlush?.();
    for (const [viewer, queue] of this.#viewers) this.#drain(viewer, queue, Infinity, Infinity);
    this.#viewers.clear();
  }

  #note(seen: InspectionEvent): void {
    const actor = seen.actorRef as SeenActor;
    switch (seen.type) {
      case '@xstate.actor':
        this.#register(actor);
        break;
      case '@xstate.event':
        this.#noteEvent(actor, seen.event, seen.sourceRef);
        break;
      case '@xstate.snapshot': {
        if (!this.#actors.knows(actor)) this.#register(actor);
        const { event } = seen;
        const snapshot = seen.snapshot as SeenSnapshot;
        this.#show(this.#actors.observe(actor, snapshot), event);
        break;
      }
      // The message schema does not include these events.
      case '@xstate.action':
      case '@xstate.microstep':
      case '@xstate.transition':
        break;
    }
  }

  #register(actor: SeenActor): void {
    const fresh = this.#actors.register(actor);
    if (this.#viewers.size === 0) return;
    const at = this.#options.environment.clock.now();
    for (const record of fresh) {
      const { identity } = record;
      const line: ActorLine = { kind: 'actor', identity, at, snapshot: record.snapshot() };
      // The last record belongs to the actor itself, and the records before it belong to its ancestors.
      this.#beginning.set(actor, line);
      this.#push(line);
    }
  }

  #noteEvent(actor: SeenActor, event: SeenEvent, source: SeenActor | undefined): void {
    if (!this.#actors.knows(actor)) this.#register(actor);
    if (event.type === INIT) {
      const line = this.#beginning.get(actor);
      if (line) line.snapshot = actor.getSnapshot() as SeenSnapshot;
    }
    const record = this.#actors.find(actor);
    if (!record || this.#viewers.size === 0) return;
    this.#touched.add(actor);
    this.#push({
      kind: 'event',
      identity: record.identity,
      at: this.#options.environment.clock.now(),
      event,
      sourceId: source && this.#actors.find(source)?.identity.wireId,
    });
  }

  #show(changes: readonly Change[], event: SeenEvent): void {
    if (changes.length === 0 || this.#viewers.size === 0) return;
    const at = this.#options.environment.clock.now();
    for (const { identity, snapshot } of changes)
      this.#push({ kind: 'snapshot', identity, at, event, snapshot });
  }

  #push(line: Line): void {
    for (const queue of this.#viewers.values()) queue.push(line);
    this.#schedule();
  }

  #schedule(): void {
    const { environment, flushMs } = this.#options;
    this.#cancelFlush ??= environment.scheduler.schedule(this.#flush, flushMs);
  }

  #noteCrashes(): void {
    for (const actor of this.#touched) this.#show(this.#actors.inspectCrash(actor), NO_EVENT);
    this.#touched.clear();
  }

  readonly #flush = (): void => {
    if (this.#stopped) return;
    this.#noteCrashes();
    let hasMore = false;
    let isBlocked = false;
    const endsAt = this.#options.environment.clock.now() + SLICE_MS;
    for (const [viewer, queue] of this.#viewers) {
      this.#drain(viewer, queue, SLICE_LINES, endsAt);
      if (queue.isEmpty || !this.#viewers.has(viewer)) continue;
      if (this.#isReady(viewer)) hasMore = true;
      else isBlocked = true;
    }
    // `#cancelFlush` remains set while slices are still to be sent, so that no second timer is started.
    if (hasMore) {
      this.#options.environment.scheduler.yieldThen(this.#flush);
      return;
    }
    this.#cancelFlush = null;
    if (isBlocked) this.#schedule();
  };

  /** Sends at least one line per turn, so that every viewer makes progress. */
  #drain(viewer: Viewer, queue: ViewerQueue, maxLines: number, endsAt: number): void {
    const { clock } = this.#options.environment;
    for (let sent = 0; sent < maxLines && this.#isReady(viewer); sent += 1) {
      if (sent > 0 && clock.now() >= endsAt) return;
      const line = queue.take();
      if (!line) return;
      try {
        viewer.send(this.#converter.convert(line));
      } catch (error) {
        this.#letGo(viewer, error);
      }
    }
  }

  #isReady(viewer: Viewer): boolean {
    if (!this.#viewers.has(viewer)) return false;
    try {
      return viewer.isReady();
    } catch (error) {
      this.#letGo(viewer, error);
      return false;
    }
  }

  #letGo(viewer: Viewer, error: unknown): void {
    this.#viewers.delete(viewer);
    this.#options.onError(error, 'inspector viewer');
  }
}

/** The event for a snapshot whose event is unknown. */
const NO_EVENT: SeenEvent = { type: '' };

const GAP = 'offstage.inspect.gap';

/**
 * A viewer's pending lines, in order. If the viewer is too slow, the oldest lines are dropped, and a line reports the
 * gap.
 */
class ViewerQueue {
  readonly #maxLines: number;
  #lines: Line[] = [];
  #head = 0;
  #compactAt: number;

  /**
   * @param maxLines The maximum length of the queue. A longer queue is cut to half this length, plus the states of the
   * actors.
   */
  constructor(maxLines: number) {
    this.#maxLines = maxLines;
    this.#compactAt = maxLines;
  }

  get isEmpty(): boolean {
    return this.#head === this.#lines.length;
  }

  push(line: Line): void {
    this.#lines.push(line);
    if (this.#lines.length - this.#head > this.#compactAt) this.#compact();
  }

  take(): Line | undefined {
    const line = this.#lines[this.#head];
    if (line === undefined) return undefined;
    this.#head += 1;
    if (this.isEmpty) {
      this.#lines = [];
      this.#head = 0;
      this.#compactAt = this.#maxLines;
    }
    return line;
  }

  #compact(): void {
    const waiting = this.#lines.slice(this.#head);
    const recent = Math.floor(this.#maxLines / 2);
    const cut = waiting.length - recent;
    /** The older lines that remain, newest first. */
    const kept: Line[] = [];
    const announced = new Set<string>();
    const known = new Set(
      waiting
        .slice(cut)
        .filter(isState)
        .map(({ identity }) => identity.wireId),
    );
    let droppedLines = 0;
    let gapAt: Line | undefined;
    for (const line of waiting.slice(0, cut).toReversed()) {
      const { wireId } = line.identity;
      const told = line.kind === 'actor' ? announced : known;
      if (isState(line) && !told.has(wireId)) kept.push(line);
      else {
        gapAt ??= line;
        droppedLines += gapOf(line) ?? 1;
      }
      if (line.kind === 'actor') announced.add(wireId);
      if (isState(line)) known.add(wireId);
    }
    kept.reverse();
    if (gapAt) {
      const { identity, at } = gapAt;
      kept.push({
        kind: 'event',
        identity,
        at,
        event: { type: GAP, droppedLines },
        sourceId: undefined,
      });
    }
    this.#lines = [...kept, ...waiting.slice(cut)];
    this.#head = 0;
    // If the states alone exceed the limit, the next compaction waits until it would remove enough lines.
    this.#compactAt = Math.max(this.#maxLines, this.#lines.length * 2);
  }
}

/** Returns whether the line describes an actor's state, which is its start or a new snapshot. */
function isState({ kind }: Line): boolean {
  return kind !== 'event';
}

function gapOf(line: Line): number | undefined {
  return line.kind === 'event' && line.event.type === GAP
    ? (line.event['droppedLines'] as number)
    : undefined;
}
