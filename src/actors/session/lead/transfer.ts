// Transfers: one agent of the session passes the lead on to another.
//
//   asked ─▶ onExit ─▶ agent.exited ─▶ transferring ─▶ active ─▶ onEnter ─▶ agent.entered
//     └─ refused: nothing has changed        └─ failed: the former agent leads on, and enters again
//
// Owns:     the transfer under way, and the hooks of the agents around it.
// Does not: decide when the connection may change (session machine), change it (lead), or know the lead agent
//           (records). Subagents are not affected.
//
// Invariants
//   TRANSFER-1. One transfer at a time. A request meanwhile is refused (a tool) or comes after it, the last
//       one only (a hook).
//   TRANSFER-2. There is always a lead agent: `agent.exited` and `agent.entered` alternate, and the agent
//       that entered last is the one in charge.
//   TRANSFER-3. A requester is answered once, when the transfer is done or has failed. Hooks that throw or
//       take too long are reported and hold up nothing.

import { OffstageError } from '../../../values/errors.ts';
import type { Failure, Stamped } from '../../../machines/index.ts';
import { callSafely, type Host } from '../../runtime/host.ts';
import type { AgentContext } from './agent-context.ts';
import type { LeadAgents, LeadAgent } from './agents.ts';
import type { SessionHooks } from './hooks.ts';
import type { LeadDriver } from './lead.ts';
import type { Projection } from '../state/projection.ts';
import type { EventFor, Receiver, SessionMessage } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { TransferCall } from './transfer-tool.ts';

/** The session as a transfer sees it. */
export interface TransferSession extends Receiver {
  readonly lead: LeadDriver;
  readonly host: Host;
  readonly hooks: SessionHooks;
  readonly projection: Projection;
  readonly unit: SessionUnit;
}

/** The agents as a transfer sees them. */
export interface TransferAgents {
  readonly all: LeadAgents;
  /** Returns the current lead agent. */
  leading(): LeadAgent;
  contextOf(agentName: string): AgentContext;
}

/** The answer to the model that requested a transfer. */
export type TransferAnswer =
  | { readonly status: 'transferred'; readonly agent_name: string }
  | { readonly error: string; readonly code: string };

const HOOK_TIMEOUT_MS = 5000;

export class Transfers {
  readonly #session: TransferSession;
  readonly #agents: TransferAgents;
  readonly #waiting = new Map<string, (error: Failure | null) => void>();
  readonly #hooks = new Set<() => void>();
  #isUnderWay = false;
  #hasBegun = false;
  /** The agent that a hook has requested meanwhile. */
  #requested: string | null = null;

  constructor(session: TransferSession, agents: TransferAgents) {
    this.#session = session;
    this.#agents = agents;
  }

  /**
   * Begins when the session is connected: its first agent begins to lead, or the one that led when the
   * previous process ended. Later calls do nothing. `before`: the hooks that have run already.
   */
  begin(before: Pick<Recovery, 'hasEntered' | 'hasGreeted' | 'takesOverFrom'> | null): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { lead } = this.#session;
    const agent = this.#agents.leading();
    const from = before?.takesOverFrom ?? null;
    if (from === null && (!agent.onEnter || before?.hasEntered || before?.hasGreeted)) {
      this.#entered(agent.name, null);
      if (!before?.hasGreeted) lead.greet();
      return;
    }
    this.#isUnderWay = true;
    void this.#enter(agent, from).then(() => {
      this.#isUnderWay = false;
      this.#noteEntered(agent);
      if (!this.#isOver) lead.greet();
      this.#goOn();
    });
  }

  /** True while an agent enters or leaves, or a hook's request waits. */
  get isUnderWay(): boolean {
    return this.#isUnderWay || this.#requested !== null;
  }

  /** Resolves when the transfer is done, or with the reason of its failure. Never rejects. */
  async transfer(to: string, call: TransferCall | null): Promise<TransferAnswer> {
    const session = this.#session;
    const from = this.#agents.leading();
    const callId = call?.callId ?? null;
    const refusal = this.#refusal(to, call?.agentName ?? from.name);
    const successor = this.#agents.all.get(to);
    if (refusal || !successor) return this.#failed(from.name, to, callId, refusal ?? unknown(to));
    this.#isUnderWay = true;
    await this.#exit(from, to);
    const error = this.#isOver ? closed : await this.#handOver(successor);
    if (!this.#isOver) await this.#enter(error ? from : successor, from.name);
    this.#isUnderWay = false;
    if (error) {
      this.#goOn();
      return this.#failed(from.name, to, callId, error);
    }
    if (isToEnter(successor)) this.#noteEntered(successor);
    session.projection.emit({ type: 'transfer.completed', from: from.name, to, callId });
    callSafely(session.host, 'hook onTransfer', () =>
      session.hooks.onTransfer?.({ from: from.name, to, error: null }),
    );
    if (!this.#isOver) session.lead.greet();
    this.#goOn();
    return { status: 'transferred', agent_name: to };
  }

  /** Requests a transfer from a hook: it begins when the current one is over, never within the hook. */
  request(to: string): void {
    this.#requested = to;
    this.#session.host.environment.scheduler.yieldThen(() => this.#goOn());
  }

  /** Settles the transfer: the machine has completed it, or reports why not. */
  settle(transferId: string, error: Failure | null): void {
    this.#waiting.get(transferId)?.(error);
    this.#waiting.delete(transferId);
  }

  /** Ends all transfers with the session. */
  stop(): void {
    this.#requested = null;
    for (const settle of this.#waiting.values()) settle(closed);
    this.#waiting.clear();
    for (const giveUp of this.#hooks) giveUp();
  }

  get #isOver(): boolean {
    return this.#session.unit.unit.disposed;
  }

  #refusal(to: string, by: string): Failure | null {
    const { all: agents } = this.#agents;
    const agent = this.#agents.leading();
    const { projection } = this.#session;
    if (!agents.get(to)) {
      const others = agents.names.filter((name) => name !== agent.name).map((name) => `"${name}"`);
      return { ...unknown(to), message: `${unknown(to).message}; expected ${others.join(' or ')}` };
    }
    if (by !== agent.name) return refused('NOT_LEADING', `Agent "${agent.name}" leads already`);
    if (to === agent.name) return refused('ALREADY_LEADING', `Agent "${to}" leads already`);
    if (this.#isUnderWay)
      return refused('TRANSFER_IN_PROGRESS', 'Another transfer is under way: it comes first');
    if (projection.connection !== 'active') return notActive(projection.connection);
    return null;
  }

  #handOver(successor: LeadAgent): Promise<Failure | null> {
    const transferId = this.#session.host.environment.ids.next('trf');
    return new Promise((resolve) => {
      this.#waiting.set(transferId, resolve);
      this.#session.receive('transfers', {
        type: 'transfer.requested',
        transferId,
        to: successor.name,
        ...(isToEnter(successor) && { enters: true }),
      });
    });
  }

  #failed(from: string, to: string, callId: string | null, error: Failure): TransferAnswer {
    const { host, hooks, projection } = this.#session;
    const { code, message } = error;
    projection.emit({ type: 'transfer.failed', from, to, callId, code, message });
    callSafely(host, 'hook onTransfer', () => hooks.onTransfer?.({ from, to, error }));
    return { error: `${message}. "${this.#agents.leading().name}" leads on.`, code };
  }

  async #exit(agent: LeadAgent, to: string): Promise<void> {
    const { onExit } = agent;
    if (onExit) await this.#hook('onExit', agent, (context) => onExit(context, to));
    this.#session.projection.emit({ type: 'agent.exited', agentName: agent.name, to });
  }

  async #enter(agent: LeadAgent, from: string | null): Promise<void> {
    const { onEnter } = agent;
    if (onEnter) await this.#hook('onEnter', agent, (context) => onEnter(context, from));
    this.#entered(agent.name, from);
  }

  /** Records that the agent has entered, so that it does not enter again in a process that continues. */
  #noteEntered({ name: agentName }: LeadAgent): void {
    this.#session.receive('agents', { type: 'agent.entered', agentName });
  }

  #entered(agentName: string, from: string | null): void {
    this.#session.projection.emit({ type: 'agent.entered', agentName, from });
  }

  #goOn(): void {
    const to = this.#requested;
    if (to === null || this.#isUnderWay || this.#isOver) return;
    this.#requested = null;
    void this.transfer(to, null);
  }

  /** Calls a hook of the app and waits for it, for a limited time (TRANSFER-3). */
  #hook(name: string, agent: LeadAgent, call: (context: AgentContext) => unknown): Promise<void> {
    const { host } = this.#session;
    const where = `${name} of agent "${agent.name}"`;
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#hooks.delete(end);
        resolve();
      };
      const cancel = host.environment.scheduler.schedule(() => {
        const message = `Expected it to be done within ${HOOK_TIMEOUT_MS} ms: it is not waited for`;
        host.report(new OffstageError('HOOK_TIMEOUT', message), where);
        end();
      }, HOOK_TIMEOUT_MS);
      this.#hooks.add(end);
      (async () => call(this.#agents.contextOf(agent.name)))()
        .catch((error: unknown) => host.report(error, where))
        .then(end, end);
    });
  }
}

/** Tells whether the agent does something before its first response. */
function isToEnter({ onEnter, greeting }: LeadAgent): boolean {
  return onEnter !== undefined || greeting !== undefined;
}

/**
 * Applies a request: the machine transfers, or the request is refused. The consequences stay within the unit.
 */
export function transferRequested(
  unit: SessionUnit,
  requested: EventFor<'transfers'> & Stamped,
): readonly SessionMessage[] {
  const { transferId, to, enters = false, at } = requested;
  const event = { type: 'transfer.started', transferId, to, ...(enters && { enters }) } as const;
  if (unit.accepts('session', { ...event, at })) return [{ actor: 'session', event }];
  unit.post('transfers.refused', { transferId });
  return [];
}

/** Returns the reason why the session does not transfer now. */
export function notActive(connection: string): Failure {
  return refused('SESSION_NOT_ACTIVE', `The session is ${connection}: expected it to be active`);
}

function refused(code: string, message: string): Failure {
  return { code, message, retryable: code !== 'UNKNOWN_AGENT' };
}

function unknown(to: string): Failure {
  return refused('UNKNOWN_AGENT', `There is no agent "${to}"`);
}

const closed: Failure = {
  code: 'SESSION_CLOSED',
  message: 'The session was closed',
  retryable: false,
};

/** The facts about the lead agent that a continuing session restores. */
export interface Recovery {
  /** Words were said since the current agent began to lead: it has entered, and greeted. */
  readonly hasGreeted: boolean;
  /** The `onEnter` of the first agent is done, or another agent has taken over from it. */
  readonly hasEntered: boolean;
  /** The agent from which the current one took over, if its `onEnter` was not done; null: it has entered. */
  readonly takesOverFrom: string | null;
  readonly owesReply: boolean;
}
