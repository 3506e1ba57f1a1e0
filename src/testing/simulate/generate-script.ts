// Generates a script from a seed. It contains a user who asks for work, changes their mind, chats, leaves and returns,
// and an app that sends notices. Each step has its own random stream.

import { chanceOf, type Chance } from '../doubles/chance.ts';
import type { SimulatedApp } from './log/app.ts';
import type { Step } from './log/script.ts';

/** The number of steps in a generated script, and the time that they span. */
export interface GenerateOptions {
  /** The maximum number of steps. @defaultValue 10 */
  readonly steps?: number;
  /** The time span of the steps, in milliseconds. @defaultValue 40_000 */
  readonly spanMs?: number;
  /** Whether a script contains crashes and lost connections in addition to the faults in the plan. */
  readonly disasters: boolean;
}

const SMALL_TALK = [
  'what time is it',
  'how are you',
  'what is the weather like',
  'tell me a joke',
] as const;

export function generateSteps(
  seed: number,
  session: 'text' | 'voice',
  app: SimulatedApp,
  { steps = 10, spanMs = 40_000, disasters }: GenerateOptions,
): readonly Step[] {
  const count = chanceOf(seed, 'steps').within(Math.ceil(steps / 2), steps);
  const tools = [
    ...new Set(app.agents.flatMap(({ tools: of = [] }) => of.map(({ name }) => name))),
  ];
  const working = tools.filter((name) => app.subagentConfigs && name in app.subagentConfigs);
  const agents = app.agents.map(({ name }) => name);
  const made = Array.from({ length: count }, (_, index): Step => {
    const chance = chanceOf(seed, 'step', index);
    const at = index === 0 ? 0 : chance.below(spanMs);
    // A run in which nothing happens cannot fail, so the first step is always a request.
    const kind = index === 0 ? 'ask' : chance.pick(kindsOf(session, agents.length, disasters));
    const means = index === 0 && working.length > 0 ? working : tools;
    return { at, ...actionOf(kind, index, chance, means, agents) };
  });
  const further = [
    ...(app.steering === false ? [] : furtherSteps(seed, made, working, spanMs)),
    ...laterSteps(seed, spanMs),
  ];
  return [...made, ...further].toSorted((a, b) => a.at - b.at);
}

/** The share of scripts that contain such steps. */
const STEERS = 0.2;
const IN_PIECES = 0.2;
const SCHEDULES = 0.3;
const READS = 0.5;
const PAUSE_MS = 4000;
const MIN_EVERY_MS = 8000;
const MAX_IN_MS = 30_000;

/** In some scripts, the user steers a task, or continues a request that a model may already have acted on. */
function furtherSteps(
  seed: number,
  made: readonly Step[],
  working: readonly string[],
  spanMs: number,
): readonly Step[] {
  const chance = chanceOf(seed, 'further steps');
  const further: Step[] = [];
  if (chance.happens(STEERS) && working.length > 0)
    for (let nth = 1; nth <= chance.within(1, 3); nth += 1) {
      const wish = chance.pick(['How far is', 'Stop', 'Tell'] as const);
      const words = `${wish} ${chance.pick(working)}, wish ${nth}`;
      further.push({ at: chance.below(spanMs), do: 'say', words, calls: ['running_task'] });
    }
  if (chance.happens(IN_PIECES))
    for (const step of made)
      if (step.do === 'say' && step.calls.length === 1 && working.includes(step.calls[0] ?? '')) {
        const at = step.at + chance.within(200, PAUSE_MS);
        const isRest = chance.happens(0.7);
        const words = isRest
          ? `and number ${chance.below(100)} as well (after "${step.words}")`
          : `Do nothing yet, ${further.length}`;
        further.push({ at, do: 'say', words, calls: isRest ? step.calls : [] });
      }
  return further;
}

/** In some scripts, the app schedules notices, or the user reads messages that channels have sent. */
function laterSteps(seed: number, spanMs: number): readonly Step[] {
  const chance = chanceOf(seed, 'later steps');
  const later: Step[] = [];
  if (chance.happens(SCHEDULES))
    for (let nth = 1; nth <= chance.within(1, 2); nth += 1)
      later.push({
        at: chance.below(spanMs),
        do: 'schedule',
        text: `Time number ${nth}`,
        inMs: chance.within(1, MAX_IN_MS),
        ...(chance.happens(0.3) && { everyMs: chance.within(MIN_EVERY_MS, MAX_IN_MS) }),
      });
  if (chance.happens(READS)) later.push({ at: chance.below(spanMs), do: 'read', nth: 0 });
  return later;
}

type Kind = Exclude<Step['do'], 'say' | 'schedule' | 'read'> | 'ask' | 'chat';

function kindsOf(session: 'text' | 'voice', agents: number, disasters: boolean): readonly Kind[] {
  return [
    ...(['ask', 'ask', 'ask', 'ask', 'chat', 'chat', 'type'] as const),
    ...(['notify', 'cancel', 'dismiss', 'message', 'leave', 'attach'] as const),
    ...(agents > 1 ? (['transfer'] as const) : []),
    ...(disasters ? (['crash'] as const) : []),
    ...(disasters && session === 'voice' ? (['drop'] as const) : []),
  ];
}

type Without<T> = T extends Step ? Omit<T, 'at'> : never;

function actionOf(
  kind: Kind,
  index: number,
  chance: Chance,
  tools: readonly string[],
  agents: readonly string[],
): Without<Step> {
  switch (kind) {
    case 'ask':
      return { do: 'say', ...request(index, chance, tools) };
    case 'type':
      return { do: 'type', ...request(index, chance, tools) };
    case 'chat':
      return { do: 'say', words: `${chance.pick(SMALL_TALK)}, ${index}?`, calls: [] };
    case 'notify': {
      const priority = chance.pick(['normal', 'normal', 'high', 'urgent'] as const);
      return { do: 'notify', text: `News number ${index}`, priority };
    }
    case 'message': {
      const mode = chance.pick(['queue', 'steer', 'interrupt'] as const);
      return { do: 'message', nth: chance.below(4), text: `Remark ${index}`, mode };
    }
    case 'cancel':
    case 'dismiss':
      return { do: kind, nth: chance.below(4) };
    case 'transfer':
      return { do: 'transfer', to: chance.pick(agents) };
    case 'leave':
    case 'attach':
    case 'crash':
    case 'drop':
      return { do: kind };
  }
}

/** Each request contains unique words, so that its reply can be recognised. */
function request(index: number, chance: Chance, tools: readonly string[]) {
  const calls = tools.length === 0 ? [] : [chance.pick(tools)];
  if (tools.length > 1 && chance.happens(0.35)) calls.push(chance.pick(tools));
  const means = [...new Set(calls)];
  return { words: `Please use ${means.join(' and ')}, request ${index}`, calls: means };
}
