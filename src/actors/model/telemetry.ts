// Detects whether the AI SDK's telemetry has a listener. The SDK prepares its telemetry events even without
// one, which is half the CPU of a step; so it is switched off then.

import { AI_SDK_TELEMETRY_TRACING_CHANNEL, type TelemetryOptions } from 'ai';

interface Diagnostics {
  tracingChannel?(name: string): { readonly hasSubscribers?: boolean };
}

// Not imported: a runtime without Node's modules has no such channel, and needs none.
const diagnostics: Diagnostics | undefined = globalThis.process?.getBuiltinModule?.(
  'node:diagnostics_channel',
);
const channel = diagnostics?.tracingChannel?.(AI_SDK_TELEMETRY_TRACING_CHANNEL);

const off = { isEnabled: false } as const satisfies TelemetryOptions;

/**
 * Returns the telemetry setting; `undefined` leaves it to the SDK: every registered integration and tracer
 * gets its events.
 */
export function telemetryOption(): TelemetryOptions | undefined {
  const integrations = globalThis.AI_SDK_TELEMETRY_INTEGRATIONS?.length ?? 0;
  // A channel that cannot report whether it has subscribers may have some.
  const isTraced = channel !== undefined && channel.hasSubscribers !== false;
  return integrations > 0 || isTraced ? undefined : off;
}
