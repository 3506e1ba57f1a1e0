// What a new connection to the model begins with: where another one ended, the conversation
// in its first message, or nothing. And so what it is still to be told.
//
// Owns:     what the wire gave to go on with, and what the model knew when its connection ended.
// Does not: open connections, or tell anything.
//
// Invariants
//   CONTINUATION-1. A model that goes on knows what was in the conversation when its connection ended:
//       what that was told and its server had not taken, the adapter tells again. One that took
//       the history knows that. Any other knows nothing. What it does not know it is told.
//       What was said on the connection itself it knows, also where that is not in the conversation yet.
//   CONTINUATION-2. What the server did not want to go on from is not tried again. What it gave no answer
//       to is, `MAX_UNANSWERED` times.

import type { Environment } from '../../actors/ports/environment.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { TransportCommand, TransportContext, TransportEvent } from './transport.ts';

const MAX_UNANSWERED = 3;

type Ready = Extract<TransportEvent, { type: 'transport.ready' }>;
type Known = ReadonlySet<string>;

const messageName = (itemId: string): string => `message ${itemId}`;

/** A message that was cut since is no other one: of that the model is told in words (model-memory). */
const nameOf = (command: TransportCommand): string =>
  command.type === 'message.add' ? messageName(command.itemId) : JSON.stringify(command);

const knows = (commands: readonly TransportCommand[]): Known => new Set(commands.map(nameOf));

/** How one connection began. */
export class Beginning {
  readonly context: TransportContext;
  /** It was given what another one left. */
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

  /** What the model is to be told, oldest first. */
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
  /** The newest messages that were said on the connection in use: those before are in the conversation. */
  readonly #said = new RecentIds();
  #unanswered = 0;

  /** `told`: what of the history the model in use was told. */
  constructor(
    environment: Environment,
    history: () => readonly TransportCommand[],
    told: () => readonly TransportCommand[],
  ) {
    this.#environment = environment;
    this.#history = history;
    this.#told = told;
  }

  /** The model can be gone on with from where its connection ends. */
  get isPossible(): boolean {
    return this.#resume !== null;
  }

  /** `goesOn`: in the place of one that has ended; else beside one that is in use. */
  begin(goesOn: boolean): Beginning {
    if (goesOn) this.#said.clear();
    const left = goesOn && this.isPossible ? { resume: this.#resume, known: this.#known } : null;
    return new Beginning(this.#environment, this.#history, left);
  }

  /** The connection in use can be gone on from, or (null) not any more. */
  offered(resume: unknown): void {
    this.#resume = resume ?? null;
    this.#unanswered = 0;
  }

  /** Another connection, which was made beside it, is in use now. */
  replaced(resume: unknown): void {
    this.#said.clear();
    this.offered(resume);
  }

  /** The model in use has heard, or said, the whole of this message itself. */
  said(itemId: string): void {
    this.#said.add(messageName(itemId));
  }

  /** The connection in use has ended. */
  ended(): void {
    if (this.isPossible) this.#known = new Set([...knows(this.#told()), ...this.#said.all]);
  }

  /** Its server has answered one that was to go on, by readiness or by refusal: that was its last word. */
  answered({ context }: Beginning): void {
    if (context.resume === this.#resume) this.#resume = null;
  }

  /** One that was to go on has failed before anybody answered. */
  unanswered({ goesOn }: Beginning): void {
    if (!goesOn) return;
    this.#unanswered += 1;
    if (this.#unanswered >= MAX_UNANSWERED) this.#resume = null;
  }
}
