// One subagent of a scope, folded from its events: its stretches of work, their model calls and their tool calls.

import { type Attributes, SpanKind } from '@opentelemetry/api';
import type { z } from 'zod';
import * as names from './names.ts';
import type { ScopeSpans } from './scope-spans.ts';
import type * as fields from './traced-events.ts';

/** The facts of its beginning. */
export interface Birth {
  readonly id: string;
  readonly name: string;
  /** The subagent at the top of its subtree. */
  readonly root: string;
  readonly bornAt: number;
  /** The key of the call that spawned it. */
  readonly parent: string;
  /** The key of the span that its later work is below: the root, or the span of the caller. */
  readonly home: string;
  /** The call that spawned it, as `callKey` has it. */
  readonly ofCall: string | null;
  /** An agent of somebody else does the work. */
  readonly isRemote: boolean;
}
type Traced = z.infer<typeof fields.state>['subagents'][number];

export class SubagentFold {
  readonly #birth: Birth;
  readonly #spans: ScopeSpans;
  /** The calls of its latest step without a result, with their kind. */
  readonly #pending = new Map<string, { readonly toolName: string; kind: string }>();
  /** Its latest step was not seen: which calls of it have no result is not known. */
  #isUncertain = false;
  #step = 0;
  #hasWorked = false;
  /** It waits for an answer. */
  isParked = false;
  /** Its work is over; the call that it works for may not have ended yet. */
  isOver = false;
  /** It is over for whoever asked for it; where nobody waits for it, it may still work. */
  hasEnded = false;
  /** The usage of somebody else's agent since its work began or went on. */
  #used = { input: 0, output: 0 };

  constructor(birth: Birth, spans: ScopeSpans) {
    this.#birth = birth;
    this.#spans = spans;
  }

  get birth(): Birth {
    return this.#birth;
  }

  /** The key of the span that its next work is below. */
  get place(): string {
    return this.#hasWorked ? this.#birth.home : this.#birth.parent;
  }

  /** The attributes of what it used. */
  get agent(): Attributes {
    return { [names.AGENT_NAME]: this.#birth.name, [names.ROOT_AGENT]: this.#birth.root };
  }

  toolOf(callId: string): string | undefined {
    return this.#pending.get(callId)?.toolName;
  }

  toState(): Traced {
    const { id, name, parent, home, isRemote } = this.#birth;
    const pending = [...this.#pending].map(([callId, call]) => ({ callId, ...call }));
    const own = { isUncertain: this.#isUncertain, hasWorked: this.#hasWorked, step: this.#step };
    return { id, name, parent, home, isRemote, ...own, pending };
  }

  /** Goes on from a snapshot. */
  takeState({ pending, isUncertain, hasWorked, step }: Omit<Traced, keyof Birth>): void {
    this.#pending.clear();
    for (const { callId, ...call } of pending) this.#pending.set(callId, call);
    this.#isUncertain = isUncertain;
    this.#hasWorked = hasWorked;
    this.#step = step;
  }

  /** It has a run slot. */
  work(at: number): void {
    this.isParked = false;
    const { id, name, isRemote } = this.#birth;
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
      // The call that spawned it may be long over when it goes on: a link is enough.
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
    const { id, isRemote } = this.#birth;
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
      // The child is the work.
      if (kind === 'delegation') this.#spans.end(`tool:${id}:${callId}`, at);
    }
    if (response.calls.length === 0 && again !== true)
      this.end(at, { [names.OUTCOME]: 'completed' });
    else this.#goOn(at);
  }

  /** Questions are answered in the order in which they were asked. */
  answered(isApproved: boolean): void {
    for (const [callId, call] of this.#pending) {
      if (isWork(call.kind) || call.kind === 'delegation') continue;
      if (isApproved) call.kind = 'tool';
      else this.#pending.delete(callId);
      return;
    }
  }

  /** A call of it has its result. `code`: it failed with that. */
  settled(at: number, callId: string, status: string, code: string | undefined): void {
    this.#pending.delete(callId);
    if (this.isOver) return;
    this.#spans.end(`tool:${this.#birth.id}:${callId}`, at, {
      [names.OUTCOME]: status,
      [names.ERROR_TYPE]: code,
    });
    this.#goOn(at);
  }

  /** Ends its spans. */
  end(at: number, attributes: Attributes): void {
    const { id } = this.#birth;
    this.isOver = true;
    for (const key of this.#spans.running.keys())
      if (key === `step:${id}` || key.startsWith(`tool:${id}:`))
        this.#spans.end(key, at, attributes);
    this.#spans.end(`subagent:${id}`, at, attributes);
  }

  /** After a call: the next one goes on, or the model is asked, or it waits. */
  #goOn(at: number): void {
    const key = `subagent:${this.#birth.id}`;
    if (!this.#spans.running.has(key)) return;
    const kinds = [...this.#pending.values()].map(({ kind }) => kind);
    if (kinds.some(isWork) || this.#isUncertain) return;
    if (kinds.length === 0) this.#beginStep(at);
    else this.#spans.end(key, at, { [names.PARKED]: 'waiting_for_input' });
  }

  #beginStep(at: number): void {
    const { id, name, isRemote } = this.#birth;
    // No model of ours is called: the work of the other agent is the span above.
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
    const { id } = this.#birth;
    this.#spans.begin(`tool:${id}:${callId}`, `execute_tool ${toolName}`, at, {
      parent: `subagent:${id}`,
      attributes: { ...toolAttributes(toolName, callId), [names.SUBAGENT_ID]: id },
    });
  }
}

/** A call that runs, in contrast to one that waits for somebody. */
function isWork(kind: string): boolean {
  return kind === 'tool' || kind === 'completion';
}

/** The tokens of a model call, and its model. */
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
