// The steps of a scripted model, and the answers that they produce.

import type { LanguageModel } from 'ai';

/** The newest version of the model specification that the AI SDK accepts. */
export type ScriptedLanguageModel = Extract<LanguageModel, { specificationVersion: 'v4' }>;
export type CallOptions = Parameters<ScriptedLanguageModel['doGenerate']>[0];
type Answer = Awaited<ReturnType<ScriptedLanguageModel['doGenerate']>>;
export type Content = Answer['content'][number];
type Finish = Answer['finishReason']['unified'];

/** The options that every kind of step has. */
interface StepOptions {
  /**
   * The model's thoughts before the answer. Like a provider, the double signs the thoughts and the first call of the
   * answer (`providerMetadata`), and the signature must be sent back with them.
   */
  readonly thinking?: string;
  /** How long the model takes to answer, in milliseconds of the `environment`. @defaultValue 0 */
  readonly delayMs?: number;
  /** How the answer ends: `length`, `content-filter`, … @defaultValue derived from the content */
  readonly finish?: Finish;
}

/** A step of a scripted model. Other test doubles use the forms with a `type`. */
export type ScriptedStep = StepOptions &
  (
    | { readonly text: string; readonly calls?: never }
    | { readonly calls: readonly ScriptedCall[]; readonly text?: string }
    /** Fails like a call to a provider. */
    | { readonly error: unknown }
    | {
        readonly type: 'text';
        readonly content: string;
        /** If an answer has no calls, its finish reason is always `stop`. */
        readonly shouldStop?: true;
      }
    | {
        readonly type: 'tool_calls';
        readonly content?: string;
        readonly toolCalls?: readonly {
          readonly id?: string;
          readonly name: string;
          readonly arguments: unknown;
        }[];
        /** Calls to `subagent__<agentType>`. */
        readonly subAgentCalls?: readonly {
          readonly id?: string;
          readonly agentType: string;
          readonly input: unknown;
        }[];
      }
    /** The result, as JSON. */
    | { readonly type: 'structured_output'; readonly output: unknown }
    | { readonly type: 'error'; readonly error: unknown }
  );

/** A tool call of a scripted model. */
export interface ScriptedCall {
  /** The tool's name. */
  readonly name: string;
  /** A string is passed on unchanged, to simulate arguments that are not JSON. */
  readonly input: unknown;
  /** @defaultValue `call_<n>`, counted per model */
  readonly id?: string;
}

/** Returns the answer for a step. @throws the `error` of the step */
export function answerOf(
  step: ScriptedStep,
  nextId: () => string,
): { readonly content: Content[]; readonly finish: Finish } {
  if ('error' in step) throw step.error;
  const { text, calls } = wordsAndCalls(step);
  const content: Content[] = [];
  const signed =
    step.thinking === undefined
      ? {}
      : { providerMetadata: { offstage: { signature: `signed: ${step.thinking.slice(0, 40)}` } } };
  if (step.thinking !== undefined)
    content.push({ type: 'reasoning', text: step.thinking, ...signed });
  if (text !== undefined) content.push({ type: 'text', text });
  for (const { name, input, id } of calls ?? []) {
    const counted = nextId();
    content.push({
      type: 'tool-call',
      toolCallId: id ?? counted,
      toolName: name,
      input: typeof input === 'string' ? input : JSON.stringify(input),
      ...(content.some(({ type }) => type === 'tool-call') ? {} : signed),
    });
  }
  return { content, finish: step.finish ?? (calls ? 'tool-calls' : 'stop') };
}

type Answering = Exclude<ScriptedStep, { readonly error: unknown }>;

function wordsAndCalls(step: Answering): {
  readonly text?: string | undefined;
  readonly calls?: readonly ScriptedCall[] | undefined;
} {
  if (!('type' in step)) return step;
  if (step.type === 'text') return { text: step.content };
  if (step.type === 'structured_output') return { text: JSON.stringify(step.output) };
  const { toolCalls = [], subAgentCalls = [] } = step;
  return {
    text: step.content,
    calls: [
      ...toolCalls.map(({ arguments: input, ...call }) => ({ ...call, input })),
      ...subAgentCalls.map(({ agentType, ...call }) => ({
        ...call,
        name: `subagent__${agentType}`,
      })),
    ],
  };
}
