// The effects of tools, recorded outside every process. An effect remains even if the process that caused it dies.
//
// Owns:     the record of effects, and the faults that tools have.
// Does not: check the promises.

import { isPromiseLike } from '../../values/plain-checks.ts';
import { callerOf } from '../../actors/model/caller.ts';
import { delegates } from '../../actors/model/tool-flags.ts';
import type { Faults } from './faults.ts';
import type { SimulatedProcess } from '../doubles/simulated-process.ts';
import type { ToolDefinition } from '../../actors/contracts/lead-tool.ts';
import type { ReachChannel } from '../../actors/ports/reach-channel.ts';
import { SLOW_MS } from './log/fault-points.ts';
import { CHANNEL, type Effect } from './log/log.ts';

interface CallOptions {
  readonly toolCallId: string;
  readonly idempotencyKey?: string;
}

type Execute = (input: unknown, options: CallOptions) => unknown;

interface AnyTool {
  readonly execute?: Execute;
  readonly needsApproval?: unknown;
  readonly idempotent?: unknown;
}

export class Effects {
  readonly all: Effect[] = [];
  readonly #faults: Faults;
  readonly #now: () => number;

  constructor(faults: Faults, now: () => number) {
    this.#faults = faults;
    this.#now = now;
  }

  /**
   * Watches the tools of a subagent and applies their faults. A tool that waits for other subagents has no effect of
   * its own.
   */
  watch(
    tools: Readonly<Record<string, unknown>>,
    process: SimulatedProcess,
  ): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      Object.entries(tools).map(([name, tool]) => [
        name,
        canRun(tool) && !delegates(tool) ? this.#watched(name, tool, process) : tool,
      ]),
    );
  }

  /** Watches one of the lead agent's inline tools. */
  watchInline(definition: ToolDefinition, process: SimulatedProcess): ToolDefinition {
    const { execute, name } = definition as unknown as ToolDefinition<unknown>;
    if (!execute) return definition;
    return {
      ...definition,
      execute: (input: unknown, context) =>
        this.run(process, () => execute(input, context), {
          key: context.idempotencyKey,
          tool: name,
          input,
          callId: context.callId,
          subagentId: null,
          isIdempotent: definition.idempotent === true,
          needsApproval: false,
        }),
    };
  }

  /** Watches a channel, whose messages are effects too: `callId` is the delivery, and `tool` the channel. */
  watchChannel(name: string, channel: ReachChannel, process: SimulatedProcess): ReachChannel {
    return {
      ...channel,
      send: async (item, links, signal) => {
        let receipt: Awaited<ReturnType<ReachChannel['send']>> = 'sent';
        const send = async (): Promise<void> => {
          receipt = await channel.send(item, links, signal);
        };
        await this.run(process, send, {
          key: item.key,
          tool: `${CHANNEL}${name}`,
          input: item,
          callId: item.deliveryId,
          subagentId: null,
          isIdempotent: channel.idempotent,
          needsApproval: false,
        });
        return receipt;
      },
    };
  }

  #watched(name: string, tool: AnyTool & { execute: Execute }, process: SimulatedProcess): object {
    const { execute, needsApproval, idempotent } = tool;
    return {
      ...tool,
      execute: (input: unknown, options: CallOptions) =>
        this.run(process, () => execute(input, options), {
          key: options.idempotencyKey ?? options.toolCallId,
          tool: name,
          input,
          callId: options.toolCallId,
          subagentId: callerOf(options)?.subagentId ?? null,
          isIdempotent: idempotent === true,
          needsApproval: needsApproval === true,
        }),
    };
  }

  /** Runs a tool, applies its faults and records its effect. */
  run(
    process: SimulatedProcess,
    execute: () => unknown,
    call: Omit<Effect, 'process' | 'at' | 'status'>,
  ): unknown {
    if (!process.isAlive) return never();
    if (this.#faults.strikes('tool.fails')) throw new Error('The tool is out of order');
    const slow = this.#faults.strikes('tool.slow');
    const hangs = this.#faults.strikes('tool.hangs') !== null;
    const act = (): unknown => {
      if (!process.isAlive) return never();
      const effect: Effect = { ...call, process: process.number, at: this.#now(), status: 'begun' };
      this.all.push(effect);
      if (!hangs) return recorded(effect, execute);
      // The tool completes its work, but no caller receives its result.
      finished(() => recorded(effect, execute)).catch(() => {});
      return never();
    };
    if (!slow) return act();
    return new Promise((resolve) => {
      process.ofApp.scheduler.schedule(() => resolve(finished(act)), slow.within(1, SLOW_MS));
    });
  }
}

function canRun(tool: unknown): tool is AnyTool & { execute: Execute } {
  return typeof tool === 'object' && tool !== null && 'execute' in tool && !!tool.execute;
}

/** Records the effect of a tool from its return value: a value, a promise, or values that it yields. */
function recorded(effect: Effect, execute: () => unknown): unknown {
  try {
    const returned = execute();
    if (isIterable(returned)) return recordedYields(effect, returned);
    if (!isPromiseLike(returned)) {
      effect.status = 'returned';
      return returned;
    }
    return returned.then(
      (value) => {
        effect.status = 'returned';
        return value;
      },
      (error: unknown) => {
        effect.status = 'threw';
        throw error;
      },
    );
  } catch (error) {
    effect.status = 'threw';
    throw error;
  }
}

async function* recordedYields(effect: Effect, yields: AsyncIterable<unknown>): AsyncGenerator {
  try {
    yield* yields;
    effect.status = 'returned';
  } catch (error) {
    effect.status = 'threw';
    throw error;
  }
}

/** Returns the final result of a tool that returns, yields or throws. */
async function finished(act: () => unknown): Promise<unknown> {
  const returned = act();
  if (!isIterable(returned)) return returned;
  let last: unknown;
  for await (const value of returned) last = value;
  return last;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function never(): Promise<never> {
  return new Promise(() => {});
}
