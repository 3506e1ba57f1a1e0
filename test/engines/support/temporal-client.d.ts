import type { TemporalHandle, TemporalRunHandle } from '../../../src/adapters/temporal/index.ts';
import type { TemporalClientOf } from '../../../src/adapters/temporal/temporal-deletions.ts';

export type Client = TemporalClientOf<TemporalHandle & TemporalRunHandle>;

export function connect(address: string): Promise<{
  readonly client: Client;
  readonly close: () => Promise<void>;
}>;
export function serves(address: string): Promise<boolean>;
export function bundle(
  path: string,
): Promise<{ readonly warnings: readonly string[]; readonly bytes: number; readonly code: string }>;
export function replay(history: unknown, path?: string): Promise<void>;
export function historyOf(client: Client, workflowId: string): Promise<unknown>;
export function policiesIn(client: Client, workflowId: string): Promise<readonly string[]>;
