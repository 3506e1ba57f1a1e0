// Decides before a tool call runs whether it needs approval: no approval is needed, the author has given it in the
// configuration, the user must be asked, or the user has already denied the call.
//
// Owns:     the order in which these reasons are checked.
// Does not: ask the user (session), or hold the user's answers (the subagent does).
//
// Invariants
//   APPROVAL-1. Only the runtime creates an approval: from the user's answer, or from the author's configuration. A
//       statement of a model or a tool never approves.
//   APPROVAL-2. An approval covers one execution of one call: this tool with exactly these arguments. Only if the user
//       gave it so does it last (APPROVAL-6).
//   APPROVAL-3. A call that the user denied to a subagent is denied at once to all subagents below it, without a
//       question; no pre-approval and no milder tool with the same name bypasses the denial.
//   APPROVAL-4. If in doubt, the user is asked: a condition that throws, or returns a value that the AI SDK does not
//       document, approves nothing.
//   APPROVAL-5. A call needs approval unless its tool certainly does not require it.
//   APPROVAL-6. An approval that lasts covers calls of the same tool with the same arguments, except for those that the
//       tool's author left free when the user gave it, and still leaves free. It covers no call that is denied, and none
//       that its giver may not approve.

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
  /** Whether `input` is the model's original, before validation. @defaultValue false */
  readonly raw?: boolean | undefined;
  readonly context?: unknown;
  readonly signal?: AbortSignal;
  readonly report?: (error: unknown, where: string) => void;
}

/**
 * Calls the author's function for a call; returns `otherwise` after an abort, or if the function throws, and reports
 * the error.
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

/** Returns whether this call needs the user's approval. Always resolves: true after an abort, or if the predicate throws. */
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

/** The author's decision about a call. */
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

/** The contexts that a `toolApproval` function receives together with the call. */
interface ApprovalContexts {
  readonly tools: Readonly<Record<string, unknown>>;
  readonly toolsContext: Readonly<Record<string, Record<string, unknown>>>;
  readonly runtimeContext: Readonly<Record<string, unknown>>;
}

/** Returns the `toolApproval` decision about a call; null if the tool decides. Always resolves, like `approvalNeeded`. */
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

/** @throws {ZodError} if it returns a value that the AI SDK does not document. */
function decisionOf(said: unknown = 'not-applicable'): Decision {
  const status = approvalStatus.parse(said);
  if (typeof status === 'string') return { needed: NEEDED[status] };
  return { needed: NEEDED[status.type], reason: status.reason };
}

const MAX_QUESTION_CHARS = 2_000;

/**
 * Returns the author's question for this call; undefined if the runtime's question is asked. Always resolves: if the
 * function throws or returns no text, the error is reported.
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
  /** Returns whether the tool requires approval for these arguments, or the author's decision. */
  needed(): Needed | Promise<Needed>;
  /** Returns whether the user denied the same call to an ancestor. */
  deniedAbove(): boolean;
  report(error: unknown, where: string): void;
}

/** Determines which approval a call has or needs. */
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
