// The parts of `offstage/react`: a question, the tasks, the transcript. They have no styles: `data-` attributes name
// what an app wants to style. All words of others are text, never markup.
//
// Invariants
//   REACT-PARTS-1. Nothing is shown as done before the session says so: an answer is pending until its receipt.
//   REACT-PARTS-2. A card whose question ends keeps the focus that was in it.

'use client';

import { createElement, memo, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import type { ReactElement } from 'react';
import type {
  AnswerReceipt,
  QuestionView,
  SubagentView,
  TranscriptItem,
} from '../actors/contracts/session-views.ts';
import { APPROVE_LASTING } from '../actors/contracts/records.ts';
import type { ClientAnswer } from '../client/protocol.ts';
import type { SessionClient } from '../client/session-client.ts';
import { messageOf } from '../values/errors.ts';

export interface QuestionCardProps {
  readonly question: QuestionView;
  readonly client: Pick<SessionClient, 'answer' | 'questionShown'>;
  /** The words of the card. @defaultValue English */
  readonly labels?: {
    readonly approve?: string;
    readonly decline?: string;
    readonly answer?: string;
    readonly send?: string;
    readonly pending?: string;
    readonly refused?: (reason: string) => string;
    readonly ended?: (question: QuestionView) => string;
  };
}

const h = createElement;

/** What a page has, and Node.js has not. */
const page = globalThis as {
  readonly document?: { readonly activeElement: unknown; body: unknown };
};

/** Compiled without the types of a page, an element of React has no method. */
type Focusable = HTMLElement & { focus(): void };

const refusals: Readonly<Record<string, string>> = {
  not_allowed: 'Somebody else has to answer this.',
  unknown: 'This question is not there any more.',
  queued: 'Another question comes first.',
  not_presented: 'This question has not been asked yet.',
  over: 'This question is over.',
  invalid_option: 'This is none of the options.',
  unclear: 'This answer is not clear: say it in other words.',
} satisfies Record<Extract<AnswerReceipt, { accepted: false }>['reason'], string>;

/** A question or an approval, with its buttons or a field. It tells the session that it is shown. */
export function QuestionCard({ question, client, labels = {} }: QuestionCardProps): ReactElement {
  const { requestId, kind, options, state, subagentName } = question;
  const id = useId();
  const card = useRef<Focusable>(null);
  const hadFocus = useRef(false);
  const [text, setText] = useState('');
  const [isPending, setPending] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const isOver = ['answered', 'expired', 'withdrawn', 'superseded'].includes(state);
  useEffect(() => {
    if (state === 'presenting') void client.questionShown(requestId);
  }, [client, requestId, state]);
  useLayoutEffect(() => {
    const focused = page.document?.activeElement;
    if (isOver && hadFocus.current && (!focused || focused === page.document?.body))
      card.current?.focus();
  }, [isOver]);

  async function answer(given: ClientAnswer): Promise<void> {
    if (isPending) return;
    setPending(true);
    setRefusal(null);
    try {
      const receipt = await client.answer(requestId, given);
      if (!receipt.accepted)
        setRefusal(labels.refused?.(receipt.reason) ?? refusals[receipt.reason] ?? receipt.reason);
    } catch (error) {
      setRefusal(messageOf(error));
    } finally {
      setPending(false);
    }
  }
  // Not `disabled`: a button that is disabled loses the focus.
  const button = (key: string, label: string, given: ClientAnswer): ReactElement =>
    h(
      'button',
      { key, type: 'button', 'aria-disabled': isPending, onClick: () => void answer(given) },
      label,
    );
  const choices = options.map((option) =>
    h(
      'li',
      { key: option.id },
      button(option.id, option.label, { optionId: option.id }),
      option.description !== undefined && h('span', null, ' ', option.description),
    ),
  );
  const buttons =
    kind === 'approval'
      ? h(
          'p',
          null,
          button('approve', labels.approve ?? 'Approve', { approved: true }),
          ' ',
          button('decline', labels.decline ?? 'Decline', { approved: false }),
          ...options.flatMap((option) =>
            option.id === APPROVE_LASTING
              ? [
                  ' ',
                  button(option.id, option.label, { optionId: option.id }),
                  h('span', { key: 'lasting' }, ' ', option.description),
                ]
              : [],
          ),
        )
      : choices.length > 0
        ? h('ul', { 'aria-labelledby': `${id}-question` }, choices)
        : h(
            'form',
            {
              onSubmit: (event: { preventDefault(): void }) => {
                event.preventDefault();
                if (text.trim() !== '') void answer({ text });
              },
            },
            h('label', { htmlFor: `${id}-text` }, labels.answer ?? 'Your answer'),
            ' ',
            h('input', {
              id: `${id}-text`,
              value: text,
              maxLength: 8_000,
              autoComplete: 'off',
              onChange: ({ target }: { target: unknown }) =>
                setText((target as { readonly value: string }).value),
            }),
            ' ',
            h('button', { type: 'submit', 'aria-disabled': isPending }, labels.send ?? 'Send'),
          );
  return h(
    'section',
    {
      ref: card,
      tabIndex: -1,
      'aria-labelledby': `${id}-name ${id}-question`,
      'data-state': state,
      'data-kind': kind,
      onFocus: () => {
        hadFocus.current = true;
      },
      onBlur: ({ relatedTarget }: { relatedTarget: unknown }) => {
        if (relatedTarget) hadFocus.current = false;
      },
    },
    h('p', { id: `${id}-name` }, subagentName),
    h('p', { id: `${id}-question` }, wordsOf(question)),
    question.action &&
      h(
        'pre',
        null,
        `${question.action.toolName}\n${JSON.stringify(question.action.input, null, 2) ?? ''}`,
      ),
    !isOver && buttons,
    h(
      'p',
      { role: 'status' },
      isOver
        ? (labels.ended?.(question) ?? question.answer ?? `No answer (${state})`)
        : isPending
          ? (labels.pending ?? 'Sending …')
          : refusal,
    ),
  );
}

/** The words of a question; of an approval without its arguments, which are shown below. */
function wordsOf({ question, action }: QuestionView): string {
  return action ? question.replace(` with ${JSON.stringify(action.input)}`, '') : question;
}

export interface SubagentListProps {
  readonly subagents: readonly SubagentView[];
  /** With a client, each task that runs has a button that cancels it. */
  readonly client?: Pick<SessionClient, 'cancel'>;
  /** The words of the list. @defaultValue English */
  readonly labels?: {
    readonly tasks?: string;
    readonly cancel?: (subagent: SubagentView) => string;
    readonly state?: (subagent: SubagentView) => string;
  };
}

const states: Readonly<Record<SubagentView['state'], string>> = {
  spawning: 'about to start',
  ready: 'about to start',
  running: 'at work',
  waiting_for_input: 'waits for an answer',
  waiting_for_children: 'waits for its helpers',
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** The tasks of the subagents, with what they are doing. */
export function SubagentList({ subagents, client, labels = {} }: SubagentListProps): ReactElement {
  return h(
    'ul',
    { 'aria-label': labels.tasks ?? 'Tasks' },
    subagents.map((subagent) =>
      h(
        'li',
        { key: subagent.id, 'data-state': subagent.state, 'data-depth': subagent.depth },
        h('strong', null, subagent.name),
        ' ',
        h('span', null, subagent.title),
        ' ',
        h(
          'span',
          { role: 'status' },
          [
            labels.state?.(subagent) ?? states[subagent.state],
            ...(subagent.progress !== null ? [`: ${subagent.progress}`] : []),
          ].join(''),
        ),
        ' ',
        client &&
          subagent.endedAt === null &&
          h(
            'button',
            {
              type: 'button',
              // Two tasks of one kind are told apart by their titles.
              'aria-label': `${labels.cancel?.(subagent) ?? `Cancel ${subagent.name}`}: ${subagent.title}`,
              // The subagent says when it has ended, and a refusal changes nothing here.
              onClick: () => void client.cancel(subagent.id).catch(() => undefined),
            },
            labels.cancel?.(subagent) ?? `Cancel ${subagent.name}`,
          ),
      ),
    ),
  );
}

export interface TranscriptProps {
  readonly items: readonly TranscriptItem[];
  /** The words of the transcript. @defaultValue English */
  readonly labels?: {
    readonly transcript?: string;
    readonly user?: string;
    readonly assistant?: string;
  };
}

/** The conversation. A screen reader reads each line when it is complete. */
export function Transcript({ items, labels = {} }: TranscriptProps): ReactElement {
  const { transcript = 'Conversation', user = 'You', assistant = 'Assistant' } = labels;
  return h(
    'div',
    { role: 'log', 'aria-label': transcript, tabIndex: 0 },
    items.map((item) =>
      h(TranscriptLine, { key: item.id, item, speaker: item.role === 'user' ? user : assistant }),
    ),
  );
}

const TranscriptLine = memo(function TranscriptLine({
  item: { role, text, final, interrupted },
  speaker,
}: {
  readonly item: TranscriptItem;
  readonly speaker: string;
}): ReactElement {
  return h(
    'p',
    { 'data-role': role, 'data-interrupted': interrupted, 'aria-busy': !final },
    h('strong', null, `${speaker}:`),
    ' ',
    h('span', null, text),
  );
});
