// The names of attributes. Those of `gen_ai.*` are from the semantic conventions for generative AI, whose
// status is Development (open-telemetry/semantic-conventions-genai, as they were in November 2026): a release of
// them may rename any.

export const OPERATION = 'gen_ai.operation.name';
export const AGENT_NAME = 'gen_ai.agent.name';
export const CONVERSATION_ID = 'gen_ai.conversation.id';
export const TOOL_NAME = 'gen_ai.tool.name';
export const TOOL_TYPE = 'gen_ai.tool.type';
export const TOOL_CALL_ID = 'gen_ai.tool.call.id';
export const FINISH_REASONS = 'gen_ai.response.finish_reasons';
export const INPUT_TOKENS = 'gen_ai.usage.input_tokens';
export const OUTPUT_TOKENS = 'gen_ai.usage.output_tokens';
export const CACHED_TOKENS = 'gen_ai.usage.cache_read.input_tokens';
export const REASONING_TOKENS = 'gen_ai.usage.reasoning.output_tokens';
export const TOKEN_TYPE = 'gen_ai.token.type';
export const ERROR_TYPE = 'error.type';
export const SESSION_ID = 'session.id';

/** The subagent at the top of the subtree. */
export const ROOT_AGENT = 'offstage.root_agent.name';
/** The type of an event of the journal. */
export const EVENT_TYPE = 'offstage.event.type';
export const SUBAGENT_ID = 'offstage.subagent.id';
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
