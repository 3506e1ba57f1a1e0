// `offstage/react` on a server renders an empty session and opens no connection.

import { createElement as h, type ReactElement } from 'react';
import { renderToString } from 'react-dom/server';
import { describe, expect, test } from 'vitest';
import type { QuestionView } from '../../src/actors/contracts/session-views.ts';
import { approvalQuestion } from '../../src/actors/subagent/ask-user.ts';
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
} from '../../src/react/index.ts';

test('renders every hook without opening a connection (REACT-2)', () => {
  let opened = 0;
  function NoSocket(): never {
    opened += 1;
    throw new Error('A server opens no connection');
  }
  function Page(): ReactElement {
    const { client, status, connection } = useSession({
      url: 'ws://127.0.0.1:1/offstage',
      WebSocket: NoSocket as never,
    });
    const counts = [
      useQuestions(client),
      useSubagents(client),
      useDeliveries(client),
      useTranscript(client),
    ].map(({ length }) => length);
    const sound = [useMicrophone(client).state, useSpeaker(client).state];
    return h('p', null, [client === null, status.state, connection, ...counts, ...sound].join(','));
  }
  expect(renderToString(h(Page))).toBe('<p>true,connecting,created,0,0,0,0,off,off</p>');
  expect(opened).toBe(0);
});

test("escapes other users' text in the components", () => {
  const hostile = '<img src=x onerror="alert(1)">';
  const html = renderToString(
    h(
      'main',
      null,
      h(Transcript, { items: [{ id: '1', role: 'user', text: hostile, final: true, at: 0 }] }),
      h(SubagentList, {
        subagents: [
          {
            id: 's',
            name: hostile,
            parentId: null,
            depth: 0,
            callId: null,
            toolName: hostile,
            task: 'Its words are in its title',
            title: hostile,
            state: 'running',
            hung: false,
            step: 0,
            maxSteps: 1,
            startedAt: 0,
            endedAt: null,
            usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
            progress: hostile,
            outcome: null,
          },
        ],
      }),
      h(QuestionCard, {
        client: {} as never,
        question: {
          requestId: 'q',
          subagentId: 's',
          subagentName: hostile,
          kind: 'question',
          question: hostile,
          options: [{ id: hostile, label: hostile, description: hostile }],
          state: 'open',
          askedAt: 0,
          dueAt: null,
          timeoutMs: 1,
          answer: null,
        },
      }),
    ),
  );
  expect(html).not.toContain('<img');
  expect(html.split('&lt;img').length - 1).toBe(8);
});

test.each([
  [{ lasting: 'Always allow <b>edits</b>' }, {}, 3, 'Yes, and from now on'],
  [{}, {}, 4, 'exactly this again without asking, until this task is done'],
  [{}, {}, 4, 'exactly this again without asking, until this conversation ends'],
  [{}, { lasts: 'session' }, 3, 'exactly this again without asking, until this conversation ends'],
  [{}, { state: 'answered', lasts: 'task' }, 1, 'Ask again'],
  [{}, { state: 'answered' }, 0, 'Answered'],
  [{}, { mayDiffer: ['<b>'] }, 4, 'this again, whatever the &lt;b&gt;, without asking'],
  [{}, { mayDiffer: false }, 2, 'Approve'],
])(
  'shows a button for each permission that an approval may grant: %j %j',
  (offer, may, buttons, words) => {
    const input = { title: 'Edit', kind: 'edit', input: {}, ...offer };
    const html = renderToString(
      h(QuestionCard, {
        client: {} as never,
        question: {
          ...approvalQuestion({ callId: 'c', toolName: 'agent_tool', input }),
          requestId: 'q',
          subagentId: 's',
          subagentName: 'coder',
          kind: 'approval',
          state: 'open',
          askedAt: 0,
          dueAt: null,
          timeoutMs: 1000,
          answer: null,
          ...may,
        } as QuestionView,
      }),
    );
    expect(html.split('<button').length - 1).toBe(buttons);
    expect(html).toContain(words);
    expect(html).not.toContain('<b>');
  },
);

test('shows the call of an approval only once', () => {
  const input = { to: '$& and $1', sum: 7 };
  const question = approvalQuestion({ callId: 'c', toolName: 'pay', input });
  const html = renderToString(
    h(QuestionCard, {
      client: {} as never,
      question: {
        ...question,
        requestId: 'q',
        subagentId: 's',
        subagentName: 'payer',
        kind: 'approval',
        state: 'open',
        askedAt: 0,
        dueAt: null,
        timeoutMs: 1000,
        answer: null,
      },
    }),
  );
  expect(html).toContain('>May I run pay?<');
  expect(html.split('$1')).toHaveLength(2);
});

test.each([
  [true, 'open', 0],
  [false, 'open', 4],
  [false, 'queued', 4],
] as const)(
  'REACT-PARTS-3: shows on a card whether the user may answer: %s, %s',
  (mayAnswer, state, disabled) => {
    const input = { sum: 7 };
    const html = renderToString(
      h(QuestionCard, {
        client: {} as never,
        shortcuts: true,
        question: {
          ...approvalQuestion({ callId: 'c', toolName: 'pay', input }),
          requestId: 'q',
          subagentId: 's',
          subagentName: 'payer',
          kind: 'approval',
          state,
          askedAt: 0,
          dueAt: null,
          timeoutMs: 1000,
          answer: null,
          mayAnswer,
        },
      }),
    );
    expect(html.split('disabled=""').length - 1).toBe(disabled);
    expect(html.includes('Only another person can answer this.')).toBe(!mayAnswer);
    expect(html.includes('<kbd')).toBe(mayAnswer);
  },
);

describe('the card of a question', () => {
  const question: QuestionView = {
    ...approvalQuestion({ callId: 'c', toolName: 'pay', input: { sum: 7 } }),
    requestId: 'q',
    subagentId: 's',
    subagentName: 'payer',
    kind: 'approval',
    state: 'open',
    askedAt: 0,
    dueAt: null,
    timeoutMs: 1000,
    answer: null,
  };
  const cardOf = (hasVoice: boolean | null, more: Partial<QuestionView> = {}): string =>
    renderToString(
      h(QuestionCard, {
        client: {
          ...(hasVoice !== null && { status: { get: () => ({ hasVoice }) } }),
        } as never,
        question: { ...question, ...more },
      }),
    );

  test('mentions speech only if the session has a voice', () => {
    expect(cardOf(true)).toContain('>say it or press it<');
    for (const hasVoice of [false, null])
      expect(cardOf(hasVoice)).toContain('>waits for your answer<');
  });

  test('names the users who can answer if the page may see their names', () => {
    const others = { mayAnswer: false };
    expect(cardOf(false, others)).toContain('>Only another person can answer this.<');
    expect(cardOf(false, { ...others, answerableBy: ['ann', 'bob'] })).toContain(
      '>Only ann or bob can answer this.<',
    );
  });
});

test('names another user who spoke or answered', () => {
  const said = { role: 'user', final: true, at: 0 } as const;
  const items = [
    { ...said, id: '1', text: 'Refund me.', by: 'ann' },
    { ...said, id: '2', text: 'I do it.', by: 'bob' },
    { ...said, id: '3', text: 'Thanks.' },
  ];
  const speakers = (user?: string) =>
    [
      ...renderToString(h(Transcript, { items, ...(user && { user }) })).matchAll(
        /(\w+):<\/strong>/g,
      ),
    ].map(([, name]) => name);
  expect([speakers(), speakers('bob')]).toEqual([
    ['You', 'You', 'You'],
    ['ann', 'You', 'You'],
  ]);
  const answered = (user: string) =>
    renderToString(
      h(QuestionCard, {
        client: {} as never,
        user,
        question: {
          requestId: 'q',
          subagentId: 's',
          subagentName: 'payer',
          kind: 'question',
          question: 'Economy or Premium?',
          options: [],
          state: 'answered',
          askedAt: 0,
          dueAt: null,
          timeoutMs: 1000,
          answer: 'Premium',
          answeredBy: 'bob',
        },
      }),
    );
  expect(answered('ann')).toContain('>Answered by bob: Premium<');
  expect(answered('bob')).toContain('>Answered: Premium<');
});

test('shows the original text of a repeated question', () => {
  const card = (times: number) =>
    renderToString(
      h(QuestionCard, {
        client: {} as never,
        question: {
          requestId: 'q',
          subagentId: 's',
          subagentName: 'payer',
          kind: 'question',
          question: 'Pay 900?',
          options: [],
          state: 'open',
          askedAt: 0,
          dueAt: null,
          timeoutMs: 1000,
          answer: null,
          putAgain: { times, text: 'To be sure: Pay 900?' },
        },
      }),
    );
  expect(card(2)).toContain('data-part="again">Asked again.<');
  expect(card(3)).toContain('>Asked for the 3rd time.<');
  expect(card(2)).toContain('data-part="question">To be sure: Pay 900?<');
});
