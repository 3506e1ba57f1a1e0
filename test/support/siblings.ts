// A lead agent that starts several subagents for one request. The subagents end when a test lets them.

import type { TextPart } from '../../src/index.ts';
import { say, simpleTool, calls, never } from './subagent-runs.ts';
import { textTalk, type ScriptedSubagent, type TalkOptions } from './text-talk.ts';

interface Ending {
  readonly promise: Promise<void>;
  readonly end: () => void;
}

function ending(): Ending {
  let end: () => void = () => {};
  const promise = new Promise<void>((resolve) => (end = resolve));
  return { promise, end };
}

/** Starts the conversation. `flight` ends with `flight is found` when the test finishes it. */
export function siblingTalk(
  names: readonly string[],
  options: TalkOptions & { readonly each?: Partial<ScriptedSubagent> } = {},
) {
  const { each, subagents, ...rest } = options;
  const endings = new Map<string, Ending>(names.map((name) => [name, ending()]));
  const prompts: string[] = [];
  const talk = textTalk({
    ...rest,
    subagents: {
      ...Object.fromEntries(
        names.map((name): [string, ScriptedSubagent] => [
          name,
          { script: () => endings.get(name)!.promise.then(() => say(`${name} is found`)), ...each },
        ]),
      ),
      ...subagents,
    },
    onModelCall(who, prompt) {
      if (who === 'lead') prompts.push(prompt.user);
      options.onModelCall?.(who, prompt);
    },
  });
  return {
    ...talk,
    /** The last message to the lead model in each of its calls. */
    prompts,
    async finish(...which: readonly string[]) {
      for (const name of which) {
        endings.get(name)!.end();
        await talk.environment.settle();
      }
    },
    /** Returns the messages that report a result. */
    told: () =>
      talk.parts.flatMap((part: TextPart) =>
        part.type === 'text.done' && part.deliveryId !== null ? [part] : [],
      ),
    deliveries: () =>
      talk
        .state()
        .deliveries.map(({ label, state }) => `${label} ${state}`)
        .toSorted(),
  };
}

/** A subagent that never ends on its own. */
export const endless: ScriptedSubagent = {
  script: () => calls(['hang']),
  config: { tools: { hang: simpleTool(never) } },
};
