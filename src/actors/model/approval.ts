// Decides, before a tool call runs, whether it needs approval. There are four cases: no approval is needed, the author
// has approved it in the configuration, the user must be asked, or the user has already denied the call.
//
// Owns:     the order in which these cases are checked.
// Does not: ask the user, or store the user's answers (the session and the subagent do).
//
// Invariants
//   APPROVAL-1. Only the runtime creates an approval, either from the user's answer or from the author's configuration.
//       A statement by a model or a tool never approves a call.
//   APPROVAL-2. An approval permits one execution of one call: this tool with exactly these arguments. Further calls
//       are covered only if the user gave it as a lasting approval (APPROVAL-6).
//   APPROVAL-3. If the user denied a call to a subagent, all subagents below it are denied the same call without a
//       question to the user. Neither a pre-approval nor a more permissive tool with the same name bypasses the denial.
//   APPROVAL-4. In case of doubt, the user is asked: a condition that throws, or that returns a value not documented by
//       the AI SDK, does not approve the call.
//   APPROVAL-5. A call needs approval unless it is certain that its tool does not require it.
//   APPROVAL-6. A lasting approval covers calls of the same tool with the same arguments. Arguments may differ only if
//       the tool's author left them free when the user gave the approval and still leaves them free. The approval does
//       not cover a call that was denied, or a call that the user who gave the approval may not approve.

import type { ModelMessage, ToolSet } from 'ai';
import { z } from 'zod';
import { aFunction } from '../../values/checks.ts';
import { handleRejection } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';
import { shown } from '../../values/plain-checks.ts';
import type { PreApproval, ToolApproval } from '../contracts/config.ts';
import { raceAbort } from '../../values/race-abort.ts';
import type { ApprovalOptions, ToolEntry } from './tools.ts';

/** A call, as the author's functions receive it. */
interface JudgedCall {
  readonly callId: string;
  readonly messages: readonly ModelMessage[];
  /** Whether `input` is the model's original input, before validation. @defaultValue false */
  readonly raw?: boolean | undefined;
  readonly context?: unknown;
  readonly signal?: AbortSignal;
  readonly report?: (error: unknown, where: string) => void;
}

/**
 * Calls one of the author's functions for a tool call. Returns `otherwise` if the signal aborts, or if the function
 * throws (which is reported).
 */
async function judgement<T>(
  tool: ToolEntry,
  input: unknown,
  { callId: toolCallId, messages, raw, context, signal, report }: JudgedCall,
  name: string,
  {
    author,
    judge,
    otherwise,
  }: {
    readonly author: (input: unknown, options: ApprovalOptions) => unknown;
    judge(said: unknown): T;
    readonly otherwise: T;
  },
): Promise<T> {
  const ask = async (): Promise<T> => {
    const validated =
      raw === true ? await tool.validate(input) : { ok: true as const, value: input };
    if (!validated.ok) return otherwise;
    return judge(await author(validated.value, { toolCallId, messages, context }));
  };
  try {
    return await (signal ? raceAbort(ask(), signal) : ask());
  } catch (error) {
    if (signal?.aborted !== true) report?.(error, `${name} of tool ${tool.name}`);
    return otherwise;
  }
}

/**
 * Returns whether this call needs user approval. Always resolves; the result is true if the signal aborts or the
 * predicate throws.
 */
export function approvalNeeded(
  tool: ToolEntry,
  input: unknown,
  call: JudgedCall,
): Promise<boolean> {
  const { needsApproval } = tool;
  if (typeof needsApproval === 'boolean') return Promise.resolve(needsApproval);
  return judgement(tool, input, call, 'needsApproval', {
    author: needsApproval,
    judge: Boolean,
    otherwise: true,
  });
}

const STATUSES = ['not-applicable', 'approved', 'denied', 'user-approval'] as const;
const approvalStatus = z.union(
  [z.enum(STATUSES), z.strictObject({ type: z.enum(STATUSES), reason: z.string().optional() })],
  { error: `expected one of ${STATUSES.join(', ')}, or { type, reason }` },
);
/** The option `toolApproval`. */
export const aToolApproval = z.union(
  [aFunction, z.record(z.string(), z.union([aFunction, approvalStatus, z.undefined()]))],
  { error: `expected a function, or for each tool a function or one of ${STATUSES.join(', ')}` },
);

interface Decision {
  readonly needed: Needed;
  readonly reason?: string | undefined;
}

const NEEDED = {
  'not-applicable': false,
  approved: 'approved',
  denied: 'denied',
  'user-approval': true,
} as const satisfies Readonly<Record<(typeof STATUSES)[number], Needed>>;

/** The additional contexts that are passed to a `toolApproval` function. */
interface ApprovalContexts {
  readonly tools: Readonly<Record<string, unknown>>;
  readonly toolsContext: Readonly<Record<string, Record<string, unknown>>>;
  readonly runtimeContext: Readonly<Record<string, unknown>>;
}

/**
 * Returns what `toolApproval` decides about a call; null if it leaves the decision to the tool. Always resolves, like
 * `approvalNeeded`.
 */
export async function authorsDecision(
  toolApproval: ToolApproval | undefined,
  tool: ToolEntry,
  input: unknown,
  call: JudgedCall,
  { tools, toolsContext, runtimeContext }: ApprovalContexts,
): Promise<Decision | null> {
  const { name: toolName } = tool;
  const isForAll = typeof toolApproval === 'function';
  const own =
    isForAll || !Object.hasOwn(toolApproval ?? {}, toolName) ? undefined : toolApproval?.[toolName];
  if (!isForAll && typeof own !== 'function') return own === undefined ? null : decisionOf(own);
  return judgement<Decision>(tool, input, call, 'toolApproval', {
    author: (value, { toolCallId, messages }) => {
      const common = { messages: [...messages], runtimeContext: { ...runtimeContext } };
      if (typeof own === 'function')
        return own(value, { ...common, toolCallId, toolContext: toolsContext[toolName] });
      if (!isForAll) return undefined;
      return toolApproval({
        ...common,
        toolCall: { type: 'tool-call', toolCallId, toolName, input: value },
        tools: tools as ToolSet,
        toolsContext,
      });
    },
    judge: decisionOf,
    otherwise: { needed: true },
  });
}

/** @throws {ZodError} if the function returns a value that the AI SDK does not document. */
function decisionOf(said: unknown = 'not-applicable'): Decision {
  const status = approvalStatus.parse(said);
  if (typeof status === 'string') return { needed: NEEDED[status] };
  return { needed: NEEDED[status.type], reason: status.reason };
}

const MAX_QUESTION_CHARS = 2_000;

/**
 * Returns the author's question for this call; undefined if the runtime's question is to be asked. Always resolves: if
 * the function throws or returns no text, the error is reported and the runtime's question is asked.
 */
export function approvalWords(
  tool: ToolEntry,
  input: unknown,
  call: JudgedCall,
): Promise<string | undefined> {
  const author = tool.approvalQuestion;
  if (!author) return Promise.resolve(undefined);
  const judge = (said: unknown): string => {
    if (typeof said === 'string' && said.trim() !== '') return clip(said, MAX_QUESTION_CHARS);
    throw new TypeError(`expected the words of a question, got ${shown(said)}`);
  };
  return judgement<string | undefined>(tool, input, call, 'approvalQuestion', {
    author,
    judge,
    otherwise: undefined,
  });
}

/** The decision about a call. */
export type Consent =
  | 'not_needed'
  | 'ask'
  | 'pre_authorised'
  | 'lasting'
  | 'inherited_denial'
  | 'author_denied';

/** Whether a call needs the user's approval, or the author's decision about it. */
export type Needed = boolean | 'approved' | 'denied';

interface Asked {
  readonly toolName: string;
  readonly input: unknown;
  readonly preApproved: readonly PreApproval[];
  /** Returns the author's decision, or whether the tool requires approval for these arguments. */
  needed(): Needed | Promise<Needed>;
  /** Returns whether the user denied the same call to an ancestor. */
  deniedAbove(): boolean;
  report(error: unknown, where: string): void;
}

/** Determines which approval a call already has, or which one it needs. */
export async function consentFor(asked: Asked): Promise<Consent> {
  if (asked.deniedAbove()) return 'inherited_denial';
  const needed = await asked.needed();
  if (needed === false) return 'not_needed';
  if (needed === 'denied') return 'author_denied';
  if (needed === 'approved') return 'pre_authorised';
  return isPreApproved(asked) ? 'pre_authorised' : 'ask';
}

function isPreApproved({ toolName, input, preApproved, report }: Asked): boolean {
  return preApproved.some(({ tool, when }) => {
    if (tool !== toolName) return false;
    if (!when) return true;
    try {
      // Only `true` approves; a promise does not.
      const said: unknown = when(input);
      handleRejection(said, (error) => report(error, `preApproved of ${toolName}`));
      return said === true;
    } catch (error) {
      report(error, `preApproved of ${toolName}`);
      return false;
    }
  });
}

/** The output of a call that the author's `toolApproval` denies without a reason. */
export const AUTHORS_DENIAL = 'This call is not permitted. Find another way, or say so.';

/** The output of a call that the user denied to an ancestor. */
export const INHERITED_DENIAL =
  'The user has already denied exactly this call. Do not try it again; say so, or find another way.';
