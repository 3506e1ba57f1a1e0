// One observation, and the message it becomes. Observing is cheap: a line only references its input. It is
// converted once, when the first viewer takes it.
//
// Invariants
//   INSPECT-LINE-1. A message has at most `maxBytes` bytes as JSON text.
//   INSPECT-LINE-2. Converting never throws: an unreadable value is shown as unreadable.

import type { Identity, SeenSnapshot } from './actor-registry.ts';
import { definitionOf } from './definition.ts';
import { redactNothing, type Redact } from './redact.ts';
import { shownValue } from './shown-value.ts';
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

/** The start of an actor. */
export interface ActorLine extends BaseLine {
  readonly kind: 'actor';
  /** Known once the actor starts, a moment after it is announced. */
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
/** The size of ids, names and times, and of marks for omitted parts. */
const ENVELOPE_BYTES = 4_096;

export class Converter {
  readonly #redact: Redact;
  /** A message has up to two large parts: its definition or event, and its snapshot. */
  readonly #partBytes: number;
  readonly #converted = new WeakMap<Line, Converted>();
  readonly #definitions = new WeakMap<object, string>();
  /** The next line is usually the snapshot that the same event caused. */
  #latest: { readonly event: SeenEvent; readonly shown: ShownEvent } | undefined;

  constructor(redact: Redact, maxBytes: number) {
    this.#redact = redact;
    this.#partBytes = (maxBytes - ENVELOPE_BYTES) / 2;
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
    const base = baseOf(line);
    switch (line.kind) {
      case 'actor': {
        const { name, parentId } = line.identity;
        const definition = this.#definition(line.identity);
        const snapshot = this.#snapshot(line.snapshot ?? {});
        return { ...base, type: '@xstate.actor', name, parentId, definition, snapshot };
      }
      case 'event': {
        const { sourceId } = line;
        return { ...base, type: '@xstate.event', event: this.#event(line.event), sourceId };
      }
      case 'snapshot': {
        const snapshot = this.#snapshot(line.snapshot);
        return { ...base, type: '@xstate.snapshot', event: this.#event(line.event), snapshot };
      }
    }
  }

  /** Machines are provided anew for each host, but share their configuration. */
  #definition({ name, config }: Identity): string {
    const known = this.#definitions.get(config as object);
    if (known !== undefined) return known;
    const definition = definitionOf(config, name, this.#redact, this.#partBytes);
    if (typeof config === 'object' && config !== null) this.#definitions.set(config, definition);
    return definition;
  }

  #event(event: SeenEvent): ShownEvent {
    if (this.#latest?.event === event) return this.#latest.shown;
    const { type, input, ...fields } = event;
    const budget = { bytesLeft: this.#partBytes };
    const show = (value: unknown, section: string): unknown =>
      shownValue(value, section, this.#redact, budget);
    const shown = {
      type: type.slice(0, MAX_TYPE_LENGTH),
      ...(show(fields, 'event') as object),
      // A machine's input becomes its context and is redacted like it; any other input is a payload.
      ...(input === undefined
        ? {}
        : type === INIT
          ? { input: show(input, 'input') }
          : (show({ input }, 'event') as object)),
    };
    this.#latest = { event, shown };
    return shown;
  }

  #snapshot(snapshot: SeenSnapshot): ShownSnapshot {
    const budget = { bytesLeft: this.#partBytes };
    const { status = 'active', value, tags, children, historyValue } = snapshot;
    const structure = { value, tags, children, historyValue: historyIds(historyValue) };
    // The state names of a machine are chosen by its author; in other logic they may be any text.
    const redact = 'machine' in snapshot ? redactNothing : this.#redact;
    const shown = shownValue(structure, 'structure', redact, budget) as object;
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

/** A getter of the app or `redact` threw. */
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

/** Returns the ids of the states that a history state would return to. */
function historyIds(historyValue: unknown): unknown {
  if (typeof historyValue !== 'object' || historyValue === null) return undefined;
  return Object.fromEntries(
    Object.entries(historyValue as Record<string, readonly { id: string }[]>).map(
      ([history, nodes]) => [history, nodes.map(({ id }) => ({ id }))],
    ),
  );
}
