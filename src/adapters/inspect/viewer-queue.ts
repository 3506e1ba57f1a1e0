// The waiting lines of one viewer, in order. If it is too slow, history is dropped from the front, and a line
// reports the gap.
//
// Invariants
//   VIEWER-QUEUE-1. The start of an actor and its latest snapshot are never dropped; only earlier actors of
//       the same name are.
//   VIEWER-QUEUE-2. Dropped lines are counted, and the count is shown at the gap.

import type { Line } from './line.ts';

const GAP = 'offstage.inspect.gap';

export class ViewerQueue {
  readonly #maxLines: number;
  #lines: Line[] = [];
  #head = 0;
  #compactAt: number;

  /** @param maxLines A longer queue is shortened to half this number, plus the lines that must be kept. */
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
    /** The kept older lines, latest first. */
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
    // States alone may exceed the limit: the next compaction waits until it is worthwhile.
    this.#compactAt = Math.max(this.#maxLines, this.#lines.length * 2);
  }
}

/** Returns whether the line describes the state of an actor: its start, or a new snapshot. */
function isState({ kind }: Line): boolean {
  return kind !== 'event';
}

function gapOf(line: Line): number | undefined {
  return line.kind === 'event' && line.event.type === GAP
    ? (line.event['droppedLines'] as number)
    : undefined;
}
