// The lead agents of a session: their instructions, and the context of their hooks.
//
// Owns:     the agents of the session, and their contexts.
// Does not: know the current lead agent (records), or change it (transfer).

import { z } from 'zod';
import { check } from '../../../values/checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { callSafely } from '../../runtime/host.ts';
import { note, wordsOfApp } from '../../notes/note.ts';
import type { NoteMarks } from '../../notes/note-marks.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import type { AgentContext } from './agent-context.ts';
import { LeadAgents, type LeadAgent } from './agents.ts';
import type { SessionRecords } from '../state/session-records.ts';
import { leadInstructions, type SetDirective } from '../../contracts/directives.ts';
import type { LeadTool } from './lead-tools.ts';
import { Transfers, type TransferSession } from './transfer.ts';

/** The session as the lead agents see it. */
export interface LeadsSession extends TransferSession {
  readonly id: string;
  readonly records: SessionRecords;
  readonly notes: NoteMarks;
  /** Returns the newest remembered facts of the user. */
  facts(limit: number): Promise<readonly MemoryFact[]>;
  /** Sends JSON to the clients. */
  sendJson(data: unknown): void;
}

const TURNS_FOR_HOOK = 5;

export class Leads {
  readonly transfers: Transfers;
  readonly #session: LeadsSession;
  readonly #agents: LeadAgents;
  /** The last instructions of agents whose instructions are a function. */
  readonly #lastWords = new Map<string, string>();

  /** @throws {ConfigurationError} for agents that cannot work. */
  constructor(
    session: LeadsSession,
    agents: readonly LeadAgent[],
    subagents: Readonly<Record<string, unknown>>,
  ) {
    this.#session = session;
    this.#agents = new LeadAgents(agents, subagents, (to, call) =>
      this.transfers.transfer(to, call),
    );
    this.transfers = new Transfers(session, {
      all: this.#agents,
      leading: () => this.agent,
      contextOf: (agentName) => this.contextOf(agentName),
    });
  }

  /** The current lead agent. */
  get agent(): LeadAgent {
    return this.#agents.get(this.#session.records.agentName) as LeadAgent;
  }

  /**
   * Checks after a crash that the current lead agent exists: no other agent can continue its work.
   * @throws {ConfigurationError} `UNKNOWN_AGENT`.
   */
  checkLeader(): void {
    const { agentName } = this.#session.records;
    if (this.#agents.get(agentName)) return;
    throw new ConfigurationError(
      'UNKNOWN_AGENT',
      `The session is led by "${agentName}". Expected it among the agents, got ${this.#agents.names.join(', ')}`,
    );
  }

  /** Prepares the tools of all agents, before the first connection. */
  prepare(): Promise<void> {
    return this.#agents.prepare();
  }

  /** Returns the tools that an agent may call; empty before `prepare`. */
  toolsOf(agentName: string): ReadonlyMap<string, LeadTool> {
    return this.#agents.toolsOf(agentName);
  }

  /**
   * Builds the instructions of a leading agent: its language, its instructions, the directives in force, and
   * how it recognizes a note of the runtime.
   */
  instructionsOf(agentName: string): string {
    const { agentName: leader, directives } = this.#session.records;
    const inForce = agentName === leader ? directives : directives.withoutAgents();
    const agent = this.#agents.get(agentName);
    const words = this.#wordsOf(agentName);
    const told = leadInstructions(words, agent?.language, inForce.inForce);
    return `${told}\n\n${this.#session.notes.recognition}`.trim();
  }

  readonly setDirective: SetDirective = (key, value, scope = 'session') => {
    this.#session.unit.unit.checkRoom();
    this.#session.records.directives.check(key, value, scope);
    this.#session.receive('directives', { type: 'directive.set', key, value, scope });
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
      getRecentTurns: (count = 10) => session.records.conversation.recentTurns(count),
      getMemoryFacts: (limit = 10) => session.facts(limit),
      requestTransfer: (to) =>
        this.transfers.request(
          check('requestTransfer(agentName)', z.string(), to, 'INVALID_ARGUMENT'),
        ),
      setDirective: this.setDirective,
      sendJsonToClient: (data) => session.sendJson(data),
    };
  }

  /** Calls `onTurnCompleted`: the model has completed its turn. */
  turnEnded(): void {
    const { records, host, hooks, projection } = this.#session;
    const { turns: turn, agentName } = records;
    projection.emit({ type: 'turn.ended', turn, agentName });
    callSafely(host, 'hook onTurnEnd', () => hooks.onTurnEnd?.({ turn, agentName }));
    const { onTurnCompleted } = this.agent;
    if (!onTurnCompleted) return;
    callSafely(host, `onTurnCompleted of agent "${agentName}"`, () =>
      onTurnCompleted(this.contextOf(agentName), records.conversation.recentTurns(TURNS_FOR_HOOK)),
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
