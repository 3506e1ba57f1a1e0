// The usage of a lead agent's model. Each report is written to the journal with its cost, and the totals are shown on
// screens.
//
//   LEAD-USAGE-1. Usage is counted exactly once, when its entry is folded, no matter in which process it occurred.
//       Screens and hooks receive the usage after it has been written to the journal. After a session has ended, usage
//       (for extracting facts) is reported only to the hook, because the journal may then belong to another process.

import {
  addLeadUsage,
  asUsage,
  leadUsageIn,
  NO_LEAD_USAGE,
  usageOfBoth,
  type LeadUsage,
  type ModelCalls,
  type ModelNames,
  type PricedCall,
  type Usage,
} from '../../contracts/usage.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import { readUse } from '../../model/model-account.ts';
import { costOf } from '../../model/price.ts';
import { callSafely, type Host } from '../../runtime/host.ts';
import type { Projection } from '../state/projection.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionHooks } from './hooks.ts';

type Reported = Readonly<Partial<Record<keyof LeadUsage, unknown>>>;

/** A usage report from a lead agent's model. */
interface Report extends ModelNames, Pick<PricedCall, 'name'> {
  /** The usage, as the provider counted it. Values that are not counts are ignored. */
  readonly counted: Reported;
  /** The usage that `price` receives if the provider counted nothing. @defaultValue `counted` */
  readonly estimated?: Omit<Usage, 'cost'> | undefined;
  /** The start time of a call outside the current response, in milliseconds since 1970. */
  readonly beganAt?: number;
  /** The duration of the call, in milliseconds. @defaultValue unknown */
  readonly tookMs?: number;
}

/** A session whose usage is counted. */
interface Counting extends Receiver {
  readonly host: Host;
  readonly unit: { readonly unit: { readonly disposed: boolean } };
  readonly records: Pick<SessionRecords, 'usage' | 'note'>;
  readonly tree: { readonly usage: Usage };
  readonly hooks: Pick<SessionHooks, 'onUsage'>;
}

/**
 * Writes the model's usage to the journal, and returns it with its cost. After the session has ended, only calls the
 * hook.
 */
export function reportUsage(
  session: Counting,
  { counted, estimated, beganAt, tookMs, ...names }: Report,
): LeadUsage | null {
  const usage = leadUsageIn(counted);
  const cost =
    usage || estimated ? costOf(session.host, pricedCall(names, usage, estimated)) : undefined;
  const used = leadUsageIn({ ...usage, cost });
  const { provider, modelId, name } = names;
  const event = {
    type: 'usage.reported',
    agentName: name,
    model: { provider, modelId },
  } as const;
  if (session.unit.unit.disposed) {
    const { host, records, tree, hooks } = session;
    if (!used) return null;
    records.note({ usage: addLeadUsage(records.usage, used) });
    const all = usageOfBoth(records.usage, tree.usage);
    callSafely(host, 'hook onUsage', () => hooks.onUsage?.({ usage: all, used }));
  } else if (beganAt !== undefined)
    session.receive('usage', { ...event, usage: used ?? NO_LEAD_USAGE, beganAt });
  else if (tookMs !== undefined)
    session.receive('usage', { ...event, usage: used ?? NO_LEAD_USAGE, tookMs });
  else if (used) session.receive('usage', { ...event, usage: used });
  return used;
}

/**
 * Counts model calls made for a conversation by anything other than its agents (LEAD-USAGE-1). `told` receives the
 * usage of each call.
 */
export function modelCallsOf(
  session: Counting,
  told: (used: LeadUsage | null) => void = () => {},
): ModelCalls {
  return {
    used(use) {
      const { usage, ...rest } = readUse(use);
      told(reportUsage(session, { ...rest, counted: usage }));
    },
    tracesModelCalls: () => session.host.journal.tracesModelCalls?.() ?? false,
  };
}

function pricedCall(
  names: ModelNames & Pick<PricedCall, 'name'>,
  usage: LeadUsage | null,
  estimated: Omit<Usage, 'cost'> | undefined,
): PricedCall {
  if (!usage) return { ...names, usage: estimated ?? asUsage({ inputTokens: 0, outputTokens: 0 }) };
  const { audioInputTokens, audioOutputTokens } = usage;
  return {
    ...names,
    usage: {
      ...(estimated ?? asUsage(usage)),
      ...(audioInputTokens !== undefined && { audioInputTokens }),
      ...(audioOutputTokens !== undefined && { audioOutputTokens }),
    },
  };
}

/** Shows the conversation's usage so far. `used`: the latest usage of the lead agent's model. */
export function showUsage(
  {
    records,
    tree,
    projection,
  }: {
    readonly records: Pick<SessionRecords, 'usage'>;
    readonly tree: { readonly usage: Usage };
    readonly projection: Projection;
  },
  used?: LeadUsage,
): void {
  const usage = usageOfBoth(records.usage, tree.usage);
  projection.emit({ type: 'usage.changed', usage, ...(used && { used }) });
}
