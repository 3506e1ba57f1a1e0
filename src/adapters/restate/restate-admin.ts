// Deletes the data of jobs and runs through Restate's admin API.
//
// Does not: erase bytes from Restate's disk: Restate rewrites its files over time (docs/engines.md).

import { z } from 'zod';
import { JobError } from '../../actors/ports/jobs.ts';
import { refused, RestateIngress } from './restate-ingress.ts';

export interface Invocation {
  readonly id: string;
  readonly handler: string;
  readonly isOver: boolean;
  /** The workflow's key; null for a service. */
  readonly key: string | null;
}

const rowsSchema = z.object({
  rows: z.array(
    z.object({
      id: z.string(),
      status: z.string(),
      target_handler_name: z.string(),
      target_service_key: z.string().nullish(),
    }),
  ),
});

/** The number of deletions that run at the same time. */
const AT_ONCE = 16;

export class RestateAdmin {
  readonly #http: RestateIngress;

  constructor(address: string, headers: Readonly<Record<string, string>> = {}) {
    this.#http = new RestateIngress(address, headers);
  }

  /** Returns the invocations of a service that match an SQL condition. */
  async invocations(service: string, condition: string): Promise<readonly Invocation[]> {
    const query = `select id, status, target_handler_name, target_service_key from sys_invocation where target_service_name = ${sqlText(service)} and (${condition})`;
    const { rows } = await this.#http.ask('/query', rowsSchema, { body: { query } });
    return rows.map(({ id, status, target_handler_name: handler, target_service_key: key }) => ({
      id,
      handler,
      isOver: status === 'completed',
      key: key ?? null,
    }));
  }

  /** Deletes invocations. If the invocation is running, it is killed first. */
  async remove(invocations: readonly Invocation[]): Promise<void> {
    for (let at = 0; at < invocations.length; at += AT_ONCE)
      await Promise.all(invocations.slice(at, at + AT_ONCE).map((one) => this.#remove(one)));
  }

  async #remove({ id, isOver }: Invocation): Promise<void> {
    if (!isOver) await this.#change(id, 'kill');
    await this.#change(id, 'purge');
  }

  async #change(id: string, how: 'kill' | 'purge'): Promise<void> {
    const path = `/invocations/${encodeURIComponent(id)}/${how}`;
    const answered = await this.#http.request(path, { method: 'PATCH' });
    // The invocation does not exist, or it has ended on its own.
    if (answered.status === 404 || (how === 'kill' && answered.status === 409)) return;
    if (answered.status === 409)
      throw new JobError('JOBS_UNREACHABLE', `Restate is still stopping ${id}`, {
        retryable: true,
      });
    if (answered.status >= 300) throw refused(answered);
  }
}

export function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
