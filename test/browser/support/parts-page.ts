// The page for the tests of those components of `offstage/react` that make up a whole page, under StrictMode.

import { createElement as h, StrictMode, useState, type ReactElement } from 'react';
import { createRoot } from 'react-dom/client';
import { connect, type SessionClient } from '../../../src/client/index.ts';
import {
  Alerts,
  ConnectionStatus,
  DeliveryList,
  MessageField,
  QuestionList,
  SubagentList,
  TalkButton,
  TalkHint,
  TalkModes,
  Transcript,
  useDeliveries,
  useQuestions,
  useSubagents,
  useTalkKeys,
  useTranscript,
  useTranscriptNotes,
} from '../../../src/react/index.ts';

declare const document: { getElementById(id: string): never };

export const seen: { client: SessionClient | null; repeated: string[] } = {
  client: null,
  repeated: [],
};

function Page({ client }: { readonly client: SessionClient }): ReactElement {
  const [height, setHeight] = useState(200);
  useTalkKeys(client);
  return h(
    'main',
    null,
    h('h1', null, 'A session'),
    h(ConnectionStatus, { client }),
    h('div', { id: 'box', style: { height, display: 'grid' } }, h(Script, { client })),
    h('button', { type: 'button', onClick: () => setHeight(90) }, 'Shrink'),
    h(Lists, { client }),
    h(MessageField, { client, shortcut: '/', labels: { placeholder: 'Write' } }),
    h(TalkButton, { client }),
    h(TalkModes, { client }),
    h(TalkHint, { client }),
    h(Alerts, { client }),
  );
}

function Script({ client }: { readonly client: SessionClient }): ReactElement {
  const items = useTranscript(client);
  const notes = useTranscriptNotes(client);
  return h(Transcript, { items, notes });
}

function Lists({ client }: { readonly client: SessionClient }): ReactElement {
  const subagents = useSubagents(client);
  return h(
    'div',
    null,
    h(QuestionList, { questions: useQuestions(client), client, shortcuts: true, lingerMs: 1_000 }),
    h(SubagentList, { subagents, client, maxEnded: 1 }),
    h(DeliveryList, { deliveries: useDeliveries(client), subagents, client }),
  );
}

export function mount(): void {
  const client = connect({ url: '/offstage', token: 'right' });
  seen.client = client;
  createRoot(document.getElementById('root')).render(h(StrictMode, null, h(Page, { client })));
}

/** Mounts only the transcript, with these items. */
export function mountTranscript(items: readonly (readonly [string, boolean])[]): void {
  const lines = items.map(([text, interrupted], index) => ({
    id: String(index),
    role: 'assistant' as const,
    text,
    final: true,
    at: index,
    interrupted,
  }));
  createRoot(document.getElementById('root')).render(h(Retold, { lines }));
}

function Retold({
  lines,
}: {
  readonly lines: Parameters<typeof Transcript>[0]['items'];
}): ReactElement {
  const [isCut, setCut] = useState(false);
  const items = isCut ? lines.map((line) => ({ ...line, text: line.text.slice(0, 3) })) : lines;
  return h(
    'main',
    null,
    h(Transcript, {
      items,
      keepsWords: true,
      onRepeat: ({ text }) => void seen.repeated.push(text),
    }),
    h('button', { type: 'button', onClick: () => setCut(true) }, 'Cut'),
  );
}
