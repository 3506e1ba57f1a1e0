// Clients of Temporal, and its bundler: packages of test/engines, which the type check of the repository does not have.

import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { bundleWorkflowCode, Worker } from '@temporalio/worker';

const { History } = proto.temporal.api.history.v1;
const workflowsPath = fileURLToPath(new URL('temporal-workflows.js', import.meta.url));

/**
 * A worker that is killed may hold a task of a workflow: Temporal gives it to another one after this time, ten seconds by default. The
 * tests kill often.
 */
const soon = {
  start: (input, next) => {
    const { options } = input;
    return next({ ...input, options: { ...options, workflowTaskTimeout: 1_000 } });
  },
};

export async function connect(address) {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, interceptors: { workflow: [soon] } });
  return { client, close: () => connection.close() };
}

/** Tells whether the server answers, and has its namespace. */
export async function serves(address) {
  try {
    const connection = await Connection.connect({ address, connectTimeout: 1_000 });
    try {
      await connection.workflowService.describeNamespace({ namespace: 'default' });
      return true;
    } finally {
      await connection.close();
    }
  } catch {
    return false;
  }
}

/** Bundles the workflows. Returns the warnings, and the size of the code. */
export async function bundle(path) {
  const warnings = [];
  const say = (message) => /warn/iu.test(message) && warnings.push(message);
  const logger = { log() {}, trace() {}, debug() {}, info: say, warn: say, error: say };
  const { code } = await bundleWorkflowCode({ workflowsPath, logger });
  await writeFile(path, code);
  const bare = code.replace(/\/\/# sourceMappingURL=.*$/su, '');
  return { warnings, bytes: Buffer.byteLength(bare), code: bare };
}

/** Plays a history again in the sandbox, without a server. Rejects where the workflow does other things than it did. */
export const replay = (history, path = workflowsPath) =>
  Worker.runReplayHistory({ workflowsPath: path }, History.fromObject(history));

export async function historyOf(client, workflowId) {
  const history = await client.workflow.getHandle(workflowId).fetchHistory();
  return history.toJSON?.() ?? history;
}

/** What becomes of the child workflows of a workflow when that ends, in the order in which they were begun. */
export async function policiesIn(client, workflowId) {
  const { ParentClosePolicy } = proto.temporal.api.enums.v1;
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  return events.flatMap(({ startChildWorkflowExecutionInitiatedEventAttributes: begun }) =>
    begun ? [ParentClosePolicy[begun.parentClosePolicy].replace('PARENT_CLOSE_POLICY_', '')] : [],
  );
}
