// Deletes the data of Temporal workflows. The workflows are found in the visibility store, which may be slightly
// outdated. Each workflow is then queried until Temporal no longer has it.
//
// Does not: erase bytes from the disk of Temporal's database, or from an archive (docs/engines.md).

import { propertiesOf } from '../../values/json.ts';
import { JobError, unreachable } from '../../actors/ports/jobs.ts';
import { nameOf } from './temporal-sdk.ts';

/**
 * The client methods that deletion uses: `start` and `getHandle` start and query workflows, and the other methods find
 * and delete them.
 */
export interface TemporalClientOf<Handle> {
  /** Like `options` of `Client`. Deletion uses the namespace. @defaultValue the namespace `default` */
  readonly options?: { readonly namespace?: string };
  /** Like `workflowService` of `Client`, which deletes executions. @defaultValue none: nothing can be deleted */
  readonly workflowService?: { deleteWorkflowExecution(request: object): Promise<unknown> };
  /** Like `workflow` of `Client`. Without `list`, nothing can be deleted. */
  readonly workflow: {
    start(workflowType: string, options: object): Promise<unknown>;
    getHandle(workflowId: string, runId?: string): Handle;
    list?(options: { readonly query: string }): AsyncIterable<TemporalExecution>;
  };
}

type Described = { describe?(): Promise<Partial<TemporalExecution>> };
type DeletingClient = TemporalClientOf<Described>;

export interface TemporalExecution {
  /** The id of the workflow, which stays the same when its history is restarted. */
  readonly workflowId: string;
  /** The id that Temporal gave to this execution of the workflow. */
  readonly runId: string;
  /** The status that Temporal reports, such as `RUNNING`; `UNKNOWN` if it reports none. */
  readonly status: { readonly name: string };
}

/** The maximum number of times that a deleted workflow is queried. */
const LOOKS = 300;

export class TemporalDeletions {
  readonly #client: DeletingClient;

  private constructor(client: DeletingClient) {
    this.#client = client;
  }

  /** Returns null if the client cannot delete. */
  static of(client: DeletingClient): TemporalDeletions | null {
    const { workflow, workflowService } = client;
    return workflow.list && workflowService ? new TemporalDeletions(client) : null;
  }

  /** Returns the executions that match a condition in Temporal's list filter language. */
  async find(condition: string): Promise<readonly TemporalExecution[]> {
    const found: TemporalExecution[] = [];
    try {
      const listed = this.#client.workflow.list?.({ query: condition }) ?? [];
      for await (const execution of listed) found.push(execution);
    } catch (error) {
      throw unreachable('Temporal', error);
    }
    return found;
  }

  /** Returns a workflow's latest execution from Temporal's history service; null if there is none. */
  async latest(workflowId: string, runId?: string): Promise<TemporalExecution | null> {
    try {
      const described = await this.#client.workflow.getHandle(workflowId, runId).describe?.();
      if (!described) return null;
      const { runId: id, status } = described;
      return { workflowId, runId: id ?? runId ?? '', status: status ?? { name: 'UNKNOWN' } };
    } catch (error) {
      if (nameOf(error) === 'WorkflowNotFoundError') return null;
      throw unreachable('Temporal', error);
    }
  }

  /** Deletes executions, and terminates those that are running. Resolves when Temporal no longer has any of them. */
  async remove(executions: readonly TemporalExecution[]): Promise<void> {
    for (const execution of executions) await this.#delete(execution);
    for (const { workflowId, runId } of executions)
      for (let look = 1; (await this.latest(workflowId, runId)) !== null; look += 1)
        if (look === LOOKS)
          throw new JobError('JOBS_UNREACHABLE', `Temporal is still deleting ${workflowId}`, {
            retryable: true,
          });
  }

  async #delete({ workflowId, runId }: TemporalExecution): Promise<void> {
    const { namespace = 'default' } = this.#client.options ?? {};
    try {
      await this.#client.workflowService?.deleteWorkflowExecution({
        namespace,
        workflowExecution: { workflowId, runId },
      });
    } catch (error) {
      if (!isGone(error)) throw unreachable('Temporal', error);
    }
  }
}

/** gRPC: NOT_FOUND. */
function isGone(error: unknown): boolean {
  const { code } = propertiesOf(error);
  return code === 5;
}

/** Ids are encoded, so they contain no quotes or backslashes. */
export function filterText(id: string): string {
  return `"${id}"`;
}
