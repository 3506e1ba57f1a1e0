// The usage of a lead agent's model: an entry of the session for each report, with its cost, and the sums for screens.
//
// LEAD-USAGE-1. Usage is counted once, by its entry, whichever process it was in. Screens and hooks get it when
//     it is in the journal. Usage after the end of a session (facts are extracted then) is reported to the hook alone: by
//     then the journal may belong to another process.

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

/** A report of a lead agent's model. */
interface Report extends ModelNames, Pick<PricedCall, 'name'> {
  /** As the provider counted it; anything else than a count is passed over. */
  readonly counted: Reported;
  /** For `price`, where the provider has counted nothing. @defaultValue as it was counted */
  readonly estimated?: Omit<Usage, 'cost'> | undefined;
  /** When a call began that is none of the response under way, in milliseconds since 1970. */
  readonly beganAt?: number;
  /** How long the call took, in milliseconds. @defaultValue not known */
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

/** Puts what the model has used into the journal. After the end of the session only its hook is told. */
export function reportUsage(
  session: Counting,
  { counted, estimated, beganAt, tookMs, ...names }: Report,
): void {
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
    if (!used) return;
    records.note({ usage: addLeadUsage(records.usage, used) });
    const all = usageOfBoth(records.usage, tree.usage);
    callSafely(host, 'hook onUsage', () => hooks.onUsage?.({ usage: all, used }));
  } else if (beganAt !== undefined)
    session.receive('usage', { ...event, usage: used ?? NO_LEAD_USAGE, beganAt });
  else if (tookMs !== undefined)
    session.receive('usage', { ...event, usage: used ?? NO_LEAD_USAGE, tookMs });
  else if (used) session.receive('usage', { ...event, usage: used });
}

/** Counts the calls that are made for a conversation beside those of its agents (LEAD-USAGE-1). */
export function modelCallsOf(session: Counting): ModelCalls {
  return {
    used(use) {
      const { usage, ...rest } = readUse(use);
      reportUsage(session, { ...rest, counted: usage });
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

/** Shows what the conversation has used so far. `used`: by the lead agent's model just now. */
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
