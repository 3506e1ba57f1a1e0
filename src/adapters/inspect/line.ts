// One thing that was seen, and the message it becomes. Seeing is cheap: a line only
// holds on to what it was given. It is converted once, when the first viewer takes it.
//
// Invariants
//   L1. A message has at most `maxBytes` bytes as JSON text.
//   L2. Converting never throws: what cannot be read is shown as unreadable.

import type { Identity, SeenSnapshot } from './actor-book.ts';
import { definitionOf } from './definition.ts';
import { redactNothing, type Redact } from './redact.ts';
import { shownValue, type Budget } from './shown-value.ts';
import {
  WIRE_VERSION,
  type InspectorMessage,
  type ShownEvent,
  type ShownSnapshot,
} from './wire.ts';

interface BaseLine {
  readonly identity: Identity;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** An actor, as it began. */
export interface ActorLine extends BaseLine {
  readonly kind: 'actor';
  /** Known when it starts, a moment after it is announced. */
  snapshot: SeenSnapshot | undefined;
}

export interface EventLine extends BaseLine {
  readonly kind: 'event';
  readonly event: SeenEvent;
  readonly sourceId: string | undefined;
}

export interface SnapshotLine extends BaseLine {
  readonly kind: 'snapshot';
  readonly event: SeenEvent;
  readonly snapshot: SeenSnapshot;
}

export type Line = ActorLine | EventLine | SnapshotLine;

export interface SeenEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A message and its JSON text. */
export interface Converted {
  readonly message: InspectorMessage;
  readonly text: string;
}

const INIT = 'xstate.init';
const MAX_TYPE_LENGTH = 200;
/** Ids, names and times; marks of what was left out. */
const ENVELOPE_BYTES = 4_096;

export class Converter {
  readonly #redact: Redact;
  readonly #maxBytes: number;
  readonly #converted = new WeakMap<Line, Converted>();
  readonly #definitions = new WeakMap<object, string>();

  constructor(redact: Redact, maxBytes: number) {
    this.#redact = redact;
    this.#maxBytes = maxBytes;
  }

  convert(line: Line): Converted {
    const known = this.#converted.get(line);
    if (known) return known;
    let converted: Converted;
    try {
      converted = withText(this.#message(line));
    } catch {
      converted = withText(unreadable(line));
    }
    this.#converted.set(line, converted);
    return converted;
  }

  #message(line: Line): InspectorMessage {
    const budget = { bytesLeft: this.#maxBytes - ENVELOPE_BYTES };
    const base = baseOf(line);
    switch (line.kind) {
      case 'actor': {
        const { name, parentId } = line.identity;
        const definition = this.#definition(line.identity);
        budget.bytesLeft -= this.#maxBytes / 2;
        const snapshot = this.#snapshot(line.snapshot ?? {}, budget);
        return { ...base, type: '@xstate.actor', name, parentId, definition, snapshot };
      }
      case 'event': {
        const event = this.#event(line.event, budget);
        return { ...base, type: '@xstate.event', event, sourceId: line.sourceId };
      }
      case 'snapshot': {
        // The event has been shown before: of the two it may be the shorter one.
        const half = { bytesLeft: budget.bytesLeft / 2 };
        const event = this.#event(line.event, half);
        budget.bytesLeft = budget.bytesLeft / 2 + half.bytesLeft;
        const snapshot = this.#snapshot(line.snapshot, budget);
        return { ...base, type: '@xstate.snapshot', event, snapshot };
      }
    }
  }

  /** Machines are provided anew for each host, but share their configuration. */
  #definition({ name, config }: Identity): string {
    const maxBytes = this.#maxBytes / 2;
    if (typeof config !== 'object' || config === null)
      return definitionOf(config, name, this.#redact, maxBytes);
    const known = this.#definitions.get(config);
    const definition = known ?? definitionOf(config, name, this.#redact, maxBytes);
    this.#definitions.set(config, definition);
    return definition;
  }

  #event({ type, input, ...fields }: SeenEvent, budget: Budget): ShownEvent {
    const shown = (value: unknown, section: string): unknown =>
      shownValue(value, section, this.#redact, budget);
    return {
      type: type.slice(0, MAX_TYPE_LENGTH),
      ...(shown(fields, 'event') as object),
      // What a machine begins with is the root of its context; any other input is a payload.
      ...(input === undefined
        ? {}
        : type === INIT
          ? { input: shown(input, 'input') }
          : (shown({ input }, 'event') as object)),
    };
  }

  #snapshot(snapshot: SeenSnapshot, budget: Budget): ShownSnapshot {
    const { status = 'active', value, tags, children, historyValue } = snapshot;
    const structure = { value, tags, children, historyValue: historyIds(historyValue) };
    const shown = shownValue(structure, 'structure', redactNothing, budget) as object;
    const parts = ['output', 'error', 'input', 'context']
      .filter((part) => snapshot[part] !== undefined)
      .map((part) => [part, shownValue(snapshot[part], part, this.#redact, budget)] as const);
    return { status, ...shown, ...Object.fromEntries(parts) };
  }
}

function baseOf({ identity, at }: Line) {
  const { wireId: sessionId, rootId } = identity;
  return { sessionId, rootId, createdAt: String(at), id: null, _version: WIRE_VERSION };
}

function withText(message: InspectorMessage): Converted {
  return { message, text: JSON.stringify(message) };
}

/** Somebody's getter or `redact` threw. */
function unreadable(line: Line): InspectorMessage {
  const base = baseOf(line);
  const event = { type: '[unreadable]' };
  const snapshot = { status: 'active', context: '[unreadable]' } as const;
  switch (line.kind) {
    case 'actor': {
      const { name, parentId } = line.identity;
      const definition = JSON.stringify({ id: name });
      return { ...base, type: '@xstate.actor', name, parentId, definition, snapshot };
    }
    case 'event':
      return { ...base, type: '@xstate.event', event, sourceId: line.sourceId };
    case 'snapshot':
      return { ...base, type: '@xstate.snapshot', event, snapshot };
  }
}

/** Which states a history state would go back to, by their ids. */
function historyIds(historyValue: unknown): unknown {
  if (typeof historyValue !== 'object' || historyValue === null) return undefined;
  return Object.fromEntries(
    Object.entries(historyValue as Record<string, readonly { id: string }[]>).map(
      ([history, nodes]) => [history, nodes.map(({ id }) => ({ id }))],
    ),
  );
}
