// P8: least authority. A subagent is offered, and runs, the tools of its configuration and no others; a call
// that needs consent runs only after the user consented to exactly that call.

import { callKey } from '../../../actors/model/approval.ts';
import { subAgentOf } from '../../../actors/model/tool-flags.ts';
import type { SubagentConfig } from '../../../actors/contracts/config.ts';
import type { SimulatedApp } from '../log/app.ts';
import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

/** Tools that the runtime adds by itself: they give no authority. */
const RUNTIMES_OWN: ReadonlySet<string> = new Set(['ask_user', 'complete_task', 'request_input']);

export function* authority(record: RunRecord): Iterable<Broken> {
  yield* ownTools(record);
  yield* consent(record);
}

function* ownTools({ app, log, effects }: RunRecord): Iterable<Broken> {
  const configs = configsIn(app);
  const names = new Map(
    eventsOf(log, 'subagent.changed').map(({ event }) => [event.subagent.id, event.subagent.name]),
  );
  const mayUse = (name: string, tool: string): boolean => {
    const config = configs.get(name);
    // Only the spawner knows the configuration of its child.
    if (!config || config.createInstance) return true;
    return tool in (config.tools ?? {}) || RUNTIMES_OWN.has(tool);
  };
  const said = new Set<string>();
  for (const entry of log) {
    if (entry.kind !== 'model') continue;
    for (const tool of entry.toolNames) {
      const what = `${entry.name} was offered ${tool}, which it does not have`;
      if (mayUse(entry.name, tool) || said.has(what)) continue;
      said.add(what);
      yield { promise: 'P8', what };
    }
  }
  for (const { subagentId, tool } of effects) {
    const name = subagentId === null ? undefined : names.get(subagentId);
    if (name !== undefined && !mayUse(name, tool))
      yield { promise: 'P8', what: `${subagentId} (${name}) ran ${tool}, which it does not have` };
  }
}

/** Returns the configurations by name: also those that a tool of another one runs, and those of services. */
function configsIn({
  subagentConfigs = {},
  services = [],
}: SimulatedApp): ReadonlyMap<string, SubagentConfig> {
  const configs = new Map<string, SubagentConfig>();
  const add = (config: SubagentConfig): void => {
    if (configs.has(config.name)) return;
    configs.set(config.name, config);
    for (const tool of Object.values(config.tools ?? {})) {
      const below = subAgentOf(tool);
      if (below) add(below);
    }
  };
  for (const config of Object.values(subagentConfigs)) add(config);
  for (const { agent } of services) add(agent);
  return configs;
}

function* consent({ app, log, effects }: RunRecord): Iterable<Broken> {
  const approvals = eventsOf(log, 'question.changed').filter(
    ({ event }) => event.question.kind === 'approval' && event.question.state === 'answered',
  );
  const preApproved = new Set(
    Object.values(app.subagentConfigs ?? {}).flatMap((config) =>
      (config.preApproved ?? []).map(({ tool }) => tool),
    ),
  );
  for (const { needsApproval, tool, input, subagentId, at } of effects) {
    if (!needsApproval || preApproved.has(tool)) continue;
    const given = approvals.some(
      ({ at: since, event: { question } }) =>
        since <= at &&
        question.subagentId === subagentId &&
        question.action?.toolName === tool &&
        callKey(tool, question.action.input) === callKey(tool, input) &&
        question.answer !== null &&
        /^yes\b/i.test(question.answer),
    );
    if (!given)
      yield {
        promise: 'P8',
        what: `${subagentId} ran ${tool} with ${JSON.stringify(input)}, and the user had not consented to that`,
      };
  }
}
