// The calls that language model APIs refuse, as rules for the calls that an AI SDK model receives. The rules concern
// the order of messages, calls with their results and reasoning, names, ids, empty texts, and tool schemas.
//
// Owns:     the rules, each with its API, the API's error text and the source; and the error for a refused call.
// Does not: refuse a call that the provider's official package repairs before it sends the call.
//
// Invariants
//   PROVIDER-RULES-1. Each rule describes a refusal that an API has been observed to send. The rule's source shows the
//       response.
//   PROVIDER-RULES-2. When a call is sent back, the rest of its answer must be sent back too: the reasoning, and the
//       provider's state (`providerMetadata`).

import { APICallError, UnsupportedFunctionalityError } from 'ai';
import {
  callsIn,
  findCall,
  findSecondCall,
  firstTwice,
  forAnthropic,
  forBedrock,
  inSchema,
  isObject,
  isReasoning,
  isSignedCall,
  joined,
  lateSystem,
  lostState,
  ofSchemas,
  ofTools,
  orphanResult,
  resultIdsIn,
  turnsOf,
  unanswered,
  when,
  type EarlierAnswers,
  type RuledCall,
  type Schema,
} from './ruled-call.ts';
import type { Content } from './scripted-steps.ts';
export type { EarlierAnswers, RuledCall } from './ruled-call.ts';

/** A language model API. `qwen` stands for any model whose chat template accepts only one system message. */
export type ProviderApi =
  | 'anthropic'
  | 'bedrock'
  | 'deepseek'
  | 'google'
  | 'mistral'
  | 'openai-chat'
  | 'openai-responses'
  | 'qwen';

/** A kind of call that an API refuses. */
export interface ProviderRule {
  /** The name of the part that APIs refuse. It is the same for all APIs that refuse this part. */
  readonly name: string;
  /** The API that has the rule. */
  readonly api: ProviderApi;
  /** Where the API has been observed to refuse such a call. */
  readonly source: string;
  /** Returns the API's error text, or null if the API accepts the call. */
  readonly refusal: (call: RuledCall, earlier: EarlierAnswers) => string | null;
  /** Whether the provider's package refuses the call before it sends a request. @defaultValue false */
  readonly byPackage?: boolean;
}

/** A rule that refuses a call, together with the API's error text. */
export interface ProviderRefusal {
  /** The rule that was broken. */
  readonly rule: ProviderRule;
  /** The error text of the provider. */
  readonly words: string;
}

const NONE: EarlierAnswers = new Map();

/** The rule of APIs that use OpenAI's chat format: each tool result must follow its call. */
const withoutCall: ProviderRule['refusal'] = ({ prompt }) =>
  when(
    orphanResult(joined(prompt)) !== null,
    "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
  );

type OneApi = Omit<ProviderRule, 'name'>;

/** @param seen where the API refused such a call: a path on GitHub or a full address */
function by(
  api: ProviderApi,
  seen: string,
  refusal: ProviderRule['refusal'],
  byPackage = false,
): OneApi {
  const source = seen.startsWith('https:') ? seen : `https://github.com/${seen}`;
  return { api, source, refusal, byPackage };
}

const rulesOf = (name: string, ...apis: readonly OneApi[]): readonly ProviderRule[] =>
  apis.map((one) => ({ name, ...one }));

/** All rules. They show which calls each API refuses. `providerRefusals` applies them. */
export const providerRules: readonly ProviderRule[] = [
  // --- order
  ...rulesOf(
    'last-message',
    by('anthropic', 'anthropics/claude-code/issues/52433', ({ prompt }) =>
      when(
        forAnthropic(prompt).at(-1)?.role === 'assistant',
        'This model does not support assistant message prefill. The conversation must end with a user message.',
      ),
    ),
    by('mistral', 'crewAIInc/crewAI/issues/2194', ({ prompt }) =>
      when(
        prompt.at(-1)?.role === 'assistant',
        'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
      ),
    ),
  ),
  ...rulesOf(
    'system-first',
    by(
      'google',
      'https://www.npmjs.com/package/@ai-sdk/google (convertToGoogleMessages)',
      ({ prompt }) =>
        when(
          lateSystem(prompt),
          'system messages are only supported at the beginning of the conversation',
        ),
      true,
    ),
    by(
      'bedrock',
      'https://www.npmjs.com/package/@ai-sdk/amazon-bedrock (convertToAmazonBedrockChatMessages)',
      (call) =>
        when(
          lateSystem(forBedrock(call)),
          'Multiple system messages that are separated by user/assistant messages',
        ),
      true,
    ),
    by('anthropic', 'anthropics/claude-code/issues/61412', ({ prompt }) =>
      // The package sends the first run of system messages outside the conversation, even if other messages precede it.
      when(
        prompt.filter(({ role }, at) => role === 'system' && prompt[at - 1]?.role !== role).length >
          1,
        "role 'system' is not supported on this model",
      ),
    ),
    by('qwen', 'vllm-project/vllm/issues/41114', ({ prompt }) =>
      when(lateSystem(prompt), 'System message must be at the beginning.'),
    ),
    by(
      'mistral',
      'mistralai/mistral-common (validator.py, _validate_message_order)',
      ({ prompt }) => {
        const at = prompt.findIndex(
          ({ role }, index) =>
            role === 'system' && /assistant|tool/.test(prompt[index - 1]?.role ?? ''),
        );
        return when(at >= 0, `Unexpected role 'system' after role '${prompt[at - 1]?.role}'`);
      },
    ),
  ),
  ...rulesOf(
    'some-message',
    by('google', 'NousResearch/hermes-agent/pull/57942', ({ prompt }) =>
      when(
        prompt.every(({ role }) => role === 'system'),
        '* GenerateContentRequest.contents: contents is not specified',
      ),
    ),
    by('anthropic', 'langchain-ai/langchain/pull/31696', ({ prompt }) =>
      when(forAnthropic(prompt).length === 0, 'messages: at least one message is required'),
    ),
  ),
  ...rulesOf(
    'call-after-user',
    by('google', 'google-gemini/gemini-cli/issues/11814', ({ prompt }) =>
      when(
        turnsOf(prompt).some(
          (message, index, turns) =>
            callsIn(message).length > 0 && !/user|tool/.test(turns[index - 1]?.role ?? ''),
        ),
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      ),
    ),
  ),
  // --- calls and results
  ...rulesOf(
    'result-for-call',
    by('anthropic', 'anthropics/claude-code/issues/8210', ({ prompt }) => {
      const open = unanswered(forAnthropic(prompt));
      return (
        open &&
        `messages.${open.at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
      );
    }),
    by('openai-chat', 'aliasrobotics/cai/issues/111', ({ prompt }) => {
      const open = unanswered(joined(prompt));
      return (
        open &&
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.ids}`
      );
    }),
    by('openai-responses', 'bytedance/trae-agent/issues/245', ({ prompt }) => {
      const open = unanswered(prompt, prompt.length);
      return open && `No tool output found for function call ${open.ids}.`;
    }),
    by(
      'mistral',
      'mistralai/mistral-common (validator.py, MistralRequestValidatorV13)',
      ({ prompt }) =>
        when(
          unanswered(joined(prompt)) !== null,
          'Not the same number of function calls and responses',
        ),
    ),
    by('google', 'google-gemini/gemini-cli/issues/4217', ({ prompt }) =>
      when(
        unanswered(prompt) !== null,
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      ),
    ),
    by('deepseek', 'zed-industries/zed/issues/51944', ({ prompt }) =>
      when(
        unanswered(joined(prompt)) !== null,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
      ),
    ),
    by('qwen', 'agynio/v1/issues/1346', ({ prompt }) => {
      const open = unanswered(joined(prompt));
      return (
        open &&
        `<400> InternalError.Algo.InvalidParameter: An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id". The following tool_call_ids did not have response messages: ${open.ids}`
      );
    }),
    by('bedrock', 'agno-agi/agno/issues/6698', (call) => {
      const open = unanswered(forBedrock(call));
      return (
        open &&
        `Expected toolResult blocks at messages.${open.at + 1}.content for the following Ids: ${open.ids}`
      );
    }),
  ),
  ...rulesOf(
    'call-for-result',
    by('anthropic', 'anthropics/claude-code/issues/18947', ({ prompt }) => {
      const orphan = orphanResult(forAnthropic(prompt));
      return (
        orphan &&
        `messages.${orphan.at}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${orphan.id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
      );
    }),
    by('openai-chat', 'FoundationAgents/OpenManus/issues/744', withoutCall),
    by('openai-responses', 'continuedev/continue/issues/10092', ({ prompt }) => {
      const orphan = orphanResult(prompt, prompt.length);
      return orphan && `No tool call found for function call output with call_id ${orphan.id}.`;
    }),
    by('deepseek', 'FoundationAgents/OpenManus/issues/23', withoutCall),
    by('qwen', 'langchain-ai/langgraph-supervisor-py/issues/203', ({ prompt }) =>
      when(
        orphanResult(joined(prompt)) !== null,
        '<400> InternalError.Algo.InvalidParameter: messages with role "tool" must be a response to a preceeding message with "tool_calls".',
      ),
    ),
  ),
  ...rulesOf(
    'one-result-for-call',
    by(
      'mistral',
      'mistralai/mistral-common (validator.py, MistralRequestValidatorV13)',
      ({ prompt }) => {
        for (const message of joined(prompt)) {
          const id = firstTwice(message.role === 'tool' ? resultIdsIn(message) : []);
          if (id !== undefined) return `Duplicate tool call id ${id} in tool results`;
        }
        return null;
      },
    ),
  ),
  ...rulesOf(
    'tools-for-calls',
    by('bedrock', 'langgenius/dify/issues/17545', ({ prompt, tools = [] }) =>
      when(
        tools.length === 0 && prompt.some((message) => callsIn(message).length > 0),
        'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
      ),
    ),
  ),
  // --- the other parts of an answer with calls
  ...rulesOf(
    'reasoning-kept',
    by('anthropic', 'deepset-ai/haystack-core-integrations/issues/2146', ({ prompt }, earlier) => {
      const lost = lostState(prompt, earlier, isReasoning);
      return (
        lost &&
        `messages.${lost.at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`
      );
    }),
    by('deepseek', 'abhigyanpatwari/GitNexus/issues/43', ({ prompt }, earlier) => {
      const lost = lostState(prompt, earlier, isReasoning);
      return (
        lost &&
        `Missing \`reasoning_content\` field in the assistant message at message index ${lost.at}.`
      );
    }),
    by('openai-responses', 'TanStack/ai/issues/1212', ({ prompt }, earlier) => {
      const lost = lostState(prompt, earlier, isReasoning);
      return (
        lost &&
        `Item '${lost.id}' of type 'function_call' was provided without its required 'reasoning' item.`
      );
    }),
  ),
  ...rulesOf(
    'call-state-kept',
    by(
      'google',
      'https://ai.google.dev/gemini-api/docs/thought-signatures',
      ({ prompt }, earlier) => {
        const lost = lostState(prompt, earlier, isSignedCall);
        return (
          lost &&
          `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${lost.name}\` , position ${lost.at}.`
        );
      },
    ),
  ),
  // --- ids and names
  ...rulesOf(
    'call-id',
    by('anthropic', 'maximhq/bifrost/issues/5097', ({ prompt }) => {
      const call = findCall(prompt, ({ toolCallId }) => !/^[\w-]+$/.test(toolCallId));
      return (
        call &&
        `messages.${call.at}.content.${call.index}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`
      );
    }),
    by('openai-responses', 'AnswerDotAI/fastllm/issues/45', ({ prompt }) => {
      const call = findCall(prompt, ({ toolCallId }) => toolCallId.length > 64);
      return (
        call &&
        `Invalid 'input[${call.at}].call_id': string too long. Expected a string with maximum length 64, but got a string with length ${call.part.toolCallId.length} instead.`
      );
    }),
  ),
  ...rulesOf(
    'unique-call-id',
    by('anthropic', 'anthropics/claude-code/issues/20901', ({ prompt }) => {
      const twice = firstTwice(prompt.flatMap(callsIn).map(({ toolCallId }) => toolCallId));
      const again = findSecondCall(prompt, twice);
      return (
        again && `messages.${again.at}.content.${again.index}: \`tool_use\` ids must be unique`
      );
    }),
  ),
  ...rulesOf(
    'tool-name',
    by('openai-chat', 'vercel/ai/issues/1972', ({ tools }) =>
      ofTools(tools, ({ name }, at) =>
        /^[\w-]+$/.test(name)
          ? name.length > 64 &&
            `Invalid 'tools[${at}].function.name': string too long. Expected a string with maximum length 64, but got a string with length ${name.length} instead.`
          : `Invalid 'tools[${at}].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      ),
    ),
    by('google', 'google-gemini/gemini-cli/issues/9535', ({ tools }) =>
      ofTools(
        tools,
        ({ name }, at) =>
          !/^[a-zA-Z_][\w.:-]{0,63}$/.test(name) &&
          `* GenerateContentRequest.tools[0].function_declarations[${at}].name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.`,
      ),
    ),
    by('openai-responses', 'openai/openai-dotnet/issues/441', ({ tools }) =>
      ofTools(
        tools,
        ({ name }, at) =>
          !/^[\w-]+$/.test(name) &&
          `Invalid 'tools[${at}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      ),
    ),
    by('anthropic', 'home-assistant/core/issues/147760', ({ tools }) =>
      ofTools(
        tools,
        ({ name }, at) =>
          !/^[\w-]{1,128}$/.test(name) &&
          `tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`,
      ),
    ),
    by('bedrock', 'aws-samples/remote-swe-agents/pull/457', ({ tools }) =>
      ofTools(
        tools,
        ({ name }, at) =>
          !/^[\w-]+$/.test(name) &&
          `Value '${name}' at 'toolConfig.tools.${at + 1}.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+`,
      ),
    ),
    by('mistral', 'Kochava-Studios/witsy/pull/164', ({ tools }) =>
      ofTools(
        tools,
        ({ name }) =>
          !/^[\w-]{1,64}$/.test(name) &&
          `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
      ),
    ),
  ),
  ...rulesOf(
    'unique-tool-name',
    by('anthropic', 'eclipse-theia/theia/issues/16122', ({ tools = [] }) =>
      when(
        firstTwice(tools.map(({ name }) => name)) !== undefined,
        'tools: Tool names must be unique.',
      ),
    ),
  ),
  ...rulesOf(
    'called-name',
    by('openai-chat', 'mcp-use/mcp-use/issues/90', ({ prompt }) => {
      const call = findCall(prompt, ({ toolName }) => !/^[\w-]+$/.test(toolName));
      return (
        call &&
        `Invalid 'messages[${call.at}].tool_calls[${call.index}].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
      );
    }),
    by(
      'mistral',
      'mistralai/mistral-common (validator.py, _validate_function_call)',
      ({ prompt }) => {
        const call = findCall(prompt, ({ toolName }) => !/^[\w-]{1,64}$/.test(toolName));
        return (
          call &&
          `Function name was ${call.part.toolName} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`
        );
      },
    ),
  ),
  ...rulesOf(
    'called-arguments',
    by('qwen', 'QwenLM/Qwen3/issues/1894', ({ prompt }) =>
      when(
        findCall(prompt, ({ input }) => !isObject(input)) !== null,
        'Can only get item pairs from a mapping.',
      ),
    ),
  ),
  // --- empty texts
  ...rulesOf(
    'blank-text',
    by('anthropic', 'anthropics/claude-code/issues/23440', ({ prompt }) =>
      when(
        prompt.some(
          ({ role, content }) =>
            typeof content !== 'string' &&
            content.some(
              (part) =>
                part.type === 'text' &&
                part.text.trim() === '' &&
                // The package omits empty texts of the assistant.
                (role === 'user' || part.text !== ''),
            ),
        ),
        'messages: text content blocks must contain non-whitespace text',
      ),
    ),
    by('bedrock', 'OpenHands/OpenHands/issues/5339', (call) => {
      const at = turnsOf(forBedrock(call)).findIndex(
        ({ role, content }) =>
          role === 'user' &&
          content.some((part) => part.type === 'text' && part.text.trim() === ''),
      );
      return when(
        at >= 0,
        `The text field in the ContentBlock object at messages.${at}.content.0 is blank. Add text to the text field, and try again.`,
      );
    }),
  ),
  ...rulesOf(
    'empty-message',
    by('google', 'vercel/ai/issues/3775', ({ prompt }) => {
      const at = turnsOf(prompt).findIndex(({ content }) =>
        content.every((part) => part.type === 'text' && part.text === ''),
      );
      return when(
        at >= 0,
        `* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.`,
      );
    }),
  ),
  // --- schemas of tools
  ...rulesOf(
    'object-at-root',
    by('openai-chat', 'browserbase/stagehand/issues/1159', ({ tools }) =>
      ofSchemas(tools, noObjectAtRoot),
    ),
    by('openai-chat', 'nspady/google-calendar-mcp/issues/39', ({ tools }) =>
      ofSchemas(tools, (schema, name) =>
        when(
          schema['type'] === 'object' &&
            ['oneOf', 'anyOf', 'allOf', 'enum', 'not'].some((keyword) => keyword in schema),
          `Invalid schema for function '${name}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.`,
        ),
      ),
    ),
    by('openai-responses', 'ComposioHQ/composio/issues/1829', ({ tools }) =>
      ofSchemas(tools, noObjectAtRoot),
    ),
    by('bedrock', 'cognitect-labs/aws-api/issues/272', ({ tools }) =>
      ofSchemas(tools, (schema, _, at) =>
        when(
          schema['type'] !== 'object',
          `The value at toolConfig.tools.${at}.toolSpec.inputSchema.json.type must be one of the following: object.`,
        ),
      ),
    ),
    by('anthropic', 'MoonshotAI/kimi-code/issues/2328', ({ tools }) =>
      ofSchemas(tools, (schema, _, at) =>
        when(
          ['oneOf', 'allOf', 'anyOf'].some((keyword) => keyword in schema),
          `tools.${at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`,
        ),
      ),
    ),
  ),
  ...rulesOf(
    'listed-items',
    by('openai-chat', 'vercel/ai/issues/2271', ({ tools }) =>
      ofSchemas(tools, (schema, name) => {
        const tuple = inSchema(schema, ({ items }) => Array.isArray(items));
        return (
          tuple &&
          `Invalid schema for function '${name}': ${JSON.stringify(tuple.schema['items'])} is not of type 'object', 'boolean'.`
        );
      }),
    ),
    by('anthropic', 'openclaw/openclaw/issues/98588', ({ tools }) =>
      ofSchemas(tools, (schema, _, at) =>
        when(
          inSchema(schema, ({ items }) => Array.isArray(items)) !== null,
          `tools.${at}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).`,
        ),
      ),
    ),
  ),
  ...rulesOf(
    'items',
    by('openai-chat', 'LionSR/TeXRA/pull/2323', ({ tools }) =>
      ofSchemas(tools, (schema, name) => {
        const array = inSchema(
          schema,
          ({ type, items }) => type === 'array' && items === undefined,
        );
        return (
          array &&
          `Invalid schema for function '${name}': In context=(${array.path.map((key) => `'${key}'`).join(', ')}), array schema missing items.`
        );
      }),
    ),
  ),
  ...rulesOf(
    'properties',
    by('openai-chat', 'spring-projects/spring-ai/issues/4776', ({ tools }) =>
      ofSchemas(tools, noProperties),
    ),
    by('openai-responses', 'everruns/everruns/pull/984', ({ tools }) =>
      ofSchemas(tools, noProperties),
    ),
  ),
  ...rulesOf(
    'property-name',
    by('anthropic', 'anthropics/claude-code/issues/79418', ({ tools }) =>
      ofSchemas(tools, (schema, _, at) =>
        when(
          Object.keys(schema['properties'] ?? {}).some((key) => !/^[\w.-]{1,64}$/.test(key)),
          `tools.${at}.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`,
        ),
      ),
    ),
  ),
  // --- rules of a single API, for calls that all other APIs accept
  ...rulesOf(
    'first-message',
    by('bedrock', 'langgenius/dify/issues/12340', (call) =>
      when(
        turnsOf(forBedrock(call))[0]?.role !== 'user',
        'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
      ),
    ),
  ),
  ...rulesOf(
    'user-after-result',
    by('mistral', 'mistralai/mistral-common/issues/169', ({ prompt }) =>
      when(
        prompt.some(({ role }, index) => role === 'user' && prompt[index - 1]?.role === 'tool'),
        "Unexpected role 'user' after role 'tool'",
      ),
    ),
  ),
  ...rulesOf(
    'call-id',
    by(
      'mistral',
      'mistralai/mistral-common (validator.py, MistralRequestValidatorV3)',
      ({ prompt }) => {
        const call = findCall(prompt, ({ toolCallId }) => !/^[a-zA-Z0-9]{9}$/.test(toolCallId));
        return (
          call &&
          `Tool call id was ${call.part.toolCallId} but must be a-z, A-Z, 0-9, with a length of 9.`
        );
      },
    ),
  ),
];

/**
 * Returns a refusal for each rule that this call breaks. The list is empty if all APIs would accept the call.
 * @param apis The APIs to check. @defaultValue all of them
 * @param earlier The model's earlier answers, by the ids of their calls. Each answer must be sent back complete.
 */
export function providerRefusals(
  call: RuledCall,
  apis: readonly ProviderApi[] | null = null,
  earlier: EarlierAnswers = NONE,
): readonly ProviderRefusal[] {
  const refusals: ProviderRefusal[] = [];
  for (const rule of providerRules) {
    if (apis && !apis.includes(rule.api)) continue;
    const words = rule.refusal(call, earlier);
    if (words !== null) refusals.push({ rule, words });
  }
  return refusals;
}

/** The body of an API's response that refuses a request (400). */
export function refusalBody({ rule: { api }, words: message }: ProviderRefusal): object {
  const type = 'invalid_request_error';
  if (api === 'anthropic') return { type: 'error', error: { type, message } };
  if (api === 'google') return { error: { code: 400, message, status: 'INVALID_ARGUMENT' } };
  if (api === 'mistral') return { object: 'error', message, type, param: null, code: null };
  if (api === 'bedrock') return { message };
  if (api === 'qwen')
    return { error: { message, type, param: null, code: 'invalid_parameter_error' } };
  return { error: { message, type, param: null, code: null } };
}

/** The error that the provider's package throws for a refusal. */
export function refusalError(refusal: ProviderRefusal): Error {
  const { rule, words } = refusal;
  if (rule.byPackage) return new UnsupportedFunctionalityError({ functionality: words });
  const data = refusalBody(refusal);
  return new APICallError({
    message: words,
    url: rule.source,
    requestBodyValues: {},
    statusCode: 400,
    responseBody: JSON.stringify(data),
    isRetryable: false,
    data,
  });
}

/** The APIs whose rules a test double applies: all of them (`true`), those in a list, or none (`false`). */
export type RulesOption = boolean | readonly ProviderApi[];

/**
 * Rules that apply only if the API is listed by name. Other APIs accept such calls. Either this API's models do not
 * make such calls, or its package omits the refused part with a warning (calls in a prompt without tools).
 */
const ONLY_IF_NAMED: ReadonlySet<string> = new Set([
  'bedrock tools-for-calls',
  'bedrock first-message',
  'mistral user-after-result',
  'mistral call-id',
]);

/**
 * Returns two functions for one model: `check` throws the API's error if an API would refuse the call. `answered`
 * records each answer, because its reasoning and state must be sent back with its calls (PROVIDER-RULES-2).
 */
export function providerCheck(rules: RulesOption) {
  const apis = rules === true ? null : rules || [];
  const earlier = new Map<string, readonly Content[]>();
  return {
    check(call: RuledCall): void {
      const refusal = providerRefusals(call, apis, earlier).find(
        ({ rule }) => apis !== null || !ONLY_IF_NAMED.has(`${rule.api} ${rule.name}`),
      );
      if (refusal) throw refusalError(refusal);
    },
    answered(content: readonly Content[]): void {
      for (const part of content)
        if (part.type === 'tool-call') earlier.set(part.toolCallId, content);
    },
  };
}

function noObjectAtRoot(schema: Schema, name: string): string | null {
  const { type } = schema;
  return when(
    type !== 'object',
    `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"', got 'type: "${typeof type === 'string' ? type : 'None'}"'.`,
  );
}

function noProperties(schema: Schema, name: string): string | null {
  return when(
    schema['type'] === 'object' && schema['properties'] === undefined,
    `Invalid schema for function '${name}': In context=(), object schema missing properties.`,
  );
}
