// The telemetry of the AI SDK for one model call: who is told of it, and under which name.
//
// Invariants
//   MODEL-TELEMETRY-1. A call that the journal writes a span of goes to no integration that writes OpenTelemetry spans:
//       each of Offstage's calls is one step, so that such an integration would write an agent for each. Every other
//       integration, and a subscriber of the tracing channel, gets it.
//   MODEL-TELEMETRY-2. A call carries the name of its agent as `functionId`.

import { AI_SDK_TELEMETRY_TRACING_CHANNEL, type TelemetryOptions } from 'ai';
import type { Journal } from '../ports/journal.ts';

/** The agent that makes a model call. */
export interface ModelCaller {
  /** The agent, or the task of the runtime. */
  readonly name: string;
  /** Has the events of the call. @defaultValue none has them */
  readonly journal?: Pick<Journal, 'tracesModelCalls'>;
}

interface Diagnostics {
  tracingChannel?(name: string): { readonly hasSubscribers?: boolean };
}

// Not imported: a runtime without Node's modules has no such channel, and needs none.
const diagnostics: Diagnostics | undefined = globalThis.process?.getBuiltinModule?.(
  'node:diagnostics_channel',
);

const channel = diagnostics?.tracingChannel?.(AI_SDK_TELEMETRY_TRACING_CHANNEL);

/**
 * Returns the telemetry setting of a call; null without a listener. The caller then passes `telemetryOff`, because the
 * SDK prepares its telemetry events even when nobody listens, which is half the CPU of a step.
 */
export function telemetryOf(caller: ModelCaller): TelemetryOptions | null {
  const registered = globalThis.AI_SDK_TELEMETRY_INTEGRATIONS ?? [];
  // A channel that cannot report whether it has subscribers may have some.
  const isObserved = channel !== undefined && channel.hasSubscribers !== false;
  if (registered.length === 0 && !isObserved) return null;
  const functionId = caller.name;
  if (!registered.some(writesSpans) || caller.journal?.tracesModelCalls?.() !== true)
    return { functionId };
  const integrations = registered.filter((integration) => !writesSpans(integration));
  return integrations.length > 0 || isObserved ? { functionId, integrations } : null;
}

export const telemetryOff = { isEnabled: false } as const satisfies TelemetryOptions;

/** Whether it has a tracer of OpenTelemetry, as the integrations of `@ai-sdk/otel` have. */
function writesSpans(integration: object): boolean {
  if (!('tracer' in integration)) return false;
  const { tracer } = integration;
  return typeof tracer === 'object' && tracer !== null && 'startSpan' in tracer;
}
