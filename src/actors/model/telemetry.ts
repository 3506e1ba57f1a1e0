// The AI SDK's telemetry setting for one model call: which integrations receive the call, and the call's name.
//
// Invariants
//   MODEL-TELEMETRY-1. If the journal writes a span for the call, integrations that write OpenTelemetry spans do not
//       receive it, because they would write an agent span for each `generateText`, and each model call is one
//       `generateText`. All other integrations, and subscribers of the tracing channel, receive the call.
//   MODEL-TELEMETRY-2. The call's `functionId` is the name of its agent.

import { AI_SDK_TELEMETRY_TRACING_CHANNEL, type TelemetryOptions } from 'ai';
import type { Journal } from '../ports/journal.ts';

/** The agent that makes a model call. */
export interface ModelCaller {
  /** The name of the agent, or of the runtime's task. */
  readonly name: string;
  /** The journal that contains the call's events. @defaultValue none */
  readonly journal?: Pick<Journal, 'tracesModelCalls'>;
}

interface Diagnostics {
  tracingChannel?(name: string): { readonly hasSubscribers?: boolean };
}

// The module is not imported, because a runtime without Node's modules has no such channel.
const diagnostics: Diagnostics | undefined = globalThis.process?.getBuiltinModule?.(
  'node:diagnostics_channel',
);

const channel = diagnostics?.tracingChannel?.(AI_SDK_TELEMETRY_TRACING_CHANNEL);

/**
 * Returns the telemetry setting for a call; null if no integration or subscriber would receive it. In that case, the
 * caller passes `telemetryOff`, because the SDK would otherwise prepare its telemetry events, which takes half of a
 * step's CPU time.
 */
export function telemetryOf(caller: ModelCaller): TelemetryOptions | null {
  const registered = globalThis.AI_SDK_TELEMETRY_INTEGRATIONS ?? [];
  // A channel that cannot tell whether it has subscribers is assumed to have some.
  const isObserved = channel !== undefined && channel.hasSubscribers !== false;
  if (registered.length === 0 && !isObserved) return null;
  const functionId = caller.name;
  if (!registered.some(writesSpans) || caller.journal?.tracesModelCalls?.() !== true)
    return { functionId };
  const integrations = registered.filter((integration) => !writesSpans(integration));
  return integrations.length > 0 || isObserved ? { functionId, integrations } : null;
}

export const telemetryOff = { isEnabled: false } as const satisfies TelemetryOptions;

/** Returns whether an integration has an OpenTelemetry tracer, like those of `@ai-sdk/otel`. */
function writesSpans(integration: object): boolean {
  if (!('tracer' in integration)) return false;
  const { tracer } = integration;
  return typeof tracer === 'object' && tracer !== null && 'startSpan' in tracer;
}
