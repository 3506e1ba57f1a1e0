// The page that uses the hooks and components of `offstage/react`.

import { StrictMode, useState, type SyntheticEvent } from 'react';
import { createRoot } from 'react-dom/client';
import {
  QuestionCard,
  SubagentList,
  Transcript,
  useQuestions,
  useSession,
  useSubagents,
  useTranscript,
} from 'offstage/react';

function Page() {
  const { client, status } = useSession({ url: '/offstage', token: location.hash.slice(1) });
  const items = useTranscript(client);
  const subagents = useSubagents(client);
  const questions = useQuestions(client).filter(({ state }) => state !== 'queued');
  const [text, setText] = useState('Book me a ride.');
  if (!client) return null;
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    void client.send(text);
    setText('');
  };
  return (
    <main>
      <h1>A session</h1>
      <Transcript items={items} />
      {questions.map((question) => (
        <QuestionCard key={question.requestId} question={question} client={client} />
      ))}
      <SubagentList subagents={subagents} client={client} />
      <form onSubmit={send}>
        <input
          aria-label="Message"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button>Send</button>
      </form>
      {status.state !== 'open' && <p role="status">{status.reason?.message ?? 'Connecting …'}</p>}
    </main>
  );
}

createRoot(document.querySelector('#root') ?? document.body).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
