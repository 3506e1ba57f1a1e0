// A prompt can contain acts, which an agent without a model performs. With these acts, the conformance suite for relays
// directs the agent on a stage with any protocol.

import type { RelayAnswer, RelayEvent, RelayTool } from '../../actors/ports/relay.ts';

type EndReason = Extract<RelayEvent, { readonly type: 'turn_ended' }>['reason'];

/** One act in a turn of the agent. */
export type RelayAct =
  | { readonly say: string }
  | { readonly progress: string }
  /** Runs a tool. */
  | { readonly tool: RelayTool; readonly fails?: boolean; readonly untilCancelled?: boolean }
  /** Asks for permission, and runs the tool if permission is given. Says `permitted`, `denied` or `cancelled`. */
  | { readonly permission: RelayTool; readonly lasting?: string }
  /** Asks a question and then says `answer: ` and the id of the option or the text, or `no answer`. */
  | {
      readonly question: string;
      readonly options?: readonly { readonly id: string; readonly label: string }[];
    }
  /** Works until the turn is cancelled. */
  | { readonly untilCancelled: true }
  /** From then on, the agent ignores requests to cancel its turn or to stop. */
  | { readonly deaf: true }
  /** Ends the agent's process. */
  | { readonly die: true }
  /** Sends this many pieces of text without a pause. */
  | { readonly flood: number }
  /** Sends a message that the protocol does not allow. */
  | { readonly garbage: true }
  | { readonly end: EndReason };

/** An agent that performs acts, for any protocol. */
export interface RelayActor {
  /** Aborts when the turn is cancelled. */
  readonly cancelled: AbortSignal;
  say(text: string): void | Promise<void>;
  progress(text: string): void | Promise<void>;
  toolStarted(toolId: string, tool: RelayTool): void | Promise<void>;
  toolEnded(toolId: string, ok: boolean, output: string): void | Promise<void>;
  /** `lasting`: the lasting permission that the agent offers. */
  permission(toolId: string, tool: RelayTool, lasting?: string): Promise<RelayAnswer['type']>;
  question(
    text: string,
    options: readonly { readonly id: string; readonly label: string }[],
  ): Promise<{ readonly optionId?: string; readonly text: string } | null>;
  deaf(): void;
  die(): Promise<never>;
  garbage(): void | Promise<void>;
}

/** Encodes acts in a prompt. They survive quoting. */
export function actsPrompt(...acts: readonly RelayAct[]): string {
  return `acts:${encodeURIComponent(JSON.stringify(acts))};`;
}

/** Returns the last acts in a prompt. If there are no acts, the agent repeats the message that it received. */
export function actsIn(prompt: string): readonly RelayAct[] {
  const written = [...prompt.matchAll(/acts:([\w.!~*'()%-]+);/g)].at(-1)?.[1];
  if (written === undefined) return [{ say: `told: ${prompt}` }];
  return JSON.parse(decodeURIComponent(written)) as RelayAct[];
}

/** Performs acts and returns how the turn ends. */
export async function perform(acts: readonly RelayAct[], actor: RelayActor): Promise<EndReason> {
  const { cancelled } = actor;
  let tools = 0;
  for (const act of acts) {
    if (cancelled.aborted) return 'cancelled';
    if ('say' in act) await actor.say(act.say);
    else if ('progress' in act) await actor.progress(act.progress);
    else if ('tool' in act) {
      tools += 1;
      const toolId = `tool-${tools}`;
      await actor.toolStarted(toolId, act.tool);
      if (act.untilCancelled === true) await aborted(cancelled);
      else await actor.toolEnded(toolId, act.fails !== true, act.fails === true ? 'no' : 'done');
    } else if ('permission' in act) {
      tools += 1;
      const toolId = `tool-${tools}`;
      const given = await actor.permission(toolId, act.permission, act.lasting);
      if (given === 'permitted') {
        await actor.toolStarted(toolId, act.permission);
        await actor.toolEnded(toolId, true, 'done');
      }
      if (given === 'cancelled' && cancelled.aborted) return 'cancelled';
      await actor.say(`${given}. `);
    } else if ('question' in act) {
      const answer = await actor.question(act.question, act.options ?? []);
      if (answer === null && cancelled.aborted) return 'cancelled';
      await actor.say(answer ? `answer: ${answer.optionId ?? answer.text}. ` : 'no answer. ');
    } else if ('untilCancelled' in act) await aborted(cancelled);
    else if ('deaf' in act) actor.deaf();
    else if ('die' in act) await actor.die();
    else if ('flood' in act) {
      for (let number = 0; number < act.flood; number += 1) await actor.say('flood ');
    } else if ('garbage' in act) await actor.garbage();
    else return act.end;
  }
  return cancelled.aborted ? 'cancelled' : 'completed';
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
