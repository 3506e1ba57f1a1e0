// The session of a case: its agents, its tools, its scripted subagents, and the texts that the lead model's script must
// know.
//
// Owns:     the options of a case's session.
// Does not: drive the session (talk).

import { z } from 'zod';
import type { SessionState, SessionEvent } from '../../actors/contracts/session-views.ts';
import type { LeadAgent } from '../../actors/session/lead/lead-agent.ts';
import { defineTool } from '../../actors/session/lead/lead-tools.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { Journal } from '../../actors/ports/journal.ts';
import type { Transport } from '../../voice/connection/transport.ts';
import { propertiesOf } from '../../values/json.ts';
import { VoiceSession } from '../../voice-session.ts';
import type { VoiceOptions } from '../../voice/spoken-lead.ts';
import { scriptedModel, type Script } from '../doubles/scripted-model.ts';
import { restOf, type LeadScript, type LeadCall } from './lead-script.ts';
import type { ToolDefinition } from '../../actors/contracts/lead-tool.ts';

const LEAD = 'You are the lead agent.';

/** A subagent of a case, and the lead agent's tool with the same name. */
export interface CaseSubagent {
  readonly script: Script;
  readonly config?: Partial<SubagentConfig>;
  /** The text that the lead model says immediately. @defaultValue nothing: the call stays open */
  readonly pending?: string;
}

export interface TalkOptions {
  /** The calls of the lead model, keyed by the user input that causes them. */
  readonly calls?: Readonly<Record<string, readonly LeadCall[]>>;
  readonly subagents?: Readonly<Record<string, CaseSubagent>>;
  readonly tools?: readonly ToolDefinition[];
  /** Other agents that can lead the session. */
  readonly others?: readonly LeadAgent[];
  readonly voice?: Partial<VoiceOptions>;
  /** How long the lead model thinks before it replies to the user, in milliseconds. @defaultValue 0 */
  readonly thinksMs?: number;
  /** The delay before the lead model speaks a requested message, in milliseconds. @defaultValue 0 */
  readonly tellsAfterMs?: number;
  /** The text that the lead model appends to each reply to the user. @defaultValue nothing */
  readonly adds?: string;
  /** The replies of the lead model to these inputs. @defaultValue it repeats the input */
  readonly replies?: Readonly<Record<string, string>>;
  /** The number of turns at the start in which the lead model says nothing. @defaultValue 0 */
  readonly wordlessTurns?: number;
  /** The errors that the case provokes, each given by a part of its code or message. */
  readonly provokes?: readonly string[];
  /** The reasons for which deliveries are dropped in this case. */
  readonly drops?: readonly string[];
}

/** Returns the texts that the user may hear, all unchanged: results, notices and questions. */
export function tellableIn({ deliveries, questions }: SessionState): readonly string[] {
  const texts = [
    ...questions.map(({ question }) => question),
    ...deliveries.map(({ text }) => text),
  ];
  return [...new Set(texts)].filter((text) => text !== '');
}

/** Returns the results of the tools that the lead model waited for. */
export function outputsIn(log: readonly LogEntry[]): readonly string[] {
  return log.flatMap(({ event }) =>
    event.type === 'tool.answered' && event.status === 'result' && typeof event.output === 'string'
      ? [event.output]
      : [],
  );
}

export function newSession(
  transport: Transport,
  { environment, journal }: { readonly environment: Environment; readonly journal: Journal },
  script: LeadScript,
  { subagents = {}, tools = [], others = [], voice }: TalkOptions,
): VoiceSession {
  const names = Object.keys(subagents);
  return new VoiceSession({
    transport,
    environment,
    journal,
    sessionId: 'conformance',
    model: scriptedModel({
      environment,
      scripts: names.map((name) => ({
        when: instructionsOf(name),
        script: (subagents[name] as CaseSubagent).script,
      })),
    }),
    delegationModel: scriptedModel({
      otherwise: [],
      scripts: [{ when: /./, script: workOut(script) }],
    }),
    agents: [
      {
        name: 'lead',
        instructions: LEAD,
        tools: [...tools, ...names.map((name) => backgroundTool(name, subagents[name]?.pending))],
      },
      ...others,
    ],
    subagentConfigs: Object.fromEntries(
      names.map((name) => [
        name,
        { name, instructions: instructionsOf(name), ...subagents[name]?.config },
      ]),
    ),
    ...(voice && { voice }),
  });
}

function instructionsOf(name: string): string {
  return `You are the subagent "${name}".`;
}

function backgroundTool(name: string, pendingMessage: string | undefined): ToolDefinition {
  return defineTool({
    name,
    description: `Does ${name}`,
    parameters: z.looseObject({}),
    execution: 'background',
    ...(pendingMessage !== undefined && { pendingMessage }),
  });
}

/** For a delegation: returns the call that the lead model would have made for the last input that names one. */
function workOut(script: LeadScript): Script {
  return ({ prompt }) => {
    const words = prompt.flatMap((message) =>
      message.role === 'user'
        ? message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
        : [],
    );
    const found = words
      .toReversed()
      .map((text) => ({ text, calls: script.meaningOf(text) }))
      .find(({ calls }) => calls !== null);
    const answered = prompt.findLast(({ role }) => role === 'tool' || role === 'assistant');
    const [part] = answered?.role === 'tool' ? answered.content : [];
    const output = part?.type === 'tool-result' && part.output.type === 'json' && part.output.value;
    const rest = found && restOf(propertiesOf(output), found.text);
    const calls = rest ? [rest] : found?.calls;
    return calls ? { calls } : { text: 'There is nothing to do.' };
  };
}

/** A session event, and the time at which it happened. */
export interface LogEntry {
  readonly at: number;
  readonly event: SessionEvent;
}
