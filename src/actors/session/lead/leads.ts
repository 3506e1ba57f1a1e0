// Who leads the conversation, what that agent is told, and what its hooks are told.
//
// Owns:     the agents of the session, and their faces of it.
// Does not: know who leads (books), or change it (transfer).

import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { callSafely } from '../../runtime/host.ts';
import { note, wordsOfApp } from '../../notes/note.ts';
import type { NoteMarks } from '../../notes/note-marks.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import type { AgentContext } from './agent-context.ts';
import { Agents, type MainAgent } from './agents.ts';
import type { Books } from '../state/books.ts';
import { leadInstructions, type SetDirective } from '../../contracts/directives.ts';
import type { LeadTool } from './lead-tools.ts';
import { Transfers, type TransferSession } from './transfer.ts';

/** What the lead agents see of their session. */
export interface LeadsSession extends TransferSession {
  readonly id: string;
  readonly books: Books;
  readonly notes: NoteMarks;
  /** The newest facts that are remembered of the user. */
  facts(limit: number): Promise<readonly MemoryFact[]>;
  /** To the clients. */
  sendJson(data: unknown): void;
}

const TURNS_FOR_HOOK = 5;

export class Leads {
  readonly transfers: Transfers;
  readonly #session: LeadsSession;
  readonly #agents: Agents;
  /** What agents with a function for instructions last said. */
  readonly #lastWords = new Map<string, string>();

  /** @throws {ConfigurationError} for agents that cannot work. */
  constructor(
    session: LeadsSession,
    agents: readonly MainAgent[],
    subagents: Readonly<Record<string, unknown>>,
  ) {
    this.#session = session;
    this.#agents = new Agents(agents, subagents, (to, call) => this.transfers.transfer(to, call));
    this.transfers = new Transfers(session, {
      all: this.#agents,
      leading: () => this.agent,
      contextOf: (agentName) => this.contextOf(agentName),
    });
  }

  /** The agent that leads. */
  get agent(): MainAgent {
    return this.#agents.get(this.#session.books.agentName) as MainAgent;
  }

  /**
   * After a crash: nobody else can take over what the one that led had begun.
   * @throws {ConfigurationError} `UNKNOWN_AGENT`.
   */
  checkLeader(): void {
    const { agentName } = this.#session.books;
    if (this.#agents.get(agentName)) return;
    throw new ConfigurationError(
      'UNKNOWN_AGENT',
      `The session is led by "${agentName}". Expected it among the agents, got ${this.#agents.names.join(', ')}`,
    );
  }

  /** Prepares the tools of all agents, before anybody connects. */
  prepare(): Promise<void> {
    return this.#agents.prepare();
  }

  /** What an agent may call; none before `prepare`. */
  toolsOf(agentName: string): ReadonlyMap<string, LeadTool> {
    return this.#agents.toolsOf(agentName);
  }

  /**
   * What an agent is told if it leads: its language, its instructions, the directives in force, and how
   * it recognises a note of the runtime.
   */
  instructionsOf(agentName: string): string {
    const { agentName: leader, directives } = this.#session.books;
    const inForce = agentName === leader ? directives : directives.withoutAgents();
    const agent = this.#agents.get(agentName);
    const words = this.#wordsOf(agentName);
    const told = leadInstructions(words, agent?.language, inForce.inForce);
    return `${told}\n\n${this.#session.notes.recognition}`.trim();
  }

  readonly setDirective: SetDirective = (key, value, scope = 'session') => {
    this.#session.unit.unit.checkRoom();
    this.#session.books.directives.check(key, value, scope);
    this.#session.tell('directives', { type: 'directive.set', key, value, scope });
  };

  contextOf(agentName: string): AgentContext {
    const session = this.#session;
    return {
      sessionId: session.id,
      agentName,
      injectSystemMessage: (text) => {
        check('injectSystemMessage(text)', z.string(), text, 'INVALID_ARGUMENT');
        if (!session.unit.unit.disposed)
          session.lead.note(note(wordsOfApp(session.notes.guard(text))));
      },
      getRecentTurns: (count = 10) => session.books.conversation.recentTurns(count),
      getMemoryFacts: (limit = 10) => session.facts(limit),
      requestTransfer: (to) =>
        this.transfers.request(
          check('requestTransfer(agentName)', z.string(), to, 'INVALID_ARGUMENT'),
        ),
      setDirective: this.setDirective,
      sendJsonToClient: (data) => session.sendJson(data),
    };
  }

  /** The model has said what it had to say. */
  turnEnded(): void {
    const { books, host, hooks, projection } = this.#session;
    const { turns: turn, agentName } = books;
    projection.emit({ type: 'turn.ended', turn, agentName });
    callSafely(host, 'hook onTurnEnd', () => hooks.onTurnEnd?.({ turn, agentName }));
    const { onTurnCompleted } = this.agent;
    if (!onTurnCompleted) return;
    callSafely(host, `onTurnCompleted of agent "${agentName}"`, () =>
      onTurnCompleted(this.contextOf(agentName), books.conversation.recentTurns(TURNS_FOR_HOOK)),
    );
  }

  #wordsOf(agentName: string): string {
    const instructions = this.#agents.get(agentName)?.instructions ?? '';
    if (typeof instructions === 'string') return instructions;
    callSafely(this.#session.host, `instructions of agent "${agentName}"`, () => {
      const words: unknown = instructions(this.contextOf(agentName));
      if (typeof words !== 'string')
        throw new ConfigurationError('INVALID_OPTION', `Expected text, got ${typeof words}`);
      this.#lastWords.set(agentName, words);
    });
    return this.#lastWords.get(agentName) ?? '';
  }
}
