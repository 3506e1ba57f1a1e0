// The telemetry setting of the AI SDK for one model call: which integrations get the call, and under which name.
//
// Invariants
//   MODEL-TELEMETRY-1. If the journal writes a span of a call, no integration that writes OpenTelemetry spans gets the
//       call: each call of Offstage is one `generateText`, and such an integration would write an agent span for each.
//       Every other integration, and a subscriber of the tracing channel, gets the call.
//   MODEL-TELEMETRY-2. A call carries the name of its agent as `functionId`.

import { AI_SDK_TELEMETRY_TRACING_CHANNEL, type TelemetryOptions } from 'ai';
import type { Journal } from '../ports/journal.ts';

/** The agent that makes a model call. */
export interface ModelCaller {
  /** The name of the agent, or of the task of the runtime. */
  readonly name: string;
  /** The journal that has the events of the call. @defaultValue none */
  readonly journal?: Pick<Journal, 'tracesModelCalls'>;
}

interface Diagnostics {
  tracingChannel?(name: string): { readonly hasSubscribers?: boolean };
}

// Not imported: a runtime without Node's modules has no such channel.
const diagnostics: Diagnostics | undefined = globalThis.process?.getBuiltinModule?.(
  'node:diagnostics_channel',
);

const channel = diagnostics?.tracingChannel?.(AI_SDK_TELEMETRY_TRACING_CHANNEL);

/**
 * Returns the telemetry setting of a call; null without a listener. The caller then passes `telemetryOff`, because the
 * SDK would prepare its telemetry events without a listener too, which is half the CPU of a step.
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

/** Returns whether an integration has a tracer of OpenTelemetry, as those of `@ai-sdk/otel` have. */
function writesSpans(integration: object): boolean {
  if (!('tracer' in integration)) return false;
  const { tracer } = integration;
  return typeof tracer === 'object' && tracer !== null && 'startSpan' in tracer;
}
