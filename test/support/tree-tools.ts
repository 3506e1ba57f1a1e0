// The tools in a story of a tree. Each one reports its use to the stage and checks that the caller may use it (P8) and
// that a risky call has been approved (P3).
//
// The tools are created only once, because a schema for a model is costly and a story is short. `onStage` sets the
// current story, because stories are played one after the other.

import { tool } from 'ai';
import { z } from 'zod';
import {
  callerOf,
  type SubagentConfig,
  createChildSubagentToolset,
  createParentSubagentToolset,
  createSubAgentTool,
} from '../../src/index.ts';
import { subAgentTools } from '../../src/entries/subagents.ts';
import type { Asked, Person, Run, Stage } from './tree-stage.ts';

let current: Stage | null = null;

/** From now on, the tools belong to this story. */
export function onStage(stage: Stage): void {
  current = stage;
}

function theStage(): Stage {
  if (!current) throw new Error('No story is being played');
  return current;
}

/** Tools that the runtime adds or restricts to a role. They give no authority. */
export const RUNTIMES_OWN = new Set(['ask_user', 'not_for_me', 'request_input', 'complete_task']);
interface Call {
  readonly toolCallId: string;
  readonly abortSignal: AbortSignal;
}

type Execute = (input: never, call: Call) => unknown;

/** Returns the same tool with its use recorded by the stage. */
function watched(
  name: string,
  made: object,
  does: (
    stage: Stage,
    caller: Person,
    input: never,
    run: () => unknown,
    signal: AbortSignal,
  ) => unknown,
): object {
  const { execute } = made as { readonly execute: Execute };
  return {
    ...made,
    async execute(input: never, call: Call): Promise<unknown> {
      const stage = theStage();
      const id = callerOf(call)?.subagentId ?? '';
      const caller = stage.people.get(id);
      if (!caller) throw new Error(`${name} was called by ${id}, whom nobody has spawned`);
      const run: Run = {
        personId: id,
        callId: call.toolCallId,
        tool: name,
        state: 'begun',
        output: null,
      };
      stage.runs.push(run);
      stage.expect(
        caller.tools.has(name),
        'P8',
        () => `${id} ran ${name}, which it was not granted`,
      );
      stage.expect(
        !caller.denied.has(name),
        'P8',
        () => `${id} ran ${name}, which is denied to it`,
      );
      try {
        run.output = await does(stage, caller, input, () => execute(input, call), call.abortSignal);
        run.state = call.abortSignal?.aborted ? 'cut off' : 'returned';
        return run.output;
      } catch (error) {
        run.state = 'threw';
        throw error;
      }
    },
  };
}

const workInput = z.object({ how: z.enum(['ok', 'slow', 'throws', 'hangs']), k: z.number() });

const worker = (name: string): object =>
  watched(
    name,
    {
      ...tool({ description: 'Does a piece of work', inputSchema: workInput }),
      async execute({ how, k }: z.infer<typeof workInput>) {
        const stage = theStage();
        if (how === 'throws') throw new Error('it broke');
        if (how === 'hangs') await new Promise(() => {});
        if (how === 'slow') await stage.takes(800);
        return { did: k };
      },
    },
    async (stage, _caller, _input, run) => {
      const did = await run();
      stage.count('tools ran');
      return did;
    },
  );

const riskInput = z.object({ k: z.number() });

const risky = watched(
  'risky',
  {
    ...tool({ description: 'Does what must be allowed', inputSchema: riskInput }),
    needsApproval: true,
    execute: ({ k }: z.infer<typeof riskInput>) => ({ did: k }),
  },
  (stage, caller, { k }: z.infer<typeof riskInput>, run) => {
    stage.count('approved tools ran');
    const consents = stage.consents.get(k) ?? 0;
    stage.expect(consents > 0, 'P3', () => `${caller.id} ran risky ${k} without consent`);
    return run();
  },
);

interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** Returns why a tool for other subagents refused. */
const errorOf = (result: unknown): Refusal | null =>
  (result as { error?: Refusal } | null)?.error ?? null;

const codeOf = (result: unknown): string | null => errorOf(result)?.code ?? null;

/** Returns the configuration of a node that a model spawns. */
function spawnedAs(adapterName: string | undefined): Partial<Omit<SubagentConfig, 'outputSchema'>> {
  const index = Number(adapterName?.slice(1) ?? 0);
  return { ...configOf(theStage(), index), tools: index % 2 === 1 ? { beta } : {} };
}

/** Returns the configuration of a node without its tools. */
export function configOf({ story }: Stage, index: number): SubagentConfig {
  const { config = {} } = story.nodes[index] ?? {};
  return {
    instructions: `You are <n${index}>.`,
    interactive: true,
    inputTimeout: 2500,
    maxInputRetries: 2,
    toolTimeout: 2000,
    context: 'none',
    retry: { maxAttempts: 2, baseDelayMs: 100 },
    ...config,
    name: config.lifetime === 'session' ? 'keeper' : `n${index}`,
  };
}

const family = createParentSubagentToolset({
  configure: ({ adapterName }) => spawnedAs(adapterName),
});
const toParent = createChildSubagentToolset();
const beta = worker('beta');

/** Creates the tools for other subagents, whose targets are limited to those that a node may see. */
const onOther = (
  name: 'check_subagent' | 'send_to_subagent' | 'kill_subagent',
  then: (stage: Stage, caller: Person, id: string, result: Record<string, unknown>) => void,
): object =>
  watched(
    name,
    family[name],
    async (stage, caller, { subagentId: id }: { subagentId: string }, run) => {
      const wasLive = stage.isLive(id);
      const maySee = stage.maySee(caller.id, id);
      if (name === 'kill_subagent' && wasLive && stage.isBelow(id, caller.id))
        stage.people.get(id)?.blamed.add('killed');
      const result = (await run()) as Record<string, unknown>;
      const code = codeOf(result);
      const isDone = code === null && result['killed'] !== false;
      if (!maySee) {
        stage.count('kept out');
        stage.expect(
          !isDone,
          'P8',
          () => `${caller.id} used ${name} on ${id}, which it does not see`,
        );
        if (name !== 'kill_subagent')
          stage.expect(code === 'NOT_FOUND', 'P8', () => `${caller.id} learnt of ${id}: ${code}`);
      } else if (wasLive && name !== 'kill_subagent')
        stage.expect(code !== 'NOT_FOUND', 'P8', () => `${caller.id} did not find ${id}`);
      if (isDone) then(stage, caller, id, result);
      return result;
    },
  );

const helperInput = z.object({ node: z.string() });

const parentTools = {
  spawn_subagent: watched(
    'spawn_subagent',
    family.spawn_subagent,
    async (
      stage,
      caller,
      input: {
        adapterName: string;
        tools?: string[];
        disallowedTools?: string[];
        workstreamId?: string;
      },
      run,
    ) => {
      const node = Number(input.adapterName.slice(1));
      const own = node % 2 === 1 ? ['beta'] : [];
      const result = await stage.asks(
        {
          ...spawnOf(
            caller,
            node,
            [...own, ...(input.tools ?? caller.tools)],
            input.disallowedTools,
          ),
          workstream: input.workstreamId ?? caller.workstream,
        },
        run,
      );
      const beyond = input.tools?.filter((name) => !own.includes(name) && !caller.tools.has(name));
      const code = codeOf(result);
      stage.settleSpawn(errorOf(result));
      if (beyond && beyond.length > 0)
        stage.expect(code !== null, 'P8', () => `${caller.id} granted ${beyond.join()}`);
      return result;
    },
  ),
  check_subagent: onOther('check_subagent', (stage) => stage.count('checked')),
  send_to_subagent: onOther('send_to_subagent', (stage, caller, id, { resolvedPending }) => {
    if (resolvedPending !== true) return;
    stage.count('parents answered');
    stage.expect(stage.isBelow(id, caller.id), 'P8', () => `${caller.id} answered ${id}`);
  }),
  kill_subagent: onOther('kill_subagent', (stage, caller, id) => {
    stage.count('killed');
    stage.expect(
      stage.isBelow(id, caller.id),
      'P8',
      () => `${caller.id} killed ${id}, which is not below it`,
    );
  }),
  await_subagent: watched(
    'await_subagent',
    family.await_subagent,
    async (stage, caller, { subagentIds }: { subagentIds: string[] }, run) => {
      const blind = subagentIds.some((id) => !stage.maySee(caller.id, id));
      stage.waits.begun += 1;
      const result = await run();
      stage.waits.settled += 1;
      const code = codeOf(result);
      stage.count(code === 'WAIT_CYCLE' ? 'cycles refused' : 'waited');
      if (blind)
        stage.expect(
          code === 'NOT_FOUND',
          'P8',
          () => `${caller.id} waited for whom it does not see: ${code}`,
        );
      return result;
    },
  ),
};

function spawnOf(
  caller: Person,
  node: number,
  tools: Iterable<string>,
  disallowed: readonly string[] = [],
): Asked {
  const denied = new Set([...caller.denied, ...disallowed]);
  const left = [...tools, 'report_progress'].filter((name) => !denied.has(name));
  return { node, by: caller.id, tools: new Set(left), denied, workstream: caller.workstream };
}

/** The tools of nodes that have tools from their author, and of nodes that are tools. */
const everyTool: Record<string, object> = {
  alpha: worker('alpha'),
  beta,
  risky,
  ...parentTools,
  ...toParent,
  report_progress: watched(
    'report_progress',
    toParent.report_progress,
    (stage, _caller, _input, run) => {
      stage.count('reported');
      return run();
    },
  ),
};
everyTool['subagent__helper'] = helper();

export const everyToolName = (): string[] =>
  Object.keys(everyTool).filter((name) => !RUNTIMES_OWN.has(name));

export const rootTools: Readonly<Record<string, object>> = everyTool;

function helper(): object {
  // The helper itself is one of its subagent's tools, so the list is complete once this function has returned.
  const made = subAgentTools(
    createSubAgentTool(
      {
        name: 'helper',
        instructions: 'You help.',
        outputSchema: z.object({ helped: z.boolean() }),
        interactive: true,
        inputTimeout: 2500,
        maxInputRetries: 1,
        timeout: 9000,
        toolTimeout: 2000,
        maxSteps: 6,
        retry: { maxAttempts: 2, baseDelayMs: 100 },
        tools: everyTool,
      },
      helperInput,
    ),
  );
  return watched(
    'subagent__helper',
    made['subagent__helper'] as object,
    async (stage, caller, input: z.infer<typeof helperInput>, run, signal) => {
      const node = Number(/n(\d+)/.exec(input.node)?.[1]);
      const before = stage.people.size;
      const made = (): Person | undefined =>
        [...stage.people.values()]
          .slice(before)
          .find((each) => each.by === caller.id && each.node === node);
      // The subagent that gives up the call ends the child.
      signal.addEventListener('abort', () => made()?.blamed.add('given up'));
      stage.waits.begun += 1;
      const asked = spawnOf(caller, node, everyToolName());
      const result = (await stage.asks(asked, run)) as {
        readonly code?: string;
        readonly error?: string;
      };
      stage.waits.settled += 1;
      const person = made();
      const { code = 'none', error: message = '' } = result;
      stage.settleSpawn(person ? null : { code, message });
      if (person) {
        stage.count('handed over');
        stage.expect(
          person.outcome !== null || signal.aborted,
          'P1',
          () => `${person.id} outlives the call`,
        );
      }
      return result;
    },
  );
}
