// The provider's structured output for the answer of a subagent with an `outputSchema`: asked for
// with each call, and in words only where the provider or the model does not take it.
//
// Owns:     which models, and which schemas of a model, were refused.
// Does not: check what was answered (`output.ts` does, either way), or try again after other errors.
//
// Invariants
//   STRUCT-1. A call that is refused for its format (400, 422, or an error of the SDK that says so) is
//             made again at once, without the format. Only if that is answered was it the format;
//             any other error is the error of the call.
//   STRUCT-2. An answer that holds nothing is asked for again in words, too: packages that ask for JSON by
//             a tool of their own, beside ours, read no words. The tokens of both are counted.
//   STRUCT-3. What was refused is not asked for again: a schema of a model, and after two of them, or
//             a warning that the format is ignored, all of that model.

import { APICallError, UnsupportedFunctionalityError, type LanguageModel, type Schema } from 'ai';
import { knownJsonSchema } from './schema.ts';
import type { Answer, Model } from './language-model.ts';

export type ResponseFormat = NonNullable<Parameters<Model['doGenerate']>[0]['responseFormat']>;

/** So many refused schemas say that it is the model. */
const REFUSALS_OF_A_MODEL = 2;
/** Models that are named by a string, whose refusals are remembered; the oldest are forgotten. */
const MOST_NAMED = 100;

interface Refused {
  isWhole: boolean;
  readonly schemas: WeakSet<Schema>;
  count: number;
}

const byModel = new WeakMap<object, Refused>();
const byName = new Map<string, Refused>();

/** What one call may ask for, and what is learnt of it. */
export interface Structured {
  readonly format: ResponseFormat;
  /** The provider refused it, and answered without it. */
  refused(error: unknown): void;
  /** The provider answered, and said that it ignored it. */
  ignored(): void;
}

/**
 * The format of answers that fit a schema; null where it is asked for in words: the schema is no
 * object's (most providers take no other), is not known yet, or was refused before.
 * `report` learns of the first refusal.
 */
export function structuredFor(
  model: LanguageModel,
  schema: Schema,
  report: (error: unknown) => void,
): Structured | null {
  const known = knownJsonSchema(schema);
  if (known?.['type'] !== 'object') return null;
  const refused = refusedOf(model);
  if (refused.isWhole || refused.schemas.has(schema)) return null;
  return {
    format: { type: 'json', schema: known, name: 'result' },
    refused(error) {
      if (refused.isWhole || refused.schemas.has(schema)) return;
      refused.schemas.add(schema);
      refused.count += 1;
      refused.isWhole = refused.count >= REFUSALS_OF_A_MODEL;
      report(error);
    },
    ignored() {
      refused.isWhole = true;
    },
  };
}

/** May this error be about the format of the answer? */
export function mayRefuseFormat(error: unknown): boolean {
  if (UnsupportedFunctionalityError.isInstance(error)) return true;
  return APICallError.isInstance(error) && (error.statusCode === 400 || error.statusCode === 422);
}

/** Is there nothing in it, neither words nor a call? */
export function isSilent(answer: unknown): answer is Answer {
  const { content, finishReason, usage } = (answer ?? {}) as Partial<Answer>;
  const isCut = finishReason?.unified !== 'stop' && finishReason?.unified !== 'tool-calls';
  if (!Array.isArray(content) || !usage || isCut) return false;
  return content.every(
    (part) => part.type === 'reasoning' || (part.type === 'text' && part.text.trim() === ''),
  );
}

/** The tokens of two calls. */
export function bothUsages(one: Answer['usage'], other: Answer['usage']): Answer['usage'] {
  return {
    ...other,
    inputTokens: sumOf(one.inputTokens, other.inputTokens),
    outputTokens: sumOf(one.outputTokens, other.outputTokens),
  };
}

function sumOf<T extends object>(one: T, other: T): T {
  const entries = Object.entries(other).map(([name, count]) => {
    const more: unknown = (one as Readonly<Record<string, unknown>>)[name];
    const isCounted = typeof count === 'number' && typeof more === 'number';
    return [name, isCounted ? count + more : (count ?? more)] as const;
  });
  return Object.fromEntries(entries) as T;
}

/** Did the provider say that it ignored the format? */
export function ignoresFormat({ warnings }: Answer): boolean {
  // Comes from outside, also from models of an older specification.
  return ((warnings ?? []) as readonly Readonly<Record<string, unknown>>[]).some(
    (warning) => warning['feature'] === 'responseFormat' || warning['setting'] === 'responseFormat',
  );
}

function refusedOf(model: LanguageModel): Refused {
  const known = typeof model === 'string' ? byName.get(model) : byModel.get(model);
  if (known) return known;
  const fresh: Refused = { isWhole: false, schemas: new WeakSet(), count: 0 };
  if (typeof model !== 'string') byModel.set(model, fresh);
  else {
    byName.set(model, fresh);
    const [oldest] = byName.keys();
    if (byName.size > MOST_NAMED && oldest !== undefined) byName.delete(oldest);
  }
  return fresh;
}
