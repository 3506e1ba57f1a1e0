// Determines how a new connection to the model begins: where another one ended, with the conversation in its
// first message, or with nothing; and from that, which history it still needs.
//
// Owns:     the transport's resume value, and the model's knowledge when its connection ended.
// Does not: open connections, or send the history.
//
// Invariants
//   CONTINUATION-1. A resumed model knows the conversation as it was when its connection ended; the adapter
//       resends the part that its server had not taken. A model that took the history knows that history. Any
//       other model knows nothing. The session sends every model the part that it does not know. Speech on
//       the connection itself is known to the model, even if it is not in the conversation yet.
//   CONTINUATION-2. A resume value that the server refused is not tried again. A resume value that got no
//       answer is tried up to `MAX_UNANSWERED` times.

import type { Environment } from '../../actors/ports/environment.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { TransportCommand, TransportContext, TransportEvent } from './transport.ts';

const MAX_UNANSWERED = 3;

type Ready = Extract<TransportEvent, { type: 'transport.ready' }>;
type Known = ReadonlySet<string>;

const messageName = (itemId: string): string => `message ${itemId}`;

/** A message that was cut since keeps its name: a note tells the model about the cut (model-memory). */
const nameOf = (command: TransportCommand): string =>
  command.type === 'message.add' ? messageName(command.itemId) : JSON.stringify(command);

const knows = (commands: readonly TransportCommand[]): Known => new Set(commands.map(nameOf));

/** The start of one connection. */
export class Beginning {
  readonly context: TransportContext;
  /** Whether the connection received the resume value of another one. */
  readonly goesOn: boolean;
  readonly #history: () => readonly TransportCommand[];
  readonly #before: Known;
  #taken: Known = new Set();

  constructor(
    environment: Environment,
    history: () => readonly TransportCommand[],
    left: { readonly resume: unknown; readonly known: Known } | null,
  ) {
    this.#history = history;
    this.goesOn = left !== null;
    this.#before = left?.known ?? new Set();
    this.context = {
      environment,
      ...(left && { resume: left.resume }),
      history: () => {
        const commands = history();
        this.#taken = knows(commands);
        return commands;
      },
    };
  }

  /** Returns the messages that the model still needs, oldest first. */
  untold({ resumed, told }: Ready): readonly TransportCommand[] {
    const known = [resumed ? this.#before : [], told ? this.#taken : []].flatMap((set) => [...set]);
    const isKnown = new Set(known);
    return this.#history().filter((command) => !isKnown.has(nameOf(command)));
  }
}

export class Continuation {
  readonly #environment: Environment;
  readonly #history: () => readonly TransportCommand[];
  readonly #told: () => readonly TransportCommand[];
  #resume: unknown = null;
  #known: Known = new Set();
  /**
   * The newest messages that were spoken on the connection in use: all earlier ones are in the conversation.
   */
  readonly #said = new RecentIds();
  #unanswered = 0;

  /** @param told The part of the history that the current model has received. */
  constructor(
    environment: Environment,
    history: () => readonly TransportCommand[],
    told: () => readonly TransportCommand[],
  ) {
    this.#environment = environment;
    this.#history = history;
    this.#told = told;
  }

  /** Whether a new connection can resume where this one ends. */
  get isPossible(): boolean {
    return this.#resume !== null;
  }

  /**
   * Begins a connection. `goesOn`: it replaces one that has ended; otherwise it opens beside the one in use.
   */
  begin(goesOn: boolean): Beginning {
    if (goesOn) this.#said.clear();
    const left = goesOn && this.isPossible ? { resume: this.#resume, known: this.#known } : null;
    return new Beginning(this.#environment, this.#history, left);
  }

  /** Records the resume value of the connection in use; null: it can no longer be resumed. */
  offered(resume: unknown): void {
    this.#resume = resume ?? null;
    this.#unanswered = 0;
  }

  /** Records that a connection opened beside the old one is in use now. */
  replaced(resume: unknown): void {
    this.#said.clear();
    this.offered(resume);
  }

  /** Records that the current model has heard or said the whole of this message itself. */
  said(itemId: string): void {
    this.#said.add(messageName(itemId));
  }

  /** Records the end of the connection in use. */
  ended(): void {
    if (this.isPossible) this.#known = new Set([...knows(this.#told()), ...this.#said.all]);
  }

  /**
   * Records an answer of the server to a resumed connection, readiness or refusal: the resume value is spent.
   */
  answered({ context }: Beginning): void {
    if (context.resume === this.#resume) this.#resume = null;
  }

  /** Records that a resumed connection failed before the server answered. */
  unanswered({ goesOn }: Beginning): void {
    if (!goesOn) return;
    this.#unanswered += 1;
    if (this.#unanswered >= MAX_UNANSWERED) this.#resume = null;
  }
}
