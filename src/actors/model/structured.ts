// The provider's structured output for a subagent with an `outputSchema`: requested with each call; only the
// instructions ask for the format if the provider or the model does not accept it.
//
// Owns:     the models, and the schemas of a model, that refused the format.
// Does not: check the answer (`output.ts` does, in either case), or retry after other errors.
//
// Invariants
//   STRUCT-1. A call that is refused for its format (400, 422, or an SDK error that says so) is repeated at
//             once, without the format. Only if that succeeds was the format the cause; any other error is
//             the error of the call.
//   STRUCT-2. An empty answer is also requested again without the format: provider packages that request JSON
//             by a tool of their own, beside the runtime's tools, read no text. The tokens of both calls are
//             counted.
//   STRUCT-3. A refused format is not requested again: for a schema of a model and, after two refused schemas
//             or a warning that the format is ignored, for all schemas of that model.

import { APICallError, UnsupportedFunctionalityError, type LanguageModel, type Schema } from 'ai';
import { knownJsonSchema } from './schema.ts';
import type { Answer, Model } from './language-model.ts';

export type ResponseFormat = NonNullable<Parameters<Model['doGenerate']>[0]['responseFormat']>;

/** The number of refused schemas after which the model counts as refusing. */
const REFUSALS_OF_A_MODEL = 2;
/** The limit of remembered models that are named by a string; the oldest are forgotten. */
const MOST_NAMED = 100;

interface Refused {
  isWhole: boolean;
  readonly schemas: WeakSet<Schema>;
  count: number;
}

const byModel = new WeakMap<object, Refused>();
const byName = new Map<string, Refused>();

/** The format of one call, and its feedback. */
export interface Structured {
  readonly format: ResponseFormat;
  /** Records that the provider refused the format, and answered without it. */
  refused(error: unknown): void;
  /** Records that the provider answered, and reported that it ignored the format. */
  ignored(): void;
}

/**
 * Returns the format for answers that match a schema; null if only the instructions ask for it: the schema is
 * not of an object (most providers accept no other), is not known yet, or was refused before. `report` gets
 * the first refusal.
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

/** Returns whether this error may concern the format of the answer. */
export function mayRefuseFormat(error: unknown): boolean {
  if (UnsupportedFunctionalityError.isInstance(error)) return true;
  return APICallError.isInstance(error) && (error.statusCode === 400 || error.statusCode === 422);
}

/** Returns whether the answer has neither text nor a call. */
export function isSilent(answer: unknown): answer is Answer {
  const { content, finishReason, usage } = (answer ?? {}) as Partial<Answer>;
  const isCut = finishReason?.unified !== 'stop' && finishReason?.unified !== 'tool-calls';
  if (!Array.isArray(content) || !usage || isCut) return false;
  return content.every(
    (part) => part.type === 'reasoning' || (part.type === 'text' && part.text.trim() === ''),
  );
}

/** Returns the sum of the tokens of two calls. */
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

/** Returns whether the provider reported that it ignored the format. */
export function ignoresFormat({ warnings }: Answer): boolean {
  // External data, also from models of an older specification.
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
