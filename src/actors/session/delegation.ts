// The subagents of one session: admitted, started, listed, cancelled, and stopped with it.
//
// Owns:     the live subagents, each a root actor in a map, and whom each works for.
// Does not: decide limits (supervisor), ask the user or deliver results (session).
//
// Invariants
//   D1. Every request is accepted or rejected, once; every accepted one is reported ended once.
//   D2. Nothing outlives the session: `stop` cancels all, `kill` ends what is left, and
//       `allEnded` resolves when the last one is gone and disposed.

import type { LanguageModel } from 'ai';
import type { Failure } from '../../machines/index.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentView } from '../session-views.ts';
import type { SubagentDefinition } from '../subagent/config.ts';
import { prepareInstance, type Briefing } from '../subagent/instance.ts';
import type { Outcome } from '../subagent/outcome.ts';
import { Subagent, type SubagentPorts, type SubagentTask } from '../subagent/subagent.ts';
import type { StepReport } from '../subagent/think.ts';
import { rejected, type Supervisor } from '../supervisor/supervisor.ts';
import type { AskedQuestion } from './records.ts';

export interface DelegationPorts {
  brief(definition: SubagentDefinition, task: SubagentTask): Promise<Briefing>;
  ask(question: AskedQuestion): void;
  withdraw(requestId: string): void;
  changed(view: SubagentView): void;
  stepped(view: SubagentView, report: StepReport): void;
  /** `callId` is the lead agent's call that it worked for, if any. */
  ended(view: SubagentView, outcome: Outcome, callId: string | null): void;
}

interface Entry {
  readonly subagent: Subagent;
  readonly callId: string | null;
}

export type Delegated =
  | { readonly status: 'accepted'; readonly subagentId: string }
  | { readonly status: 'rejected'; readonly error: Failure };

export class Delegation {
  readonly #host: Host;
  readonly #sessionId: string;
  readonly #supervisor: Supervisor;
  readonly #model: LanguageModel | undefined;
  readonly #ports: DelegationPorts;
  /** One for all: ten thousand subagents need not have their own. */
  readonly #subagentPorts: SubagentPorts;
  readonly #live = new Map<string, Entry>();
  readonly #disposing = new Set<Promise<void>>();
  #whenEnded: (() => void)[] = [];
  #isStopping = false;

  constructor(
    host: Host,
    sessionId: string,
    supervisor: Supervisor,
    model: LanguageModel | undefined,
    ports: DelegationPorts,
  ) {
    this.#host = host;
    this.#sessionId = sessionId;
    this.#supervisor = supervisor;
    this.#model = model;
    this.#ports = ports;
    this.#subagentPorts = this.#makePorts();
  }

  get live(): readonly Subagent[] {
    return [...this.#live.values()].map(({ subagent }) => subagent);
  }

  get(id: string): Subagent | undefined {
    return this.#live.get(id)?.subagent;
  }

  ofCall(callId: string): Subagent | undefined {
    for (const entry of this.#live.values()) if (entry.callId === callId) return entry.subagent;
    return undefined;
  }

  delegate(definition: SubagentDefinition, task: SubagentTask, callId: string | null): Delegated {
    if (this.#isStopping) return rejected('SESSION_CLOSED', 'The session is being closed');
    const id = this.#host.environment.ids.next('sub');
    const admission = this.#supervisor.admit(this.#sessionId, id, 1);
    if (admission.status === 'rejected') return admission;
    const subagent = new Subagent(this.#host, id, definition, task, this.#subagentPorts);
    this.#live.set(id, { subagent, callId });
    subagent.start();
    this.#ports.changed(viewOf(subagent, callId));
    return { status: 'accepted', subagentId: id };
  }

  /** False if there is none that has not ended. */
  cancel(id: string, reason: string): boolean {
    const entry = this.#live.get(id);
    entry?.subagent.cancel(reason);
    return entry !== undefined;
  }

  stop(reason: string): void {
    this.#isStopping = true;
    for (const { subagent } of this.#live.values()) subagent.cancel(reason);
  }

  kill(reason: string): void {
    for (const { subagent } of this.#live.values()) subagent.kill(reason);
  }

  /** Calls back once nobody is left and every instance is disposed; at once if so. */
  whenEnded(callback: () => void): void {
    this.#whenEnded.push(callback);
    this.#checkEnded();
  }

  #makePorts(): SubagentPorts {
    const session = this.#sessionId;
    return {
      path: session,
      prepare: ({ definition, task }, signal) =>
        prepareInstance(this.#host, definition, this.#model, signal, (own) =>
          this.#ports.brief(own, task),
        ),
      requestSlot: (id, resumed, grant) =>
        this.#supervisor.requestSlot(session, id, resumed, grant),
      releaseSlot: (id) => this.#supervisor.releaseSlot(session, id),
      ask: (question) => this.#ports.ask(question),
      withdraw: (requestId) => this.#ports.withdraw(requestId),
      changed: (subagent) => this.#ports.changed(this.#view(subagent)),
      stepped: (subagent, report) => this.#ports.stepped(this.#view(subagent), report),
      ended: (subagent, outcome, disposed) => this.#ended(subagent, outcome, disposed),
    };
  }

  #view(subagent: Subagent): SubagentView {
    return viewOf(subagent, this.#live.get(subagent.id)?.callId ?? null);
  }

  #ended(subagent: Subagent, outcome: Outcome, disposed: Promise<void>): void {
    const entry = this.#live.get(subagent.id);
    if (!entry) return;
    const view = { ...this.#view(subagent), endedAt: this.#host.environment.clock.now() };
    this.#live.delete(subagent.id);
    this.#supervisor.ended(this.#sessionId, subagent.id);
    this.#disposing.add(disposed);
    void disposed.then(() => {
      this.#disposing.delete(disposed);
      this.#checkEnded();
    });
    this.#ports.ended(view, outcome, entry.callId);
  }

  #checkEnded(): void {
    if (this.#live.size > 0 || this.#disposing.size > 0) return;
    const waiting = this.#whenEnded;
    this.#whenEnded = [];
    for (const callback of waiting) callback();
  }
}

function viewOf(subagent: Subagent, callId: string | null): SubagentView {
  const { outcome } = subagent;
  const ended = outcome && (outcome.status === 'lost' || outcome.status === 'timed_out');
  return {
    id: subagent.id,
    name: subagent.definition.name,
    callId,
    toolName: subagent.task.toolName,
    task: subagent.task.description,
    state: ended ? 'failed' : subagent.state,
    step: subagent.step,
    maxSteps: subagent.definition.maxSteps,
    startedAt: subagent.startedAt,
    endedAt: null,
    progress: subagent.progress,
    outcome,
  };
}
