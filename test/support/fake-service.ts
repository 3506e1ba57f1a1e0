// A service of subagents that has no subagents, for tests of tools. The test sets the reports of each subagent. Tests
// of the promises of a service use the real service.

import { filter, firstValueFrom, fromEvent, merge, Subject, take } from 'rxjs';
import type {
  AwaitResult,
  DelegationErrorCode,
  Refused,
  SendRequest,
  SpawnRequest,
  SubagentChunk,
  SubagentReport,
  SubagentService,
} from '../../src/actors/contracts/service-types.ts';

export interface FakeService extends SubagentService {
  readonly spawned: readonly SpawnRequest[];
  readonly sent: readonly (SendRequest & { readonly to: string })[];
  /** The number of waits that have started. */
  readonly waits: number;
  /** The code with which the next spawns are refused, or null if they are accepted. */
  refuse(code: DelegationErrorCode | null): void;
  set(id: string, change: Partial<SubagentReport>): void;
  end(id: string, change?: Partial<SubagentReport>): void;
  ask(id: string, question: string): void;
  report(id: string, note: { update: string; percent: number | null }): { ok: true } | Refused;
}

export function refused(code: DelegationErrorCode, message: string = code): Refused {
  return { ok: false, error: { code, message, retryable: false } };
}

export function fakeService(): FakeService {
  const reports = new Map<string, SubagentReport>();
  const events = new Subject<SubagentChunk>();
  const spawned: SpawnRequest[] = [];
  const sent: (SendRequest & { to: string })[] = [];
  let refusal: DelegationErrorCode | null = null;
  let waits = 0;
  const get = (id: string): SubagentReport => reports.get(id) as SubagentReport;
  const emit = (id: string, more: object): void => {
    const { name, parentId, callId, depth } = get(id);
    events.next({ subagentId: id, name, parentId, callId, depth, at: 0, ...more } as SubagentChunk);
  };
  const set = (id: string, change: Partial<SubagentReport>): void => {
    reports.set(id, { ...get(id), ...change });
  };
  const unknown = (id: string) => refused('NOT_FOUND', `There is no subagent "${id}"`);
  return {
    id: 'fake',
    events,
    spawned,
    sent,
    get waits() {
      return waits;
    },
    refuse(code) {
      refusal = code;
    },
    set,
    checkInputs: async () => null,
    end(id, change = {}) {
      const state = change.state ?? 'completed';
      set(id, { state, endedAt: 1, pendingRequest: null, ...change });
      const { result: output, error } = get(id);
      emit(id, { type: 'ended', outcome: { status: state, output: output ?? null, error } });
    },
    ask(id, question) {
      const request = { requestId: `${id}.q1`, question, askedAt: 0, dueAt: 60_000 };
      set(id, { state: 'waiting_for_input', pendingRequest: request });
      emit(id, { type: 'input.requested', request });
    },
    spawn(request) {
      if (refusal)
        return { status: 'rejected', error: { code: refusal, message: refusal, retryable: false } };
      spawned.push(request);
      const id = `sub_${spawned.length}`;
      reports.set(id, {
        id,
        name: request.config.name,
        task: request.task.description,
        toolName: request.task.toolName,
        state: 'spawning',
        step: 0,
        hung: false,
        pendingRequest: null,
        progress: [],
        depth: 1,
        parentId: request.caller.subagentId,
        callId: request.callId ?? null,
        workstreamId: request.workstreamId ?? null,
        startedAt: 0,
        lastActiveAt: 0,
        endedAt: null,
        outcome: null,
      });
      return { status: 'accepted', subagentId: id };
    },
    raiseBudget: (id) => unknown(id),
    check: (id) => (reports.has(id) ? { ok: true, report: get(id) } : unknown(id)),
    list: (_, { includeEnded = false } = {}) =>
      [...reports.values()].filter(({ endedAt }) => includeEnded || endedAt === null),
    send(to, message) {
      if (!reports.has(to)) return unknown(to);
      if (get(to).endedAt !== null) return refused('ALREADY_TERMINAL');
      const { pendingRequest } = get(to);
      const resolvedPending = message.inResponseTo !== undefined;
      if (resolvedPending && message.inResponseTo !== pendingRequest?.requestId)
        return refused('INVALID_STATE', `No request "${message.inResponseTo}" is open`);
      sent.push({ ...message, to });
      if (resolvedPending) {
        set(to, { state: 'running', pendingRequest: null });
        emit(to, { type: 'input.settled', requestId: message.inResponseTo, how: 'answered' });
      }
      return {
        ok: true,
        messageId: `m${sent.length}`,
        resolvedPending,
        receipt: Promise.resolve({ applied: true, step: 2 }),
        written: Promise.resolve(),
      };
    },
    async await(ids, _, { mode = 'all', signal } = {}): Promise<AwaitResult> {
      waits += 1;
      for (const id of ids) if (!reports.has(id)) return unknown(id);
      for (;;) {
        const all = ids.map(get);
        const ended = all.filter(({ endedAt }) => endedAt !== null).length;
        const isOver = mode === 'all' ? ended === ids.length : ended > 0;
        const asks = all.some(({ pendingRequest }) => pendingRequest);
        if (isOver || asks)
          return { ok: true, why: isOver ? 'ended' : 'asked', reports: all, alsoAsking: [] };
        if (signal?.aborted) return refused('CANCELLED', 'The wait was broken off');
        const next = events.pipe(filter(({ type }) => type !== 'progress'));
        await firstValueFrom(
          (signal ? merge(next, fromEvent(signal, 'abort')) : next).pipe(take(1)),
        );
      }
    },
    cancel(id, _, reason = 'cancelled') {
      if (!reports.has(id) || get(id).endedAt !== null) return false;
      const error = { code: 'CANCELLED', message: `Cancelled: ${reason}`, retryable: false };
      set(id, { state: 'cancelled', endedAt: 1, error });
      emit(id, { type: 'ended', outcome: { status: 'cancelled', output: null, error } });
      return true;
    },
    report(id, { update, percent }) {
      set(id, { progress: [...get(id).progress, { update, percent, at: 0 }].slice(-50) });
      return { ok: true };
    },
    delivered() {},
    sweep: () => 0,
  };
}

/** Returns the options that the AI SDK passes to `execute`. */
export function callOptions(more: object = {}) {
  return { toolCallId: 'call_1', messages: [], context: undefined, ...more } as never;
}
