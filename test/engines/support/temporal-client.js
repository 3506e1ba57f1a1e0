// Clients of Temporal, and its bundler: packages of test/engines, which the type check of the repository does not have.

import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
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

/**
 * A call whose next attempt is due after its connection was closed: the SDK would make it in a timer, where grpc-js throws
 * "Channel has been shut down" into the process. Such a call ends as cancelled.
 */
const cancelledAfterClose = (options, nextCall) => {
  try {
    return nextCall(options);
  } catch (error) {
    return {
      start: (metadata, listener) =>
        listener.onReceiveStatus({ code: GRPC_CANCELLED, details: error.message, metadata }),
      sendMessage() {},
      halfClose() {},
      startRead() {},
      cancelWithStatus() {},
      getPeer: () => '',
    };
  }
};

const GRPC_CANCELLED = 1;

export async function connect(address) {
  const retries = makeGrpcRetryInterceptor(defaultGrpcRetryOptions());
  const connection = await Connection.connect({
    address,
    interceptors: [retries, cancelledAfterClose],
  });
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
