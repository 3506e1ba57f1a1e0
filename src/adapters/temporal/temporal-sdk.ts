// The parts of Temporal's packages that jobs and runs share. The app passes in the packages; this file does not import
// them.

import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';

/** The part of `@temporalio/activity` that Offstage uses. */
export interface TemporalActivity {
  /** Like `Context` of the package. An activity sends heartbeats with it, and reads its cancellation signal. */
  readonly Context: {
    current(): {
      readonly cancellationSignal: AbortSignal;
      readonly info: {
        readonly heartbeatTimeoutMs?: number | undefined;
        readonly isLocal?: boolean | undefined;
      };
      heartbeat(details?: unknown): void;
      sleep(ms: number): Promise<void>;
    };
  };
}

/** The maximum length of workflow ids. Temporal allows 1,000. */
export const MAX_ID_CHARS = 600;
export const TASK_QUEUE = 'offstage-jobs';
export const HOUR_MS = 3_600_000;
export const HEARTBEAT_TIMEOUT_MS = 10_000;
/** The number of heartbeats within the timeout. */
const HEARTBEATS = 3;

export const activitySchema: z.ZodType = z.custom(
  (value) => typeof (value as Record<string, unknown> | null)?.['Context'] !== 'undefined',
  { error: "expected the package: import * as activity from '@temporalio/activity'" },
);

/** The part of the client that both jobs and runs need. */
export const clientSchema: z.ZodType = z.custom(
  (value) => {
    const { workflow } = (value ?? {}) as {
      readonly workflow?: { readonly start?: unknown; readonly getHandle?: unknown };
    };
    return typeof workflow?.start === 'function' && typeof workflow.getHandle === 'function';
  },
  { error: 'expected a client: new Client({ connection }) of @temporalio/client' },
);

/**
 * Runs the work of an activity, and sends heartbeats until the work has ended. A local activity runs in the process of
 * its workflow. `late`: called once if the work takes too long.
 */
export async function withHeartbeats<T>(
  activity: TemporalActivity,
  work: () => Promise<T>,
  late?: { readonly afterMs: number; readonly call: () => void },
): Promise<T> {
  const context = activity.Context.current();
  if (context.info.isLocal === true) return work();
  let isOver = false;
  const beat = async (): Promise<void> => {
    const everyMs = (context.info.heartbeatTimeoutMs ?? HEARTBEAT_TIMEOUT_MS) / HEARTBEATS;
    let leftMs = late?.afterMs ?? Infinity;
    while (!isOver) {
      context.heartbeat();
      const ms = Math.min(everyMs, leftMs);
      await context.sleep(ms);
      leftMs -= ms;
      if (leftMs > 0 || isOver) continue;
      leftMs = Infinity;
      late?.call();
    }
  };
  // The sleep rejects when the activity is cancelled, which stops the heartbeats.
  beat().catch(() => {});
  try {
    return await work();
  } finally {
    isOver = true;
  }
}

/** Whether the workflow has cancelled the activity. A shutdown of the worker also aborts the signal. */
export function isCancel({ aborted, reason }: AbortSignal): boolean {
  return aborted && messageOf(reason).includes('CANCELLED');
}

/** Returns an error's class name, because the error classes of the packages are not imported. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}
