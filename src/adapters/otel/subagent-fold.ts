// The state of one subagent, reconstructed from its events: its stretches of work, with their model calls and tool
// calls.

import { type Attributes, SpanKind } from '@opentelemetry/api';
import type { z } from 'zod';
import * as names from './names.ts';
import type { ScopeSpans } from './scope-spans.ts';
import type * as fields from './traced-events.ts';

/** The data that is known when the subagent starts. */
export interface Spawned {
  readonly id: string;
  readonly name: string;
  /** The root of the subagent's subtree. */
  readonly root: string;
  readonly spawnedAt: number;
  /** The key of the call that spawned the subagent. */
  readonly parent: string;
  /** The parent key for its later work, which is the key of the root or of the caller's span. */
  readonly home: string;
  /** The `callKey` of the call that spawned the subagent. */
  readonly ofCall: string | null;
  /** Whether an external agent does the work. */
  readonly isRemote: boolean;
}
type Traced = z.infer<typeof fields.state>['subagents'][number];

export class SubagentFold {
  readonly #spawned: Spawned;
  readonly #spans: ScopeSpans;
  /** The calls of the latest step that have no result, with their kind. */
  readonly #pending = new Map<string, { readonly toolName: string; kind: string }>();
  /** Whether the events of the latest step are missing. If so, it is unknown which calls of the step are open. */
  #isUncertain = false;
  #step = 0;
  #hasWorked = false;
  /** Whether the subagent is waiting for an answer. */
  isParked = false;
  /** The work has ended, but its call may still be open. */
  isOver = false;
  /** The caller considers the subagent to have ended. If no caller is waiting, the subagent may still be working. */
  hasEnded = false;
  /** The usage of an external agent since its work started or was resumed. */
  #used = { input: 0, output: 0 };

  constructor(spawned: Spawned, spans: ScopeSpans) {
    this.#spawned = spawned;
    this.#spans = spans;
  }

  get spawned(): Spawned {
    return this.#spawned;
  }

  /** The parent key for its next work. */
  get place(): string {
    return this.#hasWorked ? this.#spawned.home : this.#spawned.parent;
  }

  /** Returns the subagent's usage attributes. */
  get agent(): Attributes {
    return { [names.AGENT_NAME]: this.#spawned.name, [names.ROOT_AGENT]: this.#spawned.root };
  }

  toolOf(callId: string): string | undefined {
    return this.#pending.get(callId)?.toolName;
  }

  toState(): Traced {
    const { id, name, parent, home, isRemote } = this.#spawned;
    const pending = [...this.#pending].map(([callId, call]) => ({ callId, ...call }));
    const own = { isUncertain: this.#isUncertain, hasWorked: this.#hasWorked, step: this.#step };
    return { id, name, parent, home, isRemote, ...own, pending };
  }

  /** Restores the state from a snapshot. */
  takeState({ pending, isUncertain, hasWorked, step }: Omit<Traced, keyof Spawned>): void {
    this.#pending.clear();
    for (const { callId, ...call } of pending) this.#pending.set(callId, call);
    this.#isUncertain = isUncertain;
    this.#hasWorked = hasWorked;
    this.#step = step;
  }

  /** The subagent has a run slot. */
  work(at: number): void {
    this.isParked = false;
    const { id, name, isRemote } = this.#spawned;
    const key = `subagent:${id}`;
    if (this.isOver || this.#spans.running.has(key)) return;
    this.#spans.begin(
      key,
      `invoke_agent ${name}`,
      at,
      {
        kind: isRemote ? SpanKind.CLIENT : SpanKind.INTERNAL,
        parent: this.place,
        attributes: {
          [names.OPERATION]: 'invoke_agent',
          [names.AGENT_NAME]: name,
          [names.SUBAGENT_ID]: id,
        },
      },
      // The call that spawned the subagent may have ended long ago, so a link is enough.
      this.#hasWorked ? this.#spans.linkTo(key, 'continues') : [],
    );
    this.#hasWorked = true;
    this.#used = { input: 0, output: 0 };
    for (const [callId, { kind, toolName }] of this.#pending)
      if (isWork(kind)) this.#beginTool(callId, toolName, at);
    if (this.#pending.size === 0 && !this.#isUncertain) this.#beginStep(at);
  }

  responded(at: number, { step, again, calls, response }: z.infer<typeof fields.responded>): void {
    this.isParked = calls.some(({ kind }) => kind === 'question' || kind === 'approval');
    if (this.isOver) return;
    const { id, isRemote } = this.#spawned;
    const { finish, usage, model } = response;
    this.#step = step;
    this.#isUncertain = false;
    if (isRemote) {
      this.#used.input += usage.inputTokens ?? 0;
      this.#used.output += usage.outputTokens ?? 0;
      this.#spans.note(`subagent:${id}`, {
        [names.INPUT_TOKENS]: this.#used.input,
        [names.OUTPUT_TOKENS]: this.#used.output,
      });
    }
    this.#spans.end(`step:${id}`, at, {
      ...attributesOf({ usage, model }),
      [names.FINISH_REASONS]: finish === undefined ? undefined : [finish],
    });
    this.#pending.clear();
    for (const { callId, kind } of calls) {
      const { toolName = kind } = response.calls.find((call) => call.callId === callId) ?? {};
      this.#pending.set(callId, { toolName, kind });
      if (isWork(kind) || kind === 'delegation') this.#beginTool(callId, toolName, at);
      // The child subagent does the work, so there is no span here.
      if (kind === 'delegation') this.#spans.end(`tool:${id}:${callId}`, at);
    }
    if (response.calls.length === 0 && again !== true)
      this.end(at, { [names.OUTCOME]: 'completed' });
    else this.#goOn(at);
  }

  /** Answers arrive in the order of their questions. */
  answered(isApproved: boolean): void {
    for (const [callId, call] of this.#pending) {
      if (isWork(call.kind) || call.kind === 'delegation') continue;
      if (isApproved) call.kind = 'tool';
      else this.#pending.delete(callId);
      return;
    }
  }

  /** Records a call's result. `code`: the error code of a failed call. */
  settled(at: number, callId: string, status: string, code: string | undefined): void {
    this.#pending.delete(callId);
    if (this.isOver) return;
    this.#spans.end(`tool:${this.#spawned.id}:${callId}`, at, {
      [names.OUTCOME]: status,
      [names.ERROR_TYPE]: code,
    });
    this.#goOn(at);
  }

  /** Ends the subagent's spans. */
  end(at: number, attributes: Attributes): void {
    const { id } = this.#spawned;
    this.isOver = true;
    for (const key of this.#spans.running.keys())
      if (key === `step:${id}` || key.startsWith(`tool:${id}:`))
        this.#spans.end(key, at, attributes);
    this.#spans.end(`subagent:${id}`, at, attributes);
  }

  /** After a call, either the next call runs, the model is called, or the subagent waits. */
  #goOn(at: number): void {
    const key = `subagent:${this.#spawned.id}`;
    if (!this.#spans.running.has(key)) return;
    const kinds = [...this.#pending.values()].map(({ kind }) => kind);
    if (kinds.some(isWork) || this.#isUncertain) return;
    if (kinds.length === 0) this.#beginStep(at);
    else this.#spans.end(key, at, { [names.PARKED]: 'waiting_for_input' });
  }

  #beginStep(at: number): void {
    const { id, name, isRemote } = this.#spawned;
    // There is no local model call. The parent span covers the work of the remote agent.
    if (isRemote) return;
    this.#spans.begin(`step:${id}`, 'chat', at, {
      kind: SpanKind.CLIENT,
      parent: `subagent:${id}`,
      attributes: {
        [names.OPERATION]: 'chat',
        [names.AGENT_NAME]: name,
        [names.SUBAGENT_ID]: id,
        [names.STEP]: this.#step + 1,
      },
    });
  }

  #beginTool(callId: string, toolName: string, at: number): void {
    const { id } = this.#spawned;
    this.#spans.begin(`tool:${id}:${callId}`, `execute_tool ${toolName}`, at, {
      parent: `subagent:${id}`,
      attributes: { ...toolAttributes(toolName, callId), [names.SUBAGENT_ID]: id },
    });
  }
}

/** Whether a call is running rather than waiting for an answer. */
function isWork(kind: string): boolean {
  return kind === 'tool' || kind === 'completion';
}

/** Returns the token and model attributes of a model call. */
export function attributesOf({
  usage,
  model,
}: Pick<z.infer<typeof fields.responded>['response'], 'usage' | 'model'>): Attributes {
  const tokens = USED.map(([name, attribute]) => [attribute, usage[name]]);
  return { ...Object.fromEntries(tokens), ...names.namesOfModel(model) };
}

export const USED = [
  ['inputTokens', names.INPUT_TOKENS],
  ['outputTokens', names.OUTPUT_TOKENS],
  ['cachedInputTokens', names.CACHED_TOKENS],
  ['cacheWriteTokens', names.CACHE_WRITE_TOKENS],
  ['reasoningTokens', names.REASONING_TOKENS],
] as const;

export function toolAttributes(toolName: string, callId: string): Attributes {
  return {
    [names.OPERATION]: 'execute_tool',
    [names.TOOL_NAME]: toolName,
    [names.TOOL_TYPE]: 'function',
    [names.TOOL_CALL_ID]: callId,
  };
}
