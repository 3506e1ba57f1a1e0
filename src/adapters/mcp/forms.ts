// Converts a subagent's question to an MCP form (`elicitation/create`) and interprets the client's answer.
//
// Invariants
//   MCP-FORM-1. Only an explicit choice by the user is an answer: `cancel` leaves the question open; `decline` denies
//       an approval or ends a question without an answer.

import { z } from 'zod';
import type { TaskQuestion } from './served-tasks.ts';
import type { GivenAnswer } from '../../actors/subagent/ask-user.ts';

const ANSWER = 'answer';

/** The `_meta` keys of an approval form: the tool's name, and the input of the tool call. */
const TOOL = 'offstage/tool';
export const INPUT = 'offstage/input';

interface Property {
  readonly type: 'string' | 'boolean';
  readonly title: string;
  readonly oneOf?: readonly { readonly const: string; readonly title: string }[];
}

/** The parameters of `elicitation/create`. */
export interface Form {
  readonly mode: 'form';
  readonly message: string;
  readonly requestedSchema: {
    readonly type: 'object';
    readonly properties: Readonly<Record<typeof ANSWER, Property>>;
    readonly required: readonly [typeof ANSWER];
  };
  readonly _meta?: { readonly [TOOL]: string; readonly [INPUT]: unknown };
}

export function formOf({ kind, text, options, action }: TaskQuestion): Form {
  return {
    mode: 'form',
    message: text,
    requestedSchema: {
      type: 'object',
      properties: { [ANSWER]: propertyOf(kind, options) },
      required: [ANSWER],
    },
    ...(action && { _meta: { [TOOL]: action.toolName, [INPUT]: action.input ?? null } }),
  };
}

function propertyOf(kind: TaskQuestion['kind'], options: TaskQuestion['options']): Property {
  if (kind === 'approval') return { type: 'boolean', title: 'Approve' };
  if (options.length === 0) return { type: 'string', title: 'Answer' };
  return {
    type: 'string',
    title: 'Answer',
    oneOf: options.map(({ id, label, description }) => ({
      const: id,
      title: description === undefined ? label : `${label} (${description})`,
    })),
  };
}

const resultSchema = z.looseObject({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * `declined`: the user chose not to answer. `left`: the question remains open. `invalid`: the result is invalid, for a
 * reason that the client receives.
 */
export type FormAnswer =
  | { readonly type: 'given'; readonly answer: GivenAnswer }
  | { readonly type: 'declined' }
  | { readonly type: 'left' }
  | { readonly type: 'invalid'; readonly why: string };

/** Interprets the result of `elicitation/create`, which may be invalid. */
export function answerIn(question: TaskQuestion, result: unknown): FormAnswer {
  const checked = resultSchema.safeParse(result);
  if (!checked.success) return { type: 'invalid', why: z.prettifyError(checked.error) };
  const { action, content } = checked.data;
  const { kind, options } = question;
  if (action === 'cancel') return { type: 'left' };
  if (action === 'decline')
    return kind === 'approval'
      ? { type: 'given', answer: { approved: false } }
      : { type: 'declined' };
  const value = content && Object.hasOwn(content, ANSWER) ? content[ANSWER] : undefined;
  if (kind === 'approval')
    return typeof value === 'boolean'
      ? { type: 'given', answer: { approved: value } }
      : { type: 'invalid', why: 'expected `content.answer` to be true or false' };
  if (typeof value !== 'string' || value.trim() === '')
    return { type: 'invalid', why: 'expected `content.answer` to be a text that is not empty' };
  if (options.length === 0) return { type: 'given', answer: { text: value } };
  if (options.some(({ id }) => id === value)) return { type: 'given', answer: { optionId: value } };
  const ids = options.map(({ id }) => JSON.stringify(id)).join(', ');
  return { type: 'invalid', why: `expected \`content.answer\` to be one of ${ids}` };
}
