// What one viewer has still to be told, in order. When it is too slow, what is only
// history is dropped from the front, and a line says that it was.
//
// Invariants
//   Q1. That an actor exists, and its latest snapshot, are never dropped.
//   Q2. What is dropped is counted, and the count is shown where the gap is.

import type { Line } from './line.ts';

const GAP = 'offstage.inspect.gap';

export class ViewerQueue {
  readonly #maxLines: number;
  #lines: Line[] = [];
  #head = 0;
  #compactAt: number;

  /** More than `maxLines` lines are shortened to half as many, and what must be kept. */
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
    const cut = waiting.length - Math.floor(this.#maxLines / 2);
    const kept: Line[] = [];
    const told = new Set<string>();
    let droppedLines = 0;
    let lastDropped: Line | undefined;
    for (let index = waiting.length - 1; index >= 0; index -= 1) {
      const line = waiting[index] as Line;
      const { wireId } = line.identity;
      const isLatest = line.kind === 'snapshot' && !told.has(wireId);
      if (line.kind === 'snapshot') told.add(wireId);
      if (index >= cut || line.kind === 'actor' || isLatest) {
        kept.push(line);
        continue;
      }
      lastDropped ??= line;
      droppedLines += gapOf(line) ?? 1;
    }
    kept.reverse();
    const recent = Math.floor(this.#maxLines / 2);
    if (lastDropped) {
      const { identity, at } = lastDropped;
      const event = { type: GAP, droppedLines };
      const gap: Line = { kind: 'event', identity, at, event, sourceId: undefined };
      kept.splice(kept.length - recent, 0, gap);
    }
    this.#lines = kept;
    this.#head = 0;
    // States alone may be many: compacting again must wait until it is worth it.
    this.#compactAt = Math.max(this.#maxLines, kept.length * 2);
  }
}

function gapOf(line: Line): number | undefined {
  return line.kind === 'event' && line.event.type === GAP
    ? (line.event['droppedLines'] as number)
    : undefined;
}
