// The stream of the events of a scope's subagents.

import { Subject, type Observable } from 'rxjs';
import type { Clock } from '../ports/environment.ts';
import type { SubagentRecord } from './subagent-registry.ts';
import type { SubagentChunk } from '../contracts/service-types.ts';

type Own<T> = T extends unknown
  ? Omit<T, 'subagentId' | 'name' | 'parentId' | 'callId' | 'depth' | 'at'>
  : never;

/** The properties of one chunk that the others do not have. */
export type ChunkBody = Own<SubagentChunk>;

export class Chunks {
  readonly #clock: Clock;
  readonly #subject = new Subject<SubagentChunk>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A hot stream; completes with `complete`. */
  get events(): Observable<SubagentChunk> {
    return this.#subject.asObservable();
  }

  emit({ id, parentId, depth, admission }: SubagentRecord, body: ChunkBody): void {
    if (!this.#subject.observed) return;
    this.#subject.next({
      subagentId: id,
      name: admission.definition.name,
      parentId,
      callId: admission.callId,
      depth,
      at: this.#clock.now(),
      ...body,
    });
  }

  complete(): void {
    this.#subject.complete();
  }
}
