// The user's two pages, which run the tools with `runsAt: 'client'`. Both pages try to claim each call, and only the
// page whose claim succeeds runs the tool. A page that loses its connection remembers what it has done, but a page that
// reloads does not.
//
// Owns:     the pages, and their work.
// Does not: decide which page has a call (the session does) or judge (promises).

import { asSchema } from 'ai';
import type { ClientCallView, SessionEvent } from '../../actors/contracts/session-views.ts';
import { messageOf } from '../../values/errors.ts';
import { chanceOf } from '../doubles/chance.ts';
import type { Effects } from './effects.ts';
import { valueFor } from './generated-model.ts';
import type { AnySession, SimulatedApp } from './log/app.ts';
import { SimulatedProcess } from '../doubles/simulated-process.ts';
import type { UserPorts } from './user.ts';

const TAKES_WITHIN_MS = 800;
const RUNS_WITHIN_MS = 3000;
/** The process number of the first page. The numbers of sessions and workers are lower. */
const FIRST_PAGE = 2001;

/** `session` also returns null while the user is away. */
interface PagesOptions extends Omit<UserPorts, 'kind' | 'client' | 'note'> {
  readonly effects: Effects;
}

type Result = Parameters<AnySession['clientCalls']['answer']>[2];
export type Pages = ReturnType<typeof pagesOf>;

export function pagesOf({ seed, environment, faults, effects, session, app }: PagesOptions) {
  let opened = FIRST_PAGE;
  /** A page, and the results of the calls that it has started, by call id. */
  const open = () => ({
    process: new SimulatedProcess(opened++, environment),
    begun: new Map<string, Promise<Result>>(),
  });
  type Page = ReturnType<typeof open>;
  const pages = [open(), open()];
  const nameOf = ({ process }: Page): string => `page ${process.number}`;

  function run(page: Page, { id, name: tool, input, subagentId }: ClientCallView): Promise<Result> {
    const { isIdempotent, resultSchema } = toolIn(app(), tool);
    const chance = chanceOf(seed, 'page', id);
    const callId = id.slice(id.lastIndexOf(':') + 1);
    const call = { key: id, tool, input, callId, subagentId, isIdempotent, needsApproval: false };
    const act = async () =>
      resultSchema ? valueFor(await asSchema(resultSchema).jsonSchema, chance) : null;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    page.process.environment.scheduler.schedule(
      () => resolve((async () => effects.run(page.process, act, call))()),
      chance.within(1, RUNS_WITHIN_MS),
    );
    return promise.then(
      (output) => ({ output }),
      (error: unknown) => ({ error: messageOf(error) }),
    );
  }

  async function take(page: Page, call: ClientCallView): Promise<void> {
    const { process } = page;
    const name = nameOf(page);
    const isClaimed = await session()?.clientCalls.claim(call.id, name);
    // The page may have reloaded in the meantime.
    if (isClaimed !== true || !process.isAlive) return;
    const known = page.begun.get(call.id);
    const begun = known ?? run(page, call);
    page.begun.set(call.id, begun);
    const result = await begun;
    if (!known && faults.strikes('page.reloads')) {
      process.kill();
      Object.assign(page, open());
      session()?.clientCalls.left(name);
      connect();
    } else if (process.isAlive) await session()?.clientCalls.answer(call.id, name, result);
  }

  function offer(call: ClientCallView): void {
    if (call.state !== 'waiting' && call.state !== 'left') return;
    for (const [at, page] of pages.entries())
      environment.scheduler.schedule(
        // If the session cannot accept a claim or a result now, it offers the call again later.
        () => void take(page, call).catch(() => {}),
        chanceOf(seed, 'page', at, call.id).within(1, TAKES_WITHIN_MS),
      );
  }

  /** Called when the user returns, and when the session has started. */
  const connect = (): void => session()?.clientCalls.list().forEach(offer);

  return {
    connect,
    sees(event: SessionEvent) {
      if (event.type === 'client_call.changed') offer(event.call);
      else if (event.type === 'session.recovered') connect();
    },
    leave() {
      for (const page of pages) session()?.clientCalls.left(nameOf(page));
    },
  };
}

/** Returns the tool with this name, which belongs to a lead agent or to a subagent. */
function toolIn({ agents, subagentConfigs = {} }: SimulatedApp, name: string) {
  const all: readonly object[] = [
    ...agents.flatMap(({ tools = [] }) => tools.filter((tool) => tool.name === name)),
    ...Object.values(subagentConfigs).flatMap(({ tools = {} }) => tools[name] ?? []),
  ];
  const { idempotent, resultSchema }: ClientTool = all[0] ?? {};
  return { isIdempotent: idempotent === true, resultSchema };
}

type ClientTool = Pick<Partial<NonNullable<SimulatedApp['agents'][0]['tools']>[0]>, 'idempotent' | 'resultSchema'>; // prettier-ignore
