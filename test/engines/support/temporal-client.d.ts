import type { TemporalClient, TemporalRunsClient } from '../../../src/adapters/temporal/index.ts';

export function connect(address: string): Promise<{
  readonly client: TemporalClient & TemporalRunsClient;
  readonly close: () => Promise<void>;
}>;
export function bundle(
  path: string,
): Promise<{ readonly warnings: readonly string[]; readonly bytes: number; readonly code: string }>;
export function replay(history: unknown, path?: string): Promise<void>;
export function historyOf(client: TemporalClient, workflowId: string): Promise<unknown>;
