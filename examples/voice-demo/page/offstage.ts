// The right side: open questions, running subagents, their results, and the states of the actors.

import { html as view } from 'htm/preact';
import type { SubagentView } from 'offstage';
import {
  DeliveryList,
  QuestionList,
  SubagentList,
  useDeliveries,
  useQuestions,
  useSession,
  useSubagents,
  useTranscript,
} from 'offstage/react';
import { client, request } from './session.ts';
import { Suggestions } from './welcome.ts';

export function Offstage({ canCrash = false }: { canCrash?: boolean }) {
  const { status } = useSession(client);
  const questions = useQuestions(client);
  const subagents = useSubagents(client);
  const deliveries = useDeliveries(client);
  // A user who has already spoken needs no hint.
  const isNew = !useTranscript(client).some(({ role }) => role === 'user');
  return view`<aside class="offstage" aria-label="Offstage">
    <section class="questions" aria-label="Questions for you"><h2 class="section-title">For you <small>one at a time, first come first served</small></h2>
      <${QuestionList} questions=${questions} client=${client} shortcuts labels=${{ approve: 'Yes', decline: 'No' }} /></section>
    <section aria-label="Subagents"><h2 class="section-title">Offstage</h2>
      ${subagents.length === 0 && view`<p class="hint">Nobody is at work. Ask for a ride, a table or a report.</p>`}
      <${SubagentList} subagents=${subagents} client=${client} maxEnded=${4} labels=${{ cancel: () => 'Stop' }} /></section>
    <section class="results" aria-label="Results"><h2 class="section-title">Results</h2>
      <${DeliveryList} deliveries=${deliveries} subagents=${subagents} client=${client} /></section>
    <${Statecharts} subagents=${subagents} />
    <details class="more" open=${isNew}><summary class="section-title">Things to try</summary><${Suggestions} /></details>
    ${
      canCrash &&
      view`<p class="hint"><button class="button" type="button" disabled=${status.state !== 'open'}
      onClick=${() => void request('/crash', {})}>Kill the server</button> It is started again: questions, work and words go on.</p>`
    }
  </aside>`;
}

const charts = {
  session:
    'created connecting active transferring reconnecting resting refused suspended closing closed',
  floor: 'nobody user model',
  subagent:
    'spawning ready running waiting_for_input waiting_for_children completed failed cancelled',
} as const;

/** The current state of each actor in its chart. */
function Statecharts({ subagents }: { subagents: readonly SubagentView[] }) {
  const { connection, floor, agent } = useSession(client);
  return view`<details class="more charts"><summary class="section-title">Statecharts, live</summary>
    <${Chart} name="Session" states=${charts.session} active=${connection} />
    <${Chart} name=${`${agent ?? 'Lead agent'}: who speaks`} states=${charts.floor} active=${floor} />
    ${subagents.slice(-4).map(({ id, title, state }) => view`<${Chart} key=${id} name=${title} states=${charts.subagent} active=${state} />`)}
  </details>`;
}

function Chart({ name, states, active }: { name: string; states: string; active: string }) {
  return view`<div class="chart"><h3>${name}</h3><ol aria-label=${`States of ${name}`}>${states
    .split(' ')
    .map(
      (state) =>
        view`<li key=${state} aria-current=${state === active ? 'step' : undefined}>${state.replaceAll('_', ' ')}</li>`,
    )}</ol></div>`;
}
