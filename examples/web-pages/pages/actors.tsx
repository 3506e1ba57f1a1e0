// A page without a session: a machine in the page invokes a subagent, and `useActorRef` from `@xstate/react` shows
// both. The subagent runs in the page on a scripted model. You can use any AI SDK model instead, with a key that may be
// exposed to a page.

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { useActorRef, useSelector } from '@xstate/react';
import { assign, setup, type ActorRefFrom } from 'xstate';
import { defineSubagent } from 'offstage';
import { subagentLogic } from 'offstage/subagents';
import { scriptedModel } from 'offstage/testing';

const periods = [
  { id: 'quarter', label: 'The last quarter' },
  { id: 'year', label: 'The last year' },
];
const reporter = subagentLogic(
  defineSubagent({
    name: 'reporter',
    instructions: 'You write short reports. Ask which period is meant.',
    interactive: true,
    model: scriptedModel({
      otherwise: ({ results: [answer] }) =>
        answer === undefined
          ? {
              calls: [{ name: 'ask_user', input: { question: 'Which period?', options: periods } }],
            }
          : { text: `Sales are up by 4 %: ${JSON.stringify(answer)}` },
    }),
  }),
);

const desk = setup({
  types: {
    context: {} as { report: string },
    events: {} as { type: 'order' } | { type: 'give up' },
    children: {} as { reporter: 'reporter' },
  },
  actors: { reporter },
}).createMachine({
  context: { report: '' },
  initial: 'free',
  states: {
    free: { on: { order: 'writing' } },
    writing: {
      invoke: {
        src: 'reporter',
        id: 'reporter',
        input: { task: 'A report on sales' },
        onDone: {
          target: 'free',
          actions: assign({ report: ({ event }) => event.output.text }),
        },
      },
      on: { 'give up': 'free' },
    },
  },
});

function Questions({ subagent }: { readonly subagent: ActorRefFrom<typeof reporter> }) {
  const { state, questions } = useSelector(
    subagent,
    ({ value, context }) => ({
      state: value,
      questions: context.questions,
    }),
    (one, other) => one.state === other.state && one.questions === other.questions,
  );
  return (
    <>
      <p role="status">The reporter is {state.replaceAll('_', ' ')}.</p>
      {questions.map(({ requestId, question, options }) => (
        <fieldset key={requestId}>
          <legend>{question}</legend>
          {options.map(({ id, label }) => (
            <button
              key={id}
              onClick={() => subagent.send({ type: 'answer', requestId, answer: { optionId: id } })}
            >
              {label}
            </button>
          ))}
        </fieldset>
      ))}
    </>
  );
}

function Page() {
  const actor = useActorRef(desk);
  const isWriting = useSelector(actor, (snapshot) => snapshot.matches('writing'));
  const report = useSelector(actor, ({ context }) => context.report);
  const subagent = useSelector(actor, ({ children }) => children.reporter);
  return (
    <main>
      <h1>A report</h1>
      {subagent && <Questions subagent={subagent} />}
      <button disabled={isWriting} onClick={() => actor.send({ type: 'order' })}>
        Order it
      </button>
      <button disabled={!isWriting} onClick={() => actor.send({ type: 'give up' })}>
        Give up
      </button>
      {report && <p role="log">{report}</p>}
    </main>
  );
}

createRoot(document.querySelector('#root') ?? document.body).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
