// `ask_user`, the tool that an interactive subagent uses to ask the user. The runtime adds it and handles its calls, so
// it has no `execute` and authors cannot define it. `not_for_me`, the tool that returns an utterance that was wrongly
// taken for an answer.

import { jsonSchema, tool, type JSONSchema7, type Tool } from 'ai';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import { asJson, callKey, propertiesOf } from '../../values/json.ts';
import { check, checkLength } from '../../values/checks.ts';
import { clip } from '../../values/clip.ts';
import { argumentsText, visible, withoutHidden } from '../../values/visible.ts';
import { objectJson, validatedBy } from '../model/schema.ts';
import type { ModelCall } from '../model/model-step.ts';
import type { QuestionOption } from '../contracts/session-views.ts';
import type { LedgerEntry } from '../contracts/outcome.ts';
import {
  APPROVAL_SCOPES,
  type Answer,
  type ApprovalScope,
  type AskedQuestion,
  type CallInput,
  type ProposedCall,
} from '../contracts/records.ts';
import { APPROVE_LASTING, lastingWords } from '../contracts/session-views.ts';

export const ASK_USER = 'ask_user';

const option = z.object({
  id: z.string().min(1),
  label: z.string().min(1),
  description: z.string().optional(),
});

const input = z.object({
  question: z.string().min(1),
  options: z.array(option).max(20).optional(),
});

const aText: JSONSchema7 = { type: 'string' };
const optionJson = objectJson({ id: aText, label: aText, description: aText }, ['id', 'label']);
const optionsJson: JSONSchema7 = { type: 'array', items: optionJson };
const inputJson = objectJson({ question: aText, options: optionsJson }, ['question']);

const output = jsonSchema<{ userResponse: string; optionId?: string } | { error: string }>({
  type: 'object',
});

/** The AI SDK tool, without `execute`. */
export const askUserTool: Tool = tool({
  description: 'Asks the user, and returns the answer.',
  inputSchema: jsonSchema(inputJson, { validate: validatedBy(input) }),
  outputSchema: output,
});

/** Parses the question and its options from the call's arguments. */
export function askedQuestion(call: unknown): { question: string; options: QuestionOption[] } {
  const { question, options = [] } = call as z.infer<typeof input>;
  return {
    question: withoutHidden(question),
    options: options.map(({ id, label, description }) => ({
      id,
      label: withoutHidden(label),
      ...(description === undefined ? {} : { description: withoutHidden(description) }),
    })),
  };
}

/** The tool that a subagent uses to return an utterance that it received as an answer. */
export const NOT_FOR_ME = 'not_for_me';

const returnedInput = z.object({ reason: z.string().min(1) });
const returnedJson = objectJson({ reason: aText }, ['reason']);

/**
 * The AI SDK tool. If the last question was answered by an utterance, the runtime asks it again and answers this call
 * with the new answer. Otherwise the call fails. The tool is offered from the first step on, because adding it later
 * would invalidate the provider's prompt cache.
 */
export const notForMeTool: Tool = tool({
  description:
    'Call this at once if the answer that you got is not about your question; the question is asked again.',
  inputSchema: jsonSchema(returnedJson, { validate: validatedBy(returnedInput) }),
  outputSchema: output,
  execute: () => {
    throw new Error(
      'You have no words of the user to give back: this is for the words that answered your last question, at once.',
    );
  },
});

/** Returns the last question in the ledger and the utterance that answered it. Null if no utterance answered it. */
function lastAnswered(ledger: readonly LedgerEntry[]): { asked: unknown; words: string } | null {
  const answered = ledger.findLast(
    ({ toolName }) => toolName === ASK_USER || toolName === NOT_FOR_ME,
  );
  const asked = ledger.findLast(({ toolName }) => toolName === ASK_USER);
  if (answered?.status !== 'ok' || !asked) return null;
  const { userResponse, optionId } = answered.output as Partial<Answer>;
  return userResponse === undefined || optionId !== undefined
    ? null
    : { asked: asked.input, words: userResponse };
}

/** Returns whether the latest answer to the subagent was an utterance, so that the subagent may return it. */
export function mayGiveBack(ledger: readonly LedgerEntry[]): boolean {
  const last = ledger.at(-1)?.toolName;
  return (last === ASK_USER || last === NOT_FOR_ME) && lastAnswered(ledger) !== null;
}

/** Builds the question that is asked again after the subagent returned an utterance. */
export function returnedQuestion(call: unknown, ledger: readonly LedgerEntry[]) {
  const { asked, words } = lastAnswered(ledger) ?? { asked: { question: '' }, words: '' };
  const { reason } = call as z.infer<typeof returnedInput>;
  return { ...askedQuestion(asked), returned: { words, reason } };
}

/**
 * The ids of an approval's buttons. `APPROVE_LASTING` is a third button, for third-party agents that offer a lasting
 * permission.
 */
export const APPROVE = 'approve';
export const DENY = 'deny';

/** The maximum length of an approval that is spoken, in characters. */
const MAX_SAID_CHARS = 2_000;
const MAX_SHORT_CHARS = 300;

const BY_BUTTON = 'It is too long to be said: read it on the screen, and answer with its buttons.';

interface ApprovalQuestion {
  readonly question: string;
  readonly options: QuestionOption[];
  readonly action: { readonly toolName: string; readonly input: unknown };
  readonly byButton?: true;
  readonly mayDiffer?: false | readonly string[];
}

/**
 * Builds the question for an approval. In addition to the author's text, it states the tool and its exact arguments,
 * because these are all that the user approves. Characters that a screen would hide or reorder are replaced by their
 * codes. `byButton`: the question is too long to be spoken, so only a button can approve it.
 */
export function approvalQuestion(call: ModelCall | undefined): ApprovalQuestion {
  const toolName = call?.toolName ?? 'unknown';
  const args = call?.input ?? {};
  const why = call?.reason === undefined ? '' : ` (${visible(clip(call.reason, 500))})`;
  const { asks, details, ends } = runtimeWords(toolName, args, call?.about);
  const words = visible(call?.question ?? `${asks}${ends}`);
  const whole =
    call?.question === undefined && details !== '' ? `${visible(asks)} (${details})${ends}` : words;
  const isSaid = whole.length <= MAX_SAID_CHARS;
  return {
    action: { toolName, input: args },
    question: isSaid ? whole + why : `${clip(words, MAX_SHORT_CHARS)} ${BY_BUTTON}`,
    ...(isSaid ? {} : { byButton: true }),
    ...(call?.mayDiffer !== undefined && { mayDiffer: call.mayDiffer }),
    options: [
      { id: APPROVE, label: 'Yes' },
      { id: DENY, label: 'No' },
      ...(toolName === AGENT_TOOL ? lastingOption(args) : []),
    ],
  };
}

/** Returns an approval of the call that also covers later calls; null if the call does not permit this. */
export function lastingCall(
  question: Pick<AskedQuestion, 'kind' | 'question' | 'action' | 'byButton' | 'mayDiffer'> & {
    readonly proposed?: ProposedCall;
  },
  lasts: ApprovalScope,
): ProposedCall | null {
  const { kind, action, mayDiffer, proposed, byButton } = question;
  if (kind !== 'approval' || !action || mayDiffer === false) return null;
  const put = proposed ?? { changed: { input: action.input }, ...(byButton && { byButton }) };
  const asked = proposed?.alone ?? proposed?.question ?? question.question;
  return {
    ...put,
    lasts,
    alone: asked,
    question: `${asked} A yes also lets it do ${lastingWords(question, lasts)}.`,
  };
}

/** The name that stands for all tools of a relayed agent. */
export const AGENT_TOOL = 'agent_tool';

/** Returns the button for a lasting permission, if it was offered. Spoken words cannot choose this button. */
function lastingOption(args: unknown): QuestionOption[] {
  const { lasting } = propertiesOf(args);
  // An offer that is too long to be shown in full is omitted.
  if (typeof lasting !== 'string' || lasting.length > MAX_SHORT_CHARS) return [];
  const description = `The agent offers: ${visible(JSON.stringify(lasting))}`;
  return [{ id: APPROVE_LASTING, label: 'Yes, and from now on', description }];
}

/**
 * Returns the runtime's question twice: without and with the arguments. A relayed agent's text is quoted, to separate
 * it from the runtime's text.
 */
function runtimeWords(toolName: string, args: unknown, about: string | undefined) {
  if (toolName !== AGENT_TOOL) {
    const details = argumentsText(args);
    return about === undefined
      ? { asks: `May I run ${toolName}`, details, ends: '?' }
      : { asks: `${about}, with ${toolName}`, details, ends: ': may I do that?' };
  }
  const { title, kind, input: given = null } = propertiesOf(args);
  return {
    asks: `May the agent do this (${String(kind)}): ${JSON.stringify(String(title))}`,
    details: given === null ? '' : argumentsText(given),
    ends: '?',
  };
}

/** An answer from a person or a program: a button, text, or an approval decision. */
export interface GivenAnswer {
  /** The `id` of an option. */
  readonly optionId?: string;
  /** The answer as text. */
  readonly text?: string;
  /** Whether the call is approved or denied. */
  readonly approved?: boolean;
  /**
   * With `approved: true`: the arguments with which the call runs, instead of those in the question. They must match
   * the tool's schema. @defaultValue those of the question
   */
  readonly input?: unknown;
  /**
   * With `approved: true`: the approval also covers later calls of the same kind, either until the subagent that asks
   * has ended (`task`) or until the session has ended. @defaultValue this call only
   */
  readonly lasts?: 'task' | 'session';
}

const answerSchema = z
  .strictObject({
    optionId: z.string().optional(),
    text: z.string().optional(),
    approved: z.boolean().optional(),
    input: z.unknown().optional(),
    lasts: z.enum(APPROVAL_SCOPES).optional(),
  })
  .refine(
    ({ optionId, text, approved }) =>
      [optionId, text, approved].filter((given) => given !== undefined).length === 1,
    'expected exactly one of optionId, text, approved',
  )
  .refine(
    ({ approved, input: changed }) => changed === undefined || approved === true,
    'expected `input` only with `approved: true`',
  )
  .refine(
    ({ approved, lasts }) => lasts === undefined || approved === true,
    'expected `lasts` only with `approved: true`',
  );

/**
 * Copies the properties that an answer may have, and drops all others.
 * @throws {ConfigurationError} `INVALID_ANSWER` for a value of the wrong type, an unknown property, an `input` that is
 *   not JSON, or anything but exactly one of `optionId`, `text` and `approved`.
 * @throws {CapacityError} `TEXT_TOO_LONG`
 */
export function checkedAnswer(where: string, answer: unknown): GivenAnswer {
  const {
    optionId,
    text,
    approved,
    input: changed,
    lasts,
  } = check(where, answerSchema, answer, 'INVALID_ANSWER');
  if (optionId !== undefined) return { optionId };
  if (text !== undefined) return { text: checkLength(where, text) };
  const given = { approved: approved === true, ...(lasts && { lasts }) };
  if (changed === undefined) return given;
  const json = asJson(changed);
  if (!json.ok) throw new ConfigurationError('INVALID_ANSWER', `${where}: input: ${json.message}`);
  checkLength(`${where}: input`, json.text);
  return { ...given, input: json.value };
}

/** Converts an answer to the form that the subagent receives. Returns null if it does not answer this question. */
export function givenAnswer(
  question: Pick<AskedQuestion, 'kind' | 'options' | 'mayDiffer'>,
  { optionId, text = '', approved = consentOf(optionId), lasts }: GivenAnswer,
): Answer | null {
  if (optionId === APPROVE_LASTING && question.kind === 'approval') {
    const offered = question.options.find(({ id }) => id === optionId);
    return offered ? { userResponse: offered.label, optionId, approved: true } : null;
  }
  if (lasts && question.mayDiffer === false) return null;
  if (question.kind === 'approval')
    return approved === undefined
      ? null
      : { userResponse: approved ? 'Yes' : 'No', approved, ...(lasts && { lasts }) };
  if (optionId !== undefined) {
    const chosen = question.options.find(({ id }) => id === optionId);
    return chosen ? { userResponse: chosen.label, optionId: chosen.id } : null;
  }
  const words = text.trim();
  return words === '' ? null : { userResponse: words };
}

/** Returns an approval of the call with the validated arguments, or `answer` itself if the arguments are unchanged. */
export function withInput(
  { action }: Pick<AskedQuestion, 'action'>,
  answer: Answer,
  changed: CallInput | undefined,
): Answer {
  const { toolName = '', input: asked } = action ?? {};
  if (!changed || callKey(toolName, asked) === callKey(toolName, changed.input)) return answer;
  return { ...answer, userResponse: `Yes, with ${argumentsText(changed.input)}`, changed };
}

function consentOf(optionId: string | undefined): boolean | undefined {
  if (optionId === APPROVE) return true;
  return optionId === DENY ? false : undefined;
}
