// The page that uses the AI SDK's `useChat` over `offstage/ai-sdk-ui`.

import { StrictMode, useEffect, useState, type SyntheticEvent } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import { chatTransport, type SessionMessage } from 'offstage/ai-sdk-ui';
import { connect } from 'offstage/client';

const transport = chatTransport(connect({ url: '/offstage', token: location.hash.slice(1) }));

function Page() {
  const { messages, setMessages, sendMessage, error } = useChat<SessionMessage>({ transport });
  useEffect(() => transport.follow(setMessages), [setMessages]);
  const [text, setText] = useState('Book me a ride.');
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    void sendMessage({ text });
    setText('');
  };
  return (
    <main>
      <h1>A chat</h1>
      {messages.map(({ id, role, parts }) => (
        <article key={id} aria-label={role}>
          {parts.map((part, index) => (
            <Part key={index} part={part} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input
          aria-label="Message"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button>Send</button>
      </form>
    </main>
  );
}

function Part({ part }: { readonly part: SessionMessage['parts'][number] }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (part.type === 'data-subagent') return <p>{`${part.data.name}: ${part.data.state}`}</p>;
  if (part.type !== 'data-question') return null;
  const { requestId, question, options, state, answer } = part.data;
  if (state !== 'open') return <p>{`${question} ${answer ?? ''}`}</p>;
  return (
    <fieldset>
      <legend>{question}</legend>
      {options.map(({ id, label }) => (
        <button key={id} onClick={() => void transport.answer(requestId, { optionId: id })}>
          {label}
        </button>
      ))}
    </fieldset>
  );
}

createRoot(document.querySelector('#root') ?? document.body).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
