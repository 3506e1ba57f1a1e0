// The parts of a scope of subagents, wired to each other.
import { Budgets } from '../admission/budgets.ts';
import type { SessionLimits } from '../admission/limits.ts';
import type { Supervisor } from '../admission/supervisor.ts';
import { Awaiting } from './awaiting.ts';
import { Chunks } from './chunks.ts';
import { SubagentRegistry, type SubagentRecord } from './subagent-registry.ts';
import { Health } from './health.ts';
import { Messages } from './messages.ts';
import { Requests } from './requests.ts';
import { Retention } from './retention.ts';
import type { ScopePorts } from './scope-ports.ts';
import type { Requester, SubagentReport } from '../contracts/service-types.ts';
import { SessionInstances } from './session-instances.ts';
import { reportOf } from './views.ts';
import type { BudgetLimits } from '../contracts/config.ts';

export interface DelegationOptions {
  /** Id of the scope; the scope is open at the supervisor. */
  readonly id: string;
  readonly supervisor: Supervisor;
  readonly limits: SessionLimits;
  /** Budget of the whole scope; no bound where it is not set. */
  readonly budget?: BudgetLimits | undefined;
  /** The ports of all subagents whose request names no others. */
  readonly ports: ScopePorts;
  /** Time that the descendants of an ended subagent may take to stop, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
}

export const DEFAULT_GRACE_MS = 5000;

export interface Parts extends Omit<DelegationOptions, 'budget'> {
  readonly graceMs: number;
  readonly budgets: Budgets;
  readonly registry: SubagentRegistry;
  readonly requests: Requests;
  readonly awaiting: Awaiting;
  readonly messages: Messages;
  readonly health: Health;
  readonly retention: Retention;
  readonly instances: SessionInstances;
  readonly chunks: Chunks;
  now(): number;
  /** Records that its result has reached its addressee, also before it ends. */
  delivered(record: SubagentRecord): void;
  /** Builds its report, which counts as delivered to its ancestors. */
  tell(record: SubagentRecord, requester: Requester): SubagentReport;
}

export function makeParts(options: DelegationOptions): Parts {
  const { ports, limits } = options;
  const { environment } = ports.host;
  const now = (): number => environment.clock.now();
  const registry = new SubagentRegistry();
  const chunks = new Chunks(environment.clock);
  const retention = new Retention(registry, limits.stateRetentionMs);
  const instances = new SessionInstances(ports.host);
  const delivered = (record: SubagentRecord): void => {
    const isNew = record.deliveredAt === null;
    retention.delivered(record, now());
    if (isNew) record.admission.ports.delivered?.(record.id, record.parentId);
  };
  const tell = (record: SubagentRecord, { subagentId }: Requester): SubagentReport => {
    if (record.request && record.parentId === subagentId) record.request.isTold = true;
    const report = reportOf(record);
    if (!record.isLive && record.isBelow(subagentId)) delivered(record);
    return report;
  };
  const requests = new Requests({
    environment,
    defaultTimeoutMs: limits.defaultRequestTimeoutMs,
    settled(record, requestId, how) {
      chunks.emit(record, { type: 'input.settled', requestId, how });
      if (record.parentId === null) record.admission.ports.inputSettled?.(requestId);
    },
  });
  const awaiting = new Awaiting({
    environment,
    registry,
    defaultTimeoutMs: limits.defaultAwaitTimeoutMs,
    asking: () => requests.asking,
    lockedBy(id) {
      const record = registry.get(id);
      return record ? instances.before(record) : [];
    },
    began: () => ports.waitBegan?.(),
    over: () => ports.waitEnded?.(),
    tell,
  });
  return {
    ...options,
    graceMs: options.graceMs ?? DEFAULT_GRACE_MS,
    budgets: new Budgets(environment, options.budget),
    registry,
    requests,
    awaiting,
    messages: new Messages(environment.ids),
    health: new Health(limits.inactivityTimeoutMs),
    retention,
    instances,
    chunks,
    now,
    delivered,
    tell,
  };
}
