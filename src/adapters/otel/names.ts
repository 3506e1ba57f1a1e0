// The names of attributes and metrics. The `gen_ai.*` names come from the semantic conventions for generative AI,
// release v0.1.0 of open-telemetry/semantic-conventions-genai (with v1.45.0 of the others). The token tables come from
// commit 066d4a7f356f8600de6f10c42874626ab88692fb. Their status is Development, so a release may rename them.

import type { Attributes } from '@opentelemetry/api';

export const OPERATION = 'gen_ai.operation.name';
export const AGENT_NAME = 'gen_ai.agent.name';
export const CONVERSATION_ID = 'gen_ai.conversation.id';
const PROVIDER = 'gen_ai.provider.name';
export const REQUEST_MODEL = 'gen_ai.request.model';
export const TOOL_NAME = 'gen_ai.tool.name';
export const TOOL_TYPE = 'gen_ai.tool.type';
export const TOOL_CALL_ID = 'gen_ai.tool.call.id';
export const FINISH_REASONS = 'gen_ai.response.finish_reasons';
export const INPUT_TOKENS = 'gen_ai.usage.input_tokens';
export const OUTPUT_TOKENS = 'gen_ai.usage.output_tokens';
export const CACHED_TOKENS = 'gen_ai.usage.cache_read.input_tokens';
export const REASONING_TOKENS = 'gen_ai.usage.reasoning.output_tokens';
export const CACHE_WRITE_TOKENS = 'gen_ai.usage.cache_write.input_tokens';
export const TOKEN_MODALITY = 'gen_ai.token.modality';
/** The token counters, by use. */
export const USED_TOKENS = 'gen_ai.client.inference.usage';
/** Histograms of the tokens per call. */
export const TOKENS_OF_CALL = 'gen_ai.client.inference.operation';
/** Histogram of the duration of a model call, since commit 024a4f944a1291fcb627c9c47da69e79868dd15e. */
export const INFERENCE_DURATION = 'gen_ai.client.inference.duration';
/** Histogram of the duration of a tool call. */
export const TOOL_DURATION = 'gen_ai.execute_tool.duration';
export const ERROR_TYPE = 'error.type';
export const SESSION_ID = 'session.id';

/** The root of a subagent's subtree. */
export const ROOT_AGENT = 'offstage.root_agent.name';
/** The type of a journal event. */
export const EVENT_TYPE = 'offstage.event.type';
export const SUBAGENT_ID = 'offstage.subagent.id';
/** The name of an engine step. */
export const JOB = 'offstage.job.name';
export const STEP = 'offstage.step';
export const CAUSE = 'offstage.cause';
export const LINK = 'offstage.link';
export const PARKED = 'offstage.parked';
export const OUTCOME = 'offstage.outcome';
export const HEARD = 'offstage.heard';
export const REQUEST_ID = 'offstage.request.id';
export const DELIVERY_ID = 'offstage.delivery.id';
export const ATTEMPT = 'offstage.attempt';
export const USER_SPOKE_OVER = 'offstage.user_spoke_over';
export const TIME_TO_FIRST_AUDIO_MS = 'offstage.time_to_first_audio_ms';
export const QUESTION_KIND = 'offstage.question.kind';
export const TIME_TO_HEARD_MS = 'offstage.time_to_heard_ms';

/** The runtime's model names. */
export interface ModelNames {
  readonly provider: string;
  readonly modelId: string;
}

/** The AI SDK providers that have a different name in the conventions. A suffix after `.` or `-` names the API. */
const PROVIDERS = [
  ['google.vertex', 'gcp.vertex_ai'],
  ['google-vertex', 'gcp.vertex_ai'],
  ['googleVertex', 'gcp.vertex_ai'],
  ['google', 'gcp.gemini'],
  ['gemini-live', 'gcp.gemini'],
  ['amazon-bedrock', 'aws.bedrock'],
  ['bedrock', 'aws.bedrock'],
  ['azure', 'azure.ai.openai'],
  ['openai', 'openai'],
  ['anthropic', 'anthropic'],
  ['mistral', 'mistral_ai'],
  ['moonshotai', 'moonshot_ai'],
  ['xai', 'x_ai'],
  ['cohere', 'cohere'],
  ['deepseek', 'deepseek'],
  ['groq', 'groq'],
  ['perplexity', 'perplexity'],
] as const;

/** Returns the attributes that name a model, or no attributes for an unknown model. */
export function namesOfModel(model: ModelNames | null | undefined): Attributes {
  if (!model) return {};
  const { provider, modelId } = model;
  const [, known = provider] =
    PROVIDERS.find(([prefix]) => provider === prefix || /^[.-]/.test(after(provider, prefix))) ??
    [];
  return { [PROVIDER]: known, [REQUEST_MODEL]: modelId };
}

/** Returns the text after a prefix, or an empty text if the prefix is missing. */
function after(text: string, prefix: string): string {
  return text.startsWith(prefix) ? text.slice(prefix.length) : '';
}
