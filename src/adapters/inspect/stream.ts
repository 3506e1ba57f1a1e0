// From what XState's actors report to what viewers are sent.
//
// Owns:     the actors that were seen, the viewers, and when they are sent what.
// Does not: know how a viewer is reached.
//
// Invariants
//   STREAM-1. `inspect` never throws, converts nothing and sends nothing: it only notes. What
//       waits is sent `flushMs` later, a slice in each turn of the event loop.
//   STREAM-2. A viewer is told of every actor before anything else of it. One that comes late
//       begins with all actors and their latest snapshots.
//   STREAM-3. An actor whose machine threw is shown as such, though XState does not report it.
//   STREAM-4. A viewer that fails is let go; the others and the actors do not notice.

import type { InspectionEvent } from 'xstate';
import type { Environment } from '../../actors/ports/environment.ts';
import { ActorBook, type Change, type SeenActor, type SeenSnapshot } from './actor-book.ts';
import { Converter, type ActorLine, type Converted, type Line, type SeenEvent } from './line.ts';
import type { Redact } from './redact.ts';
import { ViewerQueue } from './viewer-queue.ts';

/** Somebody who watches. */
export interface Viewer {
  /** False while it has enough to swallow; it is asked again a moment later. */
  isReady(): boolean;
  /** Called in order, with what is new. */
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
/** What is converted and sent in one turn of the event loop: so much, and for so long. */
const SLICE_LINES = 25;
const SLICE_MS = 2;

export class InspectionStream {
  readonly #options: StreamOptions;
  readonly #book: ActorBook;
  readonly #converter: Converter;
  readonly #viewers = new Map<Viewer, ViewerQueue>();
  /** Sent an event since the last flush: may have thrown. */
  readonly #touched = new Set<SeenActor>();
  /** Announced, not yet started: their first snapshot is not there yet. */
  readonly #beginning = new WeakMap<SeenActor, ActorLine>();
  #cancelFlush: (() => void) | null = null;
  #stopped = false;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#book = new ActorBook(options.maxEndedActors);
    this.#converter = new Converter(options.redact, options.maxBytes);
  }

  /** An inspection callback of XState. */
  readonly inspect = (event: InspectionEvent): void => {
    if (this.#stopped) return;
    try {
      this.#note(event);
    } catch (error) {
      this.#options.onError(error, 'inspect');
    }
  };

  /** From now on this viewer is told everything. @returns a function that ends it */
  attach(viewer: Viewer): () => void {
    const queue = new ViewerQueue(this.#options.maxQueuedLines);
    const at = this.#options.environment.clock.now();
    for (const record of this.#book.records) {
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

  /** Sends what waits, to those that are ready, and lets everybody go. */
  stop(): void {
    if (this.#stopped) return;
    this.#noteCrashes();
    this.#stopped = true;
    this.#cancelFlush?.();
    for (const [viewer, queue] of this.#viewers) this.#drain(viewer, queue, Infinity, Infinity);
    this.#viewers.clear();
  }

  #note(seen: InspectionEvent): void {
    const actor = seen.actorRef as unknown as SeenActor;
    switch (seen.type) {
      case '@xstate.actor':
        this.#register(actor);
        break;
      case '@xstate.event':
        this.#noteEvent(actor, seen.event, seen.sourceRef);
        break;
      case '@xstate.snapshot': {
        if (!this.#book.knows(actor)) this.#register(actor);
        const { event } = seen;
        const snapshot = seen.snapshot as unknown as SeenSnapshot;
        this.#show(this.#book.observe(actor, event.type, snapshot), event);
        break;
      }
      // These have no place in the schema.
      case '@xstate.action':
      case '@xstate.microstep':
      case '@xstate.transition':
        break;
    }
  }

  #register(actor: SeenActor): void {
    const fresh = this.#book.register(actor);
    if (this.#viewers.size === 0) return;
    const at = this.#options.environment.clock.now();
    for (const record of fresh) {
      const { identity } = record;
      const line: ActorLine = { kind: 'actor', identity, at, snapshot: record.snapshot() };
      // The last one is the actor itself, after those above it.
      this.#beginning.set(actor, line);
      this.#push(line);
    }
  }

  #noteEvent(actor: SeenActor, event: SeenEvent, source: SeenActor | undefined): void {
    if (!this.#book.knows(actor)) this.#register(actor);
    if (event.type === INIT) {
      const line = this.#beginning.get(actor);
      if (line) line.snapshot = actor.getSnapshot() as SeenSnapshot;
      if (this.#book.isWaking(actor)) return;
    }
    const record = this.#book.find(actor);
    if (!record || this.#viewers.size === 0) return;
    this.#touched.add(actor);
    this.#push({
      kind: 'event',
      identity: record.identity,
      at: this.#options.environment.clock.now(),
      event,
      sourceId: source && this.#book.find(source)?.identity.wireId,
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
    for (const actor of this.#touched) this.#show(this.#book.inspectCrash(actor), NO_EVENT);
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
    // As long as slices follow, `#cancelFlush` is set, so no timer is armed beside them.
    if (hasMore) {
      this.#options.environment.scheduler.yieldThen(this.#flush);
      return;
    }
    this.#cancelFlush = null;
    if (isBlocked) this.#schedule();
  };

  /** At least one line each time, so that every viewer gets on. */
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

/** For a snapshot that no event led to, as far as is known. */
const NO_EVENT: SeenEvent = { type: '' };
