// The mapping between ACP v1 and the relay port. It does not use a process or a connection.

import type {
  CreateElicitationResponse,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
  StopReason,
} from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import type { RelayAnswer, RelayEvent, RelayTool } from '../../actors/ports/relay.ts';
import { clip } from '../../values/clip.ts';
import { ProtocolError } from '../../values/errors.ts';

type EndReason = Extract<RelayEvent, { readonly type: 'turn_ended' }>['reason'];
type Update = SessionNotification['update'];

/** Why a turn ended, by the agent's stop reason. */
const ENDS: Readonly<Record<StopReason, EndReason>> = {
  end_turn: 'completed',
  max_tokens: 'limit',
  max_turn_requests: 'limit',
  refusal: 'refused',
  cancelled: 'cancelled',
};

/** The total number of tokens in a session. The stable protocol does not specify this field, but agents report it. */
export interface Tokens {
  readonly inputTokens?: unknown;
  readonly outputTokens?: unknown;
  readonly cachedReadTokens?: unknown;
  readonly cachedWriteTokens?: unknown;
  readonly thoughtTokens?: unknown;
}

// The SDK validates the agent's requests but not its responses.
const promptResponse = z.looseObject({
  stopReason: z.string(),
  usage: z.looseObject({}).nullish().catch(null),
});
const initializeResponse = z.looseObject({
  protocolVersion: z.number(),
  agentCapabilities: z
    .looseObject({
      loadSession: z.boolean().nullish().catch(null),
      sessionCapabilities: z.looseObject({ resume: z.unknown() }).nullish().catch(null),
    })
    .nullish()
    .catch(null),
});
const newSessionResponse = z.looseObject({ sessionId: z.string().min(1).max(1_000) });

/** Parses the response to `session/prompt`, which may be invalid. */
export function endOf(response: unknown): {
  readonly reason: EndReason;
  readonly message: string;
  readonly usage?: Tokens | null | undefined;
} {
  const { success, data, error } = promptResponse.safeParse(response);
  if (!success)
    return { reason: 'failed', message: `its answer cannot be read: ${z.prettifyError(error)}` };
  const { stopReason, usage } = data;
  if (!isStopReason(stopReason))
    return { reason: 'failed', message: `unknown stop reason ${clip(stopReason, 200)}`, usage };
  const reason = ENDS[stopReason];
  return { reason, message: reason === 'limit' ? stopReason : '', usage };
}

function isStopReason(given: string): given is StopReason {
  return Object.hasOwn(ENDS, given);
}

/**
 * Parses the response to `initialize`.
 * @throws {ProtocolError} `RELAY_FAILED`
 */
export function readAbilities(name: string, response: unknown) {
  const { protocolVersion, agentCapabilities } = readAnswer(name, initializeResponse, response);
  return {
    protocolVersion,
    resumes: Boolean(agentCapabilities?.sessionCapabilities?.resume),
    loads: agentCapabilities?.loadSession === true,
  };
}

/**
 * Parses the response to `session/new`.
 * @throws {ProtocolError} `RELAY_FAILED`
 */
export function readSessionId(name: string, response: unknown): string {
  return readAnswer(name, newSessionResponse, response).sessionId;
}

/** A session option, such as its mode or model. */
export interface SessionOption {
  readonly id: string;
  readonly current: string | boolean | null;
  /** The possible values; null for a boolean option. */
  readonly values: readonly string[] | null;
  /** The agent has modes instead of options, as in earlier protocol versions: `session/set_mode` sets this option. */
  readonly isBareMode: boolean;
}

const choice = z.looseObject({ value: z.string() }).transform(({ value }) => [value]);
const choices = z
  .looseObject({ options: z.array(choice) })
  .transform((group) => group.options.flat());
const withOptions = z.looseObject({
  configOptions: z.array(
    z.looseObject({
      id: z.string(),
      currentValue: z.union([z.string(), z.boolean()]).nullable().catch(null),
      options: z
        .array(z.union([choice, choices]))
        .nullish()
        .catch([]),
    }),
  ),
});
const withModes = z.looseObject({
  modes: z.looseObject({
    currentModeId: z.string(),
    availableModes: z.array(z.looseObject({ id: z.string() })),
  }),
});

/** Reads a session's options from the response that opened the session or set an option. */
export function readSessionOptions(response: unknown): readonly SessionOption[] {
  const listed = withOptions.safeParse(response).data?.configOptions ?? [];
  const known = listed.map(({ id, currentValue, options }): SessionOption => ({
    id,
    current: currentValue,
    values: options?.flat() ?? null,
    isBareMode: false,
  }));
  const bare = withModes.safeParse(response).data?.modes;
  if (!bare || known.some(({ id }) => id === 'mode')) return known;
  const values = bare.availableModes.map(({ id }) => id);
  return [...known, { id: 'mode', current: bare.currentModeId, values, isBareMode: true }];
}

function readAnswer<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  response: unknown,
): z.output<Schema> {
  const { success, data, error } = schema.safeParse(response);
  if (success) return data;
  throw new ProtocolError(
    'RELAY_FAILED',
    `Expected an answer of ${name} as ACP has it: ${z.prettifyError(error)}`,
  );
}

/**
 * The kinds of options for each answer, in order of preference. An option with a lasting permission is used only if the
 * answer is lasting. An option with a lasting denial is used only if there is no other denial. If no option fits, the
 * request is cancelled.
 */
const CHOICES = {
  permitted: ['allow_once'],
  lasting: ['allow_always', 'allow_once'],
  denied: ['reject_once', 'reject_always'],
} as const satisfies Record<string, readonly PermissionOption['kind'][]>;

/** The known state of an agent's tool call. */
interface KnownTool extends RelayTool {
  state: 'pending' | 'refused' | 'running' | 'ended';
}

/** The tool calls of one turn. They are stored because updates contain only changes. */
export class ToolTable {
  readonly #tools = new Map<string, KnownTool>();

  /** Returns an update's events. */
  events(update: Update): readonly RelayEvent[] {
    const { sessionUpdate } = update;
    if (sessionUpdate === 'agent_message_chunk')
      return update.content.type === 'text' ? [{ type: 'words', text: update.content.text }] : [];
    if (sessionUpdate === 'plan') {
      const entry =
        update.entries.find(({ status }) => status === 'in_progress') ??
        update.entries.find(({ status }) => status === 'pending');
      return entry ? [{ type: 'progress', text: entry.content }] : [];
    }
    const isTool = sessionUpdate === 'tool_call' || sessionUpdate === 'tool_call_update';
    return isTool ? this.#toolEvents(update) : [];
  }

  /** Returns the tool that needs permission. */
  asked({ toolCall }: RequestPermissionRequest): RelayTool {
    return this.#known(toolCall);
  }

  /** Records that permission for a tool call was denied. If the call then fails, this means that it never started. */
  refused(toolId: string): void {
    const known = this.#tools.get(toolId);
    if (known?.state === 'pending') known.state = 'refused';
  }

  #toolEvents(
    update: Extract<Update, { readonly sessionUpdate: 'tool_call' | 'tool_call_update' }>,
  ): readonly RelayEvent[] {
    const { toolCallId: toolId, status } = update;
    const known = this.#known(update);
    const { title, kind, input, state } = known;
    const events: RelayEvent[] = [];
    if (update.title) events.push({ type: 'progress', text: update.title });
    // `pending`: the call is waiting for permission, or its arguments are still being written.
    if (status === undefined || status === null || status === 'pending' || state === 'ended')
      return events;
    if (state === 'refused' && status === 'failed') {
      known.state = 'ended';
      return events;
    }
    if (state !== 'running') {
      known.state = 'running';
      events.push({ type: 'tool_started', toolId, title, kind, input });
    }
    if (status === 'in_progress') return events;
    known.state = 'ended';
    const output = update.rawOutput ?? wordsOf(update.content) ?? null;
    events.push({ type: 'tool_ended', toolId, ok: status === 'completed', output });
    return events;
  }

  #known(update: RequestPermissionRequest['toolCall']): KnownTool {
    const { toolCallId, title, kind, rawInput } = update;
    const before = this.#tools.get(toolCallId);
    const known: KnownTool = {
      title: title ?? before?.title ?? 'a tool',
      kind: kind ?? before?.kind ?? 'other',
      input: rawInput ?? before?.input ?? diffsOf(update.content),
      state: before?.state ?? 'pending',
    };
    this.#tools.set(toolCallId, known);
    return known;
  }
}

type Content = RequestPermissionRequest['toolCall']['content'];

function wordsOf(content: Content): string | null {
  const texts = (content ?? []).flatMap((part) =>
    part.type === 'content' && 'content' in part ? [textOf(part.content)] : [],
  );
  return texts.length === 0 ? null : texts.join('\n');
}

function textOf(content: unknown): string {
  const { text } = propertiesOf(content);
  return typeof text === 'string' ? text : '';
}

/** Returns the changes that a call without arguments proposes. The user approves exactly these changes. */
function diffsOf(content: Content): unknown {
  const diffs = (content ?? []).filter(({ type }) => type === 'diff');
  return diffs.length === 0 ? null : diffs;
}

/** Returns the agent's label for a lasting permission; undefined if the agent offers none. */
export function lastingIn(options: readonly PermissionOption[]): string | undefined {
  return options.find(({ kind }) => kind === 'allow_always')?.name;
}

function kindsOf(answer: RelayAnswer): readonly PermissionOption['kind'][] {
  if (answer.type === 'denied') return CHOICES.denied;
  if (answer.type !== 'permitted') return [];
  return answer.lasting === true ? CHOICES.lasting : CHOICES.permitted;
}

/** Returns the response to a permission request. */
export function permissionOutcome(
  options: readonly PermissionOption[],
  answer: RelayAnswer,
): RequestPermissionResponse {
  for (const kind of kindsOf(answer)) {
    const option = options.find((one) => one.kind === kind);
    if (option) return { outcome: { outcome: 'selected', optionId: option.optionId } };
  }
  return { outcome: { outcome: 'cancelled' } };
}

/** The response to a form that the user did not complete. */
export const NO_FORM: CreateElicitationResponse = { action: 'cancel' };
