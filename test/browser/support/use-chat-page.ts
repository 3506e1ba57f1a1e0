// The page for the tests of `offstage/ai-sdk-ui`: the official `useChat` of docs/guide/use-chat.md, under StrictMode.

import { createElement as h, StrictMode, useEffect, useState, type ReactElement } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import { chatTransport, type SessionMessage } from '../../../src/ai-sdk-ui/index.ts';
import { connect } from '../../../src/client/index.ts';

declare const document: { getElementById(id: string): never };

let transport: ReturnType<typeof chatTransport>;

function Page(): ReactElement {
  const { messages, setMessages, sendMessage, status, error } = useChat<SessionMessage>({
    transport,
  });
  useEffect(() => transport.follow(setMessages), [setMessages]);
  const [text, setText] = useState('');
  const articles = messages.map(({ id, role, parts }) =>
    h(
      'article',
      { key: id, 'data-role': role },
      parts.map((part, index) => h(Part, { key: index, part })),
    ),
  );
  const send = (event: { preventDefault(): void }): void => {
    event.preventDefault();
    void sendMessage({ text });
    setText('');
  };
  const onChange = (event: { readonly target: unknown }): void =>
    setText((event.target as { readonly value: string }).value);
  return h(
    'main',
    null,
    h('h1', null, 'A chat'),
    articles,
    h('p', { id: 'status' }, status),
    error && h('p', { role: 'alert' }, error.message),
    h(
      'form',
      { onSubmit: send },
      h('input', { 'aria-label': 'Message', value: text, onChange }),
      h('button', null, 'Send'),
    ),
  );
}

function Part({ part }: { readonly part: SessionMessage['parts'][number] }): ReactElement | null {
  if (part.type === 'text') return h('p', null, part.text);
  if (part.type === 'data-subagent')
    return h('p', { className: 'task' }, `${part.data.name}: ${part.data.state}`);
  if (part.type !== 'data-question') return null;
  const { requestId, question, options, state, answer, receipt } = part.data;
  if (state !== 'open') return h('p', { className: 'over' }, `${question} ${answer ?? state}`);
  return h(
    'fieldset',
    null,
    h('legend', null, question),
    options.map(({ id, label }) =>
      h(
        'button',
        { key: id, onClick: () => void transport.answer(requestId, { optionId: id }) },
        label,
      ),
    ),
    receipt === 'pending' && h('p', null, 'Sending …'),
  );
}

export function mount(): void {
  transport = chatTransport(connect({ url: '/offstage', token: 'right' }));
  createRoot(document.getElementById('root')).render(h(StrictMode, null, h(Page)));
}
