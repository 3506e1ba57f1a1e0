// One observation and its message. Observing is cheap, because a line only references its data. A line is converted
// once, when the first viewer needs it.
//
// The messages are those of `@statelyai/inspect` 0.7.2, in the form that its receivers parse. Source: the package's
// types and output (2026-11).
//
// Invariants
//   INSPECT-LINE-1. A message has at most `maxBytes` bytes as JSON text.
//   INSPECT-LINE-2. Converting never throws: an unreadable value is marked as unreadable.

import type { Identity, SeenSnapshot } from './actor-registry.ts';
import { redactNothing, type Redact, shownValue, type Budget } from './shown-value.ts';

interface BaseLine {
  readonly identity: Identity;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The start of an actor. */
export interface ActorLine extends BaseLine {
  readonly kind: 'actor';
  /** Set once the actor has started, shortly after it is announced. */
  snapshot: SeenSnapshot | undefined;
}

interface EventLine extends BaseLine {
  readonly kind: 'event';
  readonly event: SeenEvent;
  readonly sourceId: string | undefined;
}

interface SnapshotLine extends BaseLine {
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
/** The size reserved for ids, names, times and omission marks. */
const ENVELOPE_BYTES = 4_096;

export class Converter {
  readonly #redact: Redact;
  /** The maximum size of each large part. A message has at most two: its definition or event, and its snapshot. */
  readonly #partBytes: number;
  readonly #converted = new WeakMap<Line, Converted>();
  readonly #definitions = new WeakMap<object, string>();
  /** The next line is usually the snapshot that this event caused. */
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

  /** Each host provides its own machine object, but all of these share the same configuration. */
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
      // A machine's input becomes its context and is redacted in the same way. Any other input is a payload.
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
    // The author of a machine chooses its state names. In other logic, state names may be any text.
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

/** A getter in the app's data or the function `redact` has thrown an error. */
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

/** Returns the ids of the states that a history state would restore. */
function historyIds(historyValue: unknown): unknown {
  if (typeof historyValue !== 'object' || historyValue === null) return undefined;
  return Object.fromEntries(
    Object.entries(historyValue as Record<string, readonly { id: string }[]>).map(
      ([history, nodes]) => [history, nodes.map(({ id }) => ({ id }))],
    ),
  );
}

type Part = (value: unknown, write: Writer) => unknown;
type Parts = Readonly<Record<string, Part>>;

interface Writer {
  readonly redact: Redact;
  readonly budget: Budget;
}

const name: Part = (value) => {
  if (typeof value === 'function') return { type: value.name };
  if (Array.isArray(value)) return value.filter((item) => typeof item === 'string');
  return typeof value === 'object' ? undefined : value;
};

const data =
  (section: string): Part =>
  (value, { redact, budget }) =>
    shownValue(value, section, redact, budget);

/** Formats a list or a single item. */
const some =
  (part: Part): Part =>
  (value, write) =>
    Array.isArray(value) ? value.map((item) => part(item, write)) : part(value, write);

const mapOf =
  (part: Part): Part =>
  (value, write) => {
    const entries = Object.entries(value ?? {});
    return Object.fromEntries(entries.map(([key, item]) => [key, part(item, write)]));
  };

const fields = (value: unknown, parts: Parts, write: Writer): object => {
  const shown: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value ?? {})) {
    const part = Object.hasOwn(parts, key) ? parts[key] : undefined;
    if (part) shown[key] = part(item, write);
  }
  return shown;
};

/** An action or guard: a name, an object with a type, or a function. */
const named: Part = (value, write) =>
  typeof value === 'object' ? fields(value, namedParts, write) : name(value, write);

const namedParts: Parts = { type: name, params: data('params') };

/** `undefined` is also a transition: it disables the event. */
const transition: Part = (value, write) =>
  typeof value === 'string' ? value : fields(value, transitionParts, write);

const transitionParts: Parts = {
  target: name,
  guard: named,
  actions: some(named),
  reenter: name,
  delay: name,
  description: data('description'),
  meta: data('meta'),
};

const invocation: Part = (value, write) => fields(value, invocationParts, write);

const invocationParts: Parts = {
  id: name,
  systemId: name,
  src: (value) => (typeof value === 'string' ? value : 'inline'),
  input: data('input'),
  onDone: some(transition),
  onError: some(transition),
  onSnapshot: some(transition),
};

const state: Part = (value, write) => fields(value, stateParts, write);

const stateParts: Parts = {
  id: name,
  key: name,
  type: name,
  version: name,
  history: name,
  target: name,
  tags: name,
  initial: transition,
  states: mapOf(state),
  on: mapOf(some(transition)),
  after: mapOf(some(transition)),
  always: some(transition),
  onDone: some(transition),
  invoke: some(invocation),
  entry: some(named),
  exit: some(named),
  context: data('context'),
  output: data('output'),
  description: data('description'),
  meta: data('meta'),
};

const DEFINITION_ENVELOPE_BYTES = 200;

/**
 * Returns the definition of an actor's logic for an inspector. For a machine, this is its configuration as JSON text,
 * built part by part. States, events, targets and the names of actions, guards and actors are included. Data in the
 * configuration (initial context, params, meta, descriptions) is redacted like other data.
 *
 * For logic that is not a machine, only the name is included. If a definition is longer than `maxBytes`, a note
 * replaces it.
 */
function definitionOf(
  config: unknown,
  actorName: string,
  redact: Redact,
  maxBytes: number,
): string {
  if (typeof config !== 'object' || config === null) return JSON.stringify({ id: actorName });
  const write = { redact, budget: { bytesLeft: maxBytes - DEFINITION_ENVELOPE_BYTES } };
  const text = JSON.stringify(state(config, write));
  // The JSON text is encoded again within a message, so its quotes are escaped.
  const { length: bytes } = new TextEncoder().encode(JSON.stringify(text));
  if (bytes <= maxBytes) return text;
  return JSON.stringify({
    id: actorName,
    description: `[truncated: a definition of ${bytes} bytes]`,
  });
}

/** The version of the schema. Receivers ignore messages without it. */
const WIRE_VERSION = '0.7.2';

interface BaseMessage {
  /** The actor's permanent name in the inspector: its path, such as `ses_1/outbox`. */
  readonly sessionId: string;
  /** The root actor of the tree. */
  readonly rootId: string;
  /** The time in milliseconds since 1970, as text. */
  readonly createdAt: string;
  /** Always null; the inspector's protocol requires the field. */
  readonly id: null;
  /** The version of the protocol's schema. Receivers ignore messages without it. */
  readonly _version: string;
}

/** The form of an event that may be shown; `type` is always present. */
export interface ShownEvent {
  /** The type of the event. */
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The form of a snapshot that may be shown. Only machines have `value`, `tags`, `children` and `historyValue`. */
export interface ShownSnapshot {
  /** The actor's status. */
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  /** The machine's current state. */
  readonly value?: unknown;
  /** The machine's data, redacted. Absent for other logic without context. */
  readonly context?: unknown;
  /** The input with which the actor was created, redacted. Absent if there was none. */
  readonly input?: unknown;
  /** The output of an actor that is done, redacted. Absent otherwise. */
  readonly output?: unknown;
  /** The error of an actor that has failed, redacted. Absent otherwise. */
  readonly error?: unknown;
  /** The tags of the machine's current states. */
  readonly tags?: unknown;
  /** The actors that the machine has started, by id. */
  readonly children?: unknown;
  /** The ids of the states that the machine's history states remember. */
  readonly historyValue?: unknown;
}

/** Announces an actor. Sent again when another actor with the same name replaces the actor. */
export interface ActorMessage extends BaseMessage {
  /** The message's type in the inspector's protocol. */
  readonly type: '@xstate.actor';
  /** The last part of the actor's path. */
  readonly name: string;
  /** The actor that started it; undefined for a root. */
  readonly parentId: string | undefined;
  /** The machine's configuration as JSON text; `{"id": …}` for an actor without a machine. */
  readonly definition: string;
  /** The first snapshot. */
  readonly snapshot: ShownSnapshot;
}

/** Reports an event sent to an actor. */
export interface EventMessage extends BaseMessage {
  /** The message's type in the inspector's protocol. */
  readonly type: '@xstate.event';
  /** The visible part of the event. */
  readonly event: ShownEvent;
  /** The actor that sent the event; undefined for an external event. */
  readonly sourceId: string | undefined;
}

/** Reports an actor's snapshot after an event. */
export interface SnapshotMessage extends BaseMessage {
  /** The message's type in the inspector's protocol. */
  readonly type: '@xstate.snapshot';
  /** The event that led to the snapshot. */
  readonly event: ShownEvent;
  /** The visible part of the snapshot. */
  readonly snapshot: ShownSnapshot;
}

/** A message of the Stately Inspector's protocol: an actor, an event or a snapshot. */
export type InspectorMessage = ActorMessage | EventMessage | SnapshotMessage;
