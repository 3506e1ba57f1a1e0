// `ask_user`: the tool with which an interactive subagent asks the user. The runtime adds it, never an
// author, and the runtime runs it, so it has no `execute`. `not_for_me`: its counterpart for words that were taken for
// an answer.

import { jsonSchema, tool, type JSONSchema7, type Tool } from 'ai';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { check, checkLength } from '../../values/checks.ts';
import { clip } from '../../values/clip.ts';
import { argumentsText, visible, withoutHidden } from '../../values/visible.ts';
import { objectJson, validatedBy } from '../model/schema.ts';
import type { ModelCall } from '../model/model-step.ts';
import type { QuestionOption } from '../contracts/session-views.ts';
import type { LedgerEntry } from '../contracts/outcome.ts';
import type { Answer, AskedQuestion } from '../contracts/records.ts';
import { APPROVE_LASTING } from '../contracts/session-views.ts';

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

/** Reads the question and its options from the arguments of the call. */
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

/** The tool with which a subagent gives words back that it got as an answer. */
export const NOT_FOR_ME = 'not_for_me';

const returnedInput = z.object({ reason: z.string().min(1) });
const returnedJson = objectJson({ reason: aText }, ['reason']);

/**
 * The AI SDK tool. The runtime answers a call after words, with the answer to the same question, put again; any other call
 * is an error. It is offered from the first step on: a toolset that changes is a prompt that no provider has cached.
 */
export const notForMeTool: Tool = tool({
  description:
    'Gives back an answer that is about something else, at once; your question is asked again.',
  inputSchema: jsonSchema(returnedJson, { validate: validatedBy(returnedInput) }),
  outputSchema: output,
  execute: () => {
    throw new Error(
      'You have no words of the user to give back: this is for the words that answered your last question, at once.',
    );
  },
});

/** Returns the last question of the ledger, and the words that answered it; null: words did not. */
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

/** Tells whether the last thing that a subagent got is words as an answer, which it may give back. */
export function mayGiveBack(ledger: readonly LedgerEntry[]): boolean {
  const last = ledger.at(-1)?.toolName;
  return (last === ASK_USER || last === NOT_FOR_ME) && lastAnswered(ledger) !== null;
}

/** Builds the question that a subagent puts again because it gives words back. */
export function returnedQuestion(call: unknown, ledger: readonly LedgerEntry[]) {
  const { asked, words } = lastAnswered(ledger) ?? { asked: { question: '' }, words: '' };
  const { reason } = call as z.infer<typeof returnedInput>;
  return { ...askedQuestion(asked), returned: { words, reason } };
}

/** The ids of the buttons of an approval. The third one is there where another agent offers a lasting permission. */
export const APPROVE = 'approve';
export const DENY = 'deny';

/** The longest text of an approval that is said, in characters. */
const MAX_SAID_CHARS = 2_000;
const MAX_SHORT_CHARS = 300;

const BY_BUTTON = 'It is too long to be said: read it on the screen, and answer with its buttons.';

interface ApprovalQuestion {
  readonly question: string;
  readonly options: QuestionOption[];
  readonly action: { readonly toolName: string; readonly input: unknown };
  readonly byButton?: true;
}

/**
 * Builds the question of an approval. It has the tool and its exact arguments, whatever its words: the user consents to nothing
 * else. What a screen would not draw, or would draw elsewhere, stands in it as its code. `byButton`: it is too long to be
 * said, and no words consent to it.
 */
export function approvalQuestion(call: ModelCall | undefined): ApprovalQuestion {
  const toolName = call?.toolName ?? 'unknown';
  const args = call?.input ?? {};
  const why = call?.reason === undefined ? '' : ` (${visible(clip(call.reason, 500))})`;
  const { asks, details } = runtimeWords(toolName, args, call?.about);
  const words = visible(call?.question ?? `${asks}?`);
  const whole =
    call?.question === undefined && details !== '' ? `${visible(asks)} (${details})?` : words;
  const isSaid = whole.length <= MAX_SAID_CHARS;
  return {
    action: { toolName, input: args },
    question: isSaid ? whole + why : `${clip(words, MAX_SHORT_CHARS)} ${BY_BUTTON}`,
    ...(isSaid ? {} : { byButton: true }),
    options: [
      { id: APPROVE, label: 'Yes' },
      { id: DENY, label: 'No' },
      ...(toolName === AGENT_TOOL ? lastingOption(args) : []),
    ],
  };
}

/** The tool that stands for the tools of another agent, whose work a relay passes on. */
export const AGENT_TOOL = 'agent_tool';

/** Words never choose it: only its button does. */
function lastingOption(args: unknown): QuestionOption[] {
  const { lasting } = propertiesOf(args);
  // One that is cut is not offered.
  if (typeof lasting !== 'string' || lasting.length > MAX_SHORT_CHARS) return [];
  const description = `The agent offers: ${visible(JSON.stringify(lasting))}`;
  return [{ id: APPROVE_LASTING, label: 'Yes, and from now on', description }];
}

/** Returns what is asked, without and with its arguments. The words of another agent are quoted: they are no words of ours. */
function runtimeWords(toolName: string, args: unknown, about: string | undefined) {
  if (toolName !== AGENT_TOOL)
    return {
      asks:
        about === undefined ? `May I run ${toolName}` : `May I do this: ${about}, with ${toolName}`,
      details: argumentsText(args),
    };
  const { title, kind, input: given = null } = propertiesOf(args);
  return {
    asks: `May the agent do this (${String(kind)}): ${JSON.stringify(String(title))}`,
    details: given === null ? '' : argumentsText(given),
  };
}

/** An answer as a person or a program gives it: a button, words, or consent. */
export interface GivenAnswer {
  readonly optionId?: string;
  readonly text?: string;
  /** For an approval. */
  readonly approved?: boolean;
}

const answerSchema = z
  .strictObject({
    optionId: z.string().optional(),
    text: z.string().optional(),
    approved: z.boolean().optional(),
  })
  .refine(
    (answer) => Object.values(answer).filter((given) => given !== undefined).length === 1,
    'expected exactly one of optionId, text, approved',
  );

/**
 * Copies the properties of an answer, and no other property of the caller's object.
 * @throws {ConfigurationError} `INVALID_ANSWER` for a value of a wrong type, an unknown property, or not
 * exactly one of `optionId`, `text` and `approved`.
 * @throws {CapacityError} `TEXT_TOO_LONG`
 */
export function checkedAnswer(where: string, answer: unknown): GivenAnswer {
  const { optionId, text, approved } = check(where, answerSchema, answer, 'INVALID_ANSWER');
  if (optionId !== undefined) return { optionId };
  return text === undefined ? { approved: approved === true } : { text: checkLength(where, text) };
}

/**
 * Translates a given answer into the answer that the subagent receives; null if it does not answer this
 * question.
 */
export function givenAnswer(
  question: Pick<AskedQuestion, 'kind' | 'options'>,
  { optionId, text = '', approved = consentOf(optionId) }: GivenAnswer,
): Answer | null {
  if (optionId === APPROVE_LASTING && question.kind === 'approval') {
    const offered = question.options.find(({ id }) => id === optionId);
    return offered ? { userResponse: offered.label, optionId, approved: true } : null;
  }
  if (question.kind === 'approval')
    return approved === undefined ? null : { userResponse: approved ? 'Yes' : 'No', approved };
  if (optionId !== undefined) {
    const chosen = question.options.find(({ id }) => id === optionId);
    return chosen ? { userResponse: chosen.label, optionId: chosen.id } : null;
  }
  const words = text.trim();
  return words === '' ? null : { userResponse: words };
}

function consentOf(optionId: string | undefined): boolean | undefined {
  if (optionId === APPROVE) return true;
  return optionId === DENY ? false : undefined;
}
