// The stream of what happens to the subagents of a scope.

import { Subject, type Observable } from 'rxjs';
import type { Clock } from '../ports/environment.ts';
import type { SubagentRecord } from './family.ts';
import type { SubagentChunk } from '../contracts/service-types.ts';

type Own<T> = T extends unknown
  ? Omit<T, 'subagentId' | 'name' | 'parentId' | 'callId' | 'depth' | 'at'>
  : never;

/** What is particular to one chunk. */
export type ChunkBody = Own<SubagentChunk>;

export class Chunks {
  readonly #clock: Clock;
  readonly #subject = new Subject<SubagentChunk>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Hot; completes with `complete`. */
  get events(): Observable<SubagentChunk> {
    return this.#subject.asObservable();
  }

  emit({ id, parentId, depth, place }: SubagentRecord, body: ChunkBody): void {
    if (!this.#subject.observed) return;
    this.#subject.next({
      subagentId: id,
      name: place.definition.name,
      parentId,
      callId: place.callId,
      depth,
      at: this.#clock.now(),
      ...body,
    });
  }

  complete(): void {
    this.#subject.complete();
  }
}
