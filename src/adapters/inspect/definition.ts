// The chart of a machine for an inspector: its configuration as JSON text, part by part. The parts that
// machines read are kept (states, events, targets, the names of actions, guards and actors); data inside it
// (initial context, params, meta, descriptions) is redacted like any other data.

import type { Redact } from './redact.ts';
import { shownValue, type Budget } from './shown-value.ts';

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

/** A list, or a single item. */
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

/** An action or a guard: a name, an object with a type, or a function. */
const named: Part = (value, write) =>
  typeof value === 'object' ? fields(value, namedParts, write) : name(value, write);

const namedParts: Parts = { type: name, params: data('params') };

/** `undefined` is a transition, too: it forbids the event. */
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

const ENVELOPE_BYTES = 200;

/**
 * Returns the definition of an actor's logic. `config` is its configuration; logic that is not a machine is
 * only named. A definition longer than `maxBytes` is left out, and its description says so.
 */
export function definitionOf(
  config: unknown,
  actorName: string,
  redact: Redact,
  maxBytes: number,
): string {
  if (typeof config !== 'object' || config === null) return JSON.stringify({ id: actorName });
  const write = { redact, budget: { bytesLeft: maxBytes - ENVELOPE_BYTES } };
  const text = JSON.stringify(state(config, write));
  // Encoded twice: within a message it is a text again, with its quotes escaped.
  const { length: bytes } = new TextEncoder().encode(JSON.stringify(text));
  if (bytes <= maxBytes) return text;
  return JSON.stringify({
    id: actorName,
    description: `[truncated: a definition of ${bytes} bytes]`,
  });
}
