// A parent's views of its subagents: the service's reports in the tools' terms, with the runtime's notes on an outcome,
// the receipts of the parent's messages, and references to grandchildren.
//
// Owns:     the receipts for messages that a parent sent: `send_to_subagent` does not wait until a message is read.
//           Later views contain the step that read it, or the reason why no step will.

import { clip } from '../../../values/clip.ts';
import { forgetOldest } from '../../../values/forget-oldest.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { Outcome } from '../../contracts/outcome.ts';
import type {
  AwaitResult,
  MessageReceipt,
  PendingInput,
  ProgressNote,
  Requester,
  SubagentReport,
  SubagentService,
} from '../../contracts/service-types.ts';

const MAX_TASK_CHARS = 300;

/** The status of a subagent in its parent's view. */
export type ChildStatus =
  | 'spawning'
  | 'running'
  | 'waiting_input'
  | 'hung'
  | 'completed'
  | 'failed'
  | 'cancelled';

/** A child's question to its parent. `send_to_subagent` with `inResponseTo: messageId` answers it. */
export interface PendingRequest {
  readonly messageId: string;
  readonly question: string;
  readonly context?: string;
}

export interface ChildView extends OutcomeNotes {
  readonly subagentId: string;
  readonly status: ChildStatus;
  readonly pendingRequest?: PendingRequest;
  /** The result: a text, or a JSON value if a `responseSchema` was given. */
  readonly result?: unknown;
  readonly summary?: string;
  /** The reason why the subagent failed or was cancelled. */
  readonly error?: { readonly code: string; readonly message: string };
  /** The last text from a subagent that did not complete its task. */
  readonly partial?: string;
  /** The messages that were sent to the subagent, each with its receipt. */
  readonly messages?: readonly SentMessage[];
}

export interface CheckView extends ChildView {
  /** The latest notes, at most 50, oldest first. A note with a percentage has a prefix such as `[50%]`. */
  readonly progress: readonly string[];
  /** The percentage in the latest note that contains one. */
  readonly percentComplete: number | null;
  /** The id of the child's conversation in the journal and in the inspector. */
  readonly childSessionId?: string;
  /** True if the child is waiting for an answer from the user and not from its parent. */
  readonly waitsForUser?: true;
  /** The child's own subagents. */
  readonly subAgentRefs?: readonly SubAgentRef[];
}

/**
 * The status of one awaited subagent. If the call awaits several, `ended` means that the condition of the wait is met.
 */
export type AwaitStatus =
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'waiting_input'
  | 'interrupted'
  | 'timeout';

/** The output for a lead agent whose wait ended because of user input. */
export const USER_SPOKE = {
  why: 'user',
  note:
    'The user has said something: answer it now. What you waited for goes on, and its result ' +
    'comes as a note; do not start it again.',
} as const;

interface Interrupted {
  readonly why?: 'user';
  readonly note?: string;
}

/** Questions from other subagents. */
interface AlsoAsking {
  readonly alsoAsking?: readonly ChildView[];
}

export type AwaitOneView = Omit<ChildView, 'status'> & {
  readonly status: AwaitStatus;
} & AlsoAsking &
  Interrupted;

export interface AwaitManyView extends AlsoAsking, Interrupted {
  readonly status: 'ended' | 'waiting_input' | 'interrupted' | 'timeout';
  /** The subagents, in the order of the call's ids. */
  readonly subagents: readonly ChildView[];
}

export interface ListedView {
  readonly subagentId: string;
  readonly name: string;
  readonly task: string;
  readonly status: ChildStatus;
  /** The latest progress note. */
  readonly progress?: string;
  readonly depth: number;
  readonly parentId: string | null;
  readonly workstreamId?: string;
}

/**
 * Returns the status: `ready` before the first step is shown as `spawning`, and a subagent that waits for the user is
 * shown as `running`.
 */
function statusOf(report: SubagentReport): ChildStatus {
  const { state } = report;
  if (state === 'completed' || state === 'failed' || state === 'cancelled') return state;
  if (report.pendingRequest) return 'waiting_input';
  if (report.hung) return 'hung';
  return state === 'spawning' || (state === 'ready' && report.step === 0) ? 'spawning' : 'running';
}

function childView(service: SubagentService, report: SubagentReport): ChildView {
  const { id, pendingRequest, result, summary, error, partial } = report;
  const status = statusOf(report);
  const messages = sentMessages(service, id).map((sent) => {
    const { words: _, ...message } = sent;
    return message;
  });
  return {
    subagentId: id,
    status,
    ...(pendingRequest ? { pendingRequest: requestView(pendingRequest) } : {}),
    ...(status === 'completed' ? { result: result ?? null } : {}),
    ...(summary === undefined ? {} : { summary }),
    ...(error ? { error: { code: error.code, message: error.message } } : {}),
    ...(partial === undefined ? {} : { partial }),
    ...outcomeNotes(report.outcome),
    ...(messages.length > 0 ? { messages } : {}),
  };
}

export function checkView(service: SubagentService, report: SubagentReport): CheckView {
  const { id, progress, state, pendingRequest } = report;
  const refs = subAgentRefs(service, { subagentId: id });
  return {
    ...childView(service, report),
    progress: progress.map(progressText),
    percentComplete: progress.findLast(({ percent }) => percent !== null)?.percent ?? null,
    ...(state === 'spawning' ? {} : { childSessionId: `${service.id}/${id}` }),
    ...(state === 'waiting_for_input' && !pendingRequest ? { waitsForUser: true as const } : {}),
    ...(refs.length > 0 ? { subAgentRefs: refs } : {}),
  };
}

export function progressText({ update, percent }: ProgressNote): string {
  return percent === null ? update : `[${percent}%] ${update}`;
}

type Waited = Extract<AwaitResult, { readonly ok: true }>;

export function awaitOneView(service: SubagentService, waited: Waited): AwaitOneView {
  const report = waited.reports[0] as SubagentReport;
  const view = childView(service, report);
  const status = waited.why === 'ended' ? (view.status as AwaitStatus) : whyStatus(waited.why);
  return { ...view, status, ...interrupted(waited), ...asking(service, waited) };
}

export function awaitManyView(service: SubagentService, waited: Waited): AwaitManyView {
  return {
    status: waited.why === 'ended' ? 'ended' : whyStatus(waited.why),
    subagents: waited.reports.map((report) => {
      const view = childView(service, report);
      return waited.why === 'user' ? howItIs(view) : view;
    }),
    ...interrupted(waited),
    ...asking(service, waited),
  };
}

/** Returns the status without the result. The result is reported after the user's input has been answered. */
function howItIs({ subagentId, status, pendingRequest, messages }: ChildView): ChildView {
  return withoutUndefined({ subagentId, status, pendingRequest, messages });
}

function whyStatus(why: 'asked' | 'user' | 'timeout'): 'waiting_input' | 'interrupted' | 'timeout' {
  if (why === 'asked') return 'waiting_input';
  return why === 'user' ? 'interrupted' : 'timeout';
}

function interrupted({ why }: Waited): Interrupted {
  return why === 'user' ? USER_SPOKE : {};
}

function asking(service: SubagentService, { alsoAsking }: Waited): AlsoAsking {
  return alsoAsking.length === 0
    ? {}
    : { alsoAsking: alsoAsking.map((report) => childView(service, report)) };
}

export function listedView(report: SubagentReport): ListedView {
  const { id, name, task, progress, depth, parentId, workstreamId } = report;
  const latest = progress.at(-1);
  return {
    subagentId: id,
    name,
    task: clip(task, MAX_TASK_CHARS),
    status: statusOf(report),
    ...(latest && { progress: progressText(latest) }),
    depth,
    parentId,
    ...(workstreamId === null ? {} : { workstreamId }),
  };
}

function requestView({ requestId, question, context }: PendingInput): PendingRequest {
  return { messageId: requestId, question, ...(context === undefined ? {} : { context }) };
}

interface OutcomeNotes {
  /** Doubts about the report, one sentence each. */
  readonly caveats?: readonly string[];
  /** Keys of the entries that the subagent has written to working memory. */
  readonly workingMemory?: readonly string[];
}

/** Returns the notes. If there are no notes, the field is absent, because models act on empty hints. */
export function outcomeNotes(outcome: Outcome | null): OutcomeNotes {
  const { verification, notes = [] } = outcome ?? {};
  const caveats = (verification?.unverified ?? []).map(({ claim, reason, toolName }) =>
    reason === 'failed'
      ? `The subagent says ${JSON.stringify(claim)}; its call of ${toolName ?? 'the tool'} did not succeed.`
      : `The subagent says ${JSON.stringify(claim)}; the runtime has no record of it.`,
  );
  if (verification?.incomplete === true)
    caveats.push('It ends where work was about to begin: the work may not be finished.');
  return {
    ...(caveats.length > 0 ? { caveats } : {}),
    ...(notes.length > 0 ? { workingMemory: notes } : {}),
  };
}

/** A message with its receipt, which is `pending` as long as a model call may still read the message. */
type SentMessage = { readonly messageId: string; readonly words?: string } & (
  | MessageReceipt
  | { readonly applied: 'pending' }
);

/**
 * The maximum number of messages per subagent, and the maximum number of subagents per service. Beyond these, the
 * oldest are forgotten.
 */
const MAX_MESSAGES = 20;
const MAX_SUBAGENTS = 1000;

const logs = new WeakMap<SubagentService, Map<string, SentMessage[]>>();

export function keepReceipt(
  service: SubagentService,
  subagentId: string,
  messageId: string,
  receipt: Promise<MessageReceipt>,
  words?: string,
): void {
  const log = logs.get(service) ?? new Map<string, SentMessage[]>();
  logs.set(service, log);
  const sent = log.get(subagentId) ?? [];
  // Moved to the end, so that the subagent with the latest message is forgotten last.
  log.delete(subagentId);
  log.set(subagentId, sent);
  forgetOldest(log, MAX_SUBAGENTS);
  const about = { messageId, ...(words !== undefined && { words }) };
  sent.push({ ...about, applied: 'pending' });
  sent.splice(0, sent.length - MAX_MESSAGES);
  void receipt.then((settled) => {
    const at = sent.findIndex((message) => message.messageId === messageId);
    if (at >= 0) sent[at] = { ...about, ...settled };
  });
}

/** Returns the messages, oldest first, with their text if the sender stored it. */
export function sentMessages(service: SubagentService, subagentId: string): readonly SentMessage[] {
  return logs.get(service)?.get(subagentId)?.slice() ?? [];
}

/** A subagent of a subagent, with the property names of Helix. */
export interface SubAgentRef {
  /** The subagent's id. */
  readonly id: string;
  /** The parent's call that the child works on. */
  readonly toolCallId: string | null;
  /** The `name` in the subagent's configuration. */
  readonly agentType: string;
  /** The state of the subagent, in the toolset's terms. */
  readonly status: 'running' | 'waiting_input' | 'completed' | 'failed' | 'cancelled';
  /** The output of a completed subagent. @defaultValue none */
  readonly output?: unknown;
  /** The failure as text. @defaultValue none */
  readonly error?: string;
}

/**
 * Returns the children of one subagent, or of the lead agent or program, oldest first. Ended children are included for
 * as long as the service stores their results.
 */
export function subAgentRefs(service: SubagentService, parent: Requester): SubAgentRef[] {
  return service
    .list(parent, { includeEnded: true })
    .filter(({ parentId }) => parentId === parent.subagentId)
    .map(refOf);
}

function refOf({ id, callId, name, state, result, error }: SubagentReport): SubAgentRef {
  return {
    id,
    toolCallId: callId,
    agentType: name,
    status: statusOfRef(state),
    ...(state === 'completed' ? { output: result } : {}),
    ...(error ? { error: error.message } : {}),
  };
}

function statusOfRef(state: SubagentReport['state']): SubAgentRef['status'] {
  if (state === 'completed' || state === 'failed' || state === 'cancelled') return state;
  return state === 'waiting_for_input' ? 'waiting_input' : 'running';
}
