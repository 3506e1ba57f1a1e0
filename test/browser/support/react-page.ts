// The page for the tests of `offstage/react`: every hook and component, under StrictMode.

import { createElement as h, StrictMode, useState, type ReactElement } from 'react';
import { createRoot } from 'react-dom/client';
import type { SessionClient } from '../../../src/client/index.ts';
import {
  QuestionCard,
  SubagentList,
  Transcript,
  useDeliveries,
  useMicrophone,
  useQuestions,
  useSession,
  useSpeaker,
  useSubagents,
  useTranscript,
} from '../../../src/react/index.ts';

declare const document: { getElementById(id: string): never };

/** The number of renders of each hook, and the page's client. */
export const seen: {
  client: SessionClient | null;
  questions: number;
  transcript: number;
  tasks: number;
  unmount: () => void;
} = {
  client: null,
  questions: 0,
  transcript: 0,
  tasks: 0,
  unmount: () => undefined,
};

function Page({ token }: { readonly token: string }): ReactElement {
  const [place, setPlace] = useState('Berlin');
  const { client, status } = useSession(
    { url: '/offstage', token: () => token },
    { handle: { locate: () => place } },
  );
  seen.client = client;
  return h(
    'main',
    null,
    h('h1', null, 'A session'),
    h('p', { id: 'status' }, status.state),
    h('button', { type: 'button', onClick: () => setPlace('Paris') }, 'Travel'),
    h(Sound, { client }),
    h(Script, { client }),
    client && h(Questions, { client }),
    client && h(Tasks, { client }),
  );
}

function Sound({ client }: { readonly client: SessionClient | null }): ReactElement {
  const words = [
    useMicrophone(client).state,
    useSpeaker(client).state,
    useDeliveries(client).length,
  ];
  return h('p', { id: 'sound' }, words.join(' '));
}

function Script({ client }: { readonly client: SessionClient | null }): ReactElement {
  seen.transcript += 1;
  return h(Transcript, { items: useTranscript(client) });
}

function Questions({ client }: { readonly client: SessionClient }): ReactElement {
  seen.questions += 1;
  const cards = useQuestions(client).map((question) =>
    h(QuestionCard, { key: question.requestId, question, client }),
  );
  return h('div', null, cards);
}

function Tasks({ client }: { readonly client: SessionClient }): ReactElement {
  seen.tasks += 1;
  return h(SubagentList, { subagents: useSubagents(client), client });
}

export function mount(token = 'right'): void {
  const root = createRoot(document.getElementById('root'));
  root.render(h(StrictMode, null, h(Page, { token })));
  seen.unmount = () => root.unmount();
}
