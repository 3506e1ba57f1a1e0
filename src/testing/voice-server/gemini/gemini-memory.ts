// The memory of a Gemini Live session: its setup and its conversation. The protocol has no item ids, so this module
// names the items.

import type { FakeItem, FakeTool, VoiceCause } from '../engine/control.ts';
import {
  InvalidMessage,
  type Content,
  type FunctionDeclaration,
  type FunctionResponse,
  type Setup,
  type Tool,
} from './client-messages.ts';
const INVALID = 'Request contains an invalid argument.';

/** A call that the model has made. */
export interface GeminiCall {
  readonly callId: string;
  readonly name: string;
  readonly behavior: Behavior;
}

/** The state that a later connection can resume. */
export interface GeminiMemory {
  readonly items: readonly FakeItem[];
  readonly openCalls: readonly GeminiCall[];
}

export class GeminiSession {
  readonly setup: Setup;
  readonly traits: ModelTraits;
  readonly items: FakeItem[];
  readonly openCalls = new Map<string, GeminiCall>();
  instructions: string;
  readonly #newId: () => string;
  #declarations: readonly FunctionDeclaration[] = [];

  /** @throws {InvalidMessage} if this model does not support the setup */
  constructor(setup: Setup, from: GeminiMemory | null, newId: () => string) {
    this.setup = setup;
    this.#newId = newId;
    this.traits = traitsOf(setup.model);
    this.items = [...(from?.items ?? [])];
    for (const call of from?.openCalls ?? []) this.openCalls.set(call.callId, call);
    this.instructions = textOf(setup.systemInstruction);
    this.declare(setup.tools ?? []);
    const thinking = setup.generationConfig?.thinkingConfig;
    const ways = [thinking?.thinkingLevel, thinking?.thinkingBudget].filter(
      (way) => way !== undefined,
    );
    if (this.traits.mustThink && ways.length !== 1) throw new InvalidMessage(INVALID);
  }

  get memory(): GeminiMemory {
    return { items: [...this.items], openCalls: [...this.openCalls.values()] };
  }

  /** The calls whose results the model needs before it continues. */
  get blockingCalls(): readonly GeminiCall[] {
    return [...this.openCalls.values()].filter(({ behavior }) => behavior === 'BLOCKING');
  }

  get isBlocked(): boolean {
    return this.blockingCalls.length > 0;
  }

  get tools(): readonly FakeTool[] {
    return this.#declarations.map(({ name, description, parameters, parametersJsonSchema }) => ({
      name,
      description: description ?? '',
      parameters: parametersJsonSchema ?? parameters ?? null,
    }));
  }

  /** @throws {InvalidMessage} */
  declare(tools: readonly Tool[]): void {
    const declarations = tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations);
    for (const { behavior, parameters, parametersJsonSchema } of declarations) {
      const isPossible = behavior === undefined || this.traits.behaviors.includes(behavior);
      const isTwofold = parameters !== undefined && parametersJsonSchema !== undefined;
      if (!isPossible || isTwofold) throw new InvalidMessage(INVALID);
    }
    this.#declarations = declarations;
  }

  behaviorOf(name: string): Behavior {
    const declared = this.#declarations.find((declaration) => declaration.name === name);
    return declared?.behavior ?? this.traits.defaultBehavior;
  }

  say(role: 'system' | 'user' | 'assistant', text: string, via: string): void {
    this.items.push({ kind: 'message', id: this.#newId(), role, text, via });
  }

  call(call: GeminiCall, args: Readonly<Record<string, unknown>>): void {
    const { callId, name } = call;
    const text = JSON.stringify(args);
    this.items.push({ kind: 'call', id: this.#newId(), callId, name, arguments: text });
    this.openCalls.set(callId, call);
  }

  answer(callId: string, { response, scheduling }: FunctionResponse): void {
    const id = this.#newId();
    const asked = scheduling ?? schedulingIn(response);
    this.items.push({ kind: 'result', id, callId, output: response, scheduling: asked });
  }

  look(mediaType: string): void {
    this.items.push({ kind: 'image', id: this.#newId(), mediaType });
  }

  /** Adds the turns that the client has sent. @returns the cause of the turn that the newest of them starts */
  add(turns: readonly Content[]): VoiceCause {
    let cause: VoiceCause = { type: 'nothing' };
    for (const { role = 'user', parts = [] } of turns) {
      const speaker = role === 'model' ? 'assistant' : role;
      for (const { text, inlineData, functionCall, functionResponse } of parts) {
        if (text !== undefined) {
          this.say(speaker, text, 'clientContent');
          cause = { type: 'message', role: speaker, text };
        }
        if (inlineData !== undefined) this.look(inlineData.mimeType);
        if (functionCall !== undefined) {
          const { id: callId = this.#newId(), name, args = {} } = functionCall;
          const recalled = { callId, name, behavior: this.behaviorOf(name) };
          this.call(recalled, args);
          // The model does not wait for the result of a past call.
          this.openCalls.delete(callId);
        }
        if (functionResponse !== undefined) {
          const { id: callId = '', name = '', response } = functionResponse;
          this.answer(callId, functionResponse);
          cause = { type: 'result', callId, name, output: response };
        }
      }
    }
    return cause;
  }
}

/** Google's own samples put the scheduling into the response. */
export function schedulingIn(response: Readonly<Record<string, unknown>>): string | null {
  const { scheduling } = response;
  return typeof scheduling === 'string' ? scheduling : null;
}

export function textOf(content: Content | undefined): string {
  return (content?.parts ?? []).map(({ text = '' }) => text).join('\n');
}

// How Gemini's Live models differ, by name.

export type Behavior = 'BLOCKING' | 'NON_BLOCKING';

export interface ModelTraits {
  /** The behaviour of a function that does not declare one. */
  readonly defaultBehavior: Behavior;
  readonly behaviors: readonly Behavior[];
  /** Whether the model reports in `interactionStatus` whether it is idle or still has work. */
  readonly reportsStatus: boolean;
  /** Whether the server accepts `clientContent` after the conversation has started. */
  readonly takesLateContent: boolean;
  /** Whether the server requires exactly one of `thinkingLevel` and `thinkingBudget`. */
  readonly mustThink: boolean;
}

const both = ['BLOCKING', 'NON_BLOCKING'] as const;

const flash25: ModelTraits = {
  defaultBehavior: 'BLOCKING',
  behaviors: both,
  reportsStatus: false,
  takesLateContent: true,
  mustThink: false,
};

const flash31: ModelTraits = { ...flash25, behaviors: ['BLOCKING'], takesLateContent: false };

const live38: ModelTraits = {
  defaultBehavior: 'NON_BLOCKING',
  behaviors: both,
  reportsStatus: true,
  takesLateContent: true,
  mustThink: false,
};

const thinking38: ModelTraits = { ...live38, behaviors: ['NON_BLOCKING'], mustThink: true };

/** @param model The name, with or without the prefix `models/`. */
export function traitsOf(model: string): ModelTraits {
  if (model.includes('extended-thinking')) return thinking38;
  if (model.includes('3.1')) return flash31;
  if (model.includes('2.5') || model.includes('2.0')) return flash25;
  return live38;
}
