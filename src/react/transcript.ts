// The part of `offstage/react` for the transcript. It has no styles, and it shows text from users and models as text.
//
// Invariants
//   TRANSCRIPT-PART-1. When text arrives or the size changes, the box stays scrolled to its end unless the user has
//       scrolled away.

'use client';

import { createElement as h, memo, useEffect, useRef, type ReactElement } from 'react';
import type {
  QuestionView,
  SubagentView,
  TranscriptItem,
} from '../actors/contracts/session-views.ts';
import type { SessionClient } from '../client/session-client.ts';
import { useAnswered, useQuestions, useSubagents } from './hooks.ts';
import { page, type PageElement } from './page.ts';
import { humanName } from './words.ts';

/** A line between utterances, such as a note that a subagent has started. */
export interface TranscriptNote {
  /** The note's id. */
  readonly id: string;
  /** The text of the note. */
  readonly text: string;
  /** The time that the line is sorted by, in milliseconds since 1970. */
  readonly at: number;
}

/** The texts of the lines that `useTranscriptNotes` returns. */
export interface TranscriptNotesLabels {
  /** Returns the line for a subagent that has started. @defaultValue an English sentence with its name and title */
  readonly started?: (subagent: SubagentView) => string;
  /** Returns the line for a subagent that has ended. @defaultValue an English sentence with its name and outcome */
  readonly ended?: (subagent: SubagentView) => string;
  /** Returns the line for a question that this page has answered. @defaultValue an English sentence with the answer */
  readonly answered?: (question: QuestionView, answer: string) => string;
}

/**
 * Returns lines for events without an utterance: a subagent has started or ended, or a button on this page has answered
 * a question.
 */
export function useTranscriptNotes(
  client: SessionClient | null,
  labels: TranscriptNotesLabels = {},
): readonly TranscriptNote[] {
  const answered = useAnswered(client);
  const questions = useQuestions(client);
  return [
    ...useSubagents(client).flatMap((subagent): TranscriptNote[] => {
      const { id, startedAt, endedAt } = subagent;
      const text = labels.started?.(subagent) ?? startOf(subagent);
      const start = { id: `${id}:start`, at: startedAt, text };
      if (endedAt === null) return [start];
      return [
        start,
        { id: `${id}:end`, at: endedAt, text: labels.ended?.(subagent) ?? endOf(subagent) },
      ];
    }),
    ...questions.flatMap((question): TranscriptNote[] => {
      const { requestId, subagentName, answer } = question;
      const at = answered.get(requestId);
      if (at === undefined || answer === null) return [];
      const text =
        labels.answered?.(question, answer) ??
        `You answered the ${humanName(subagentName)}: ${answer}.`;
      return [{ id: `${requestId}:answer`, at, text }];
    }),
  ];
}

const startOf = ({ name, title }: SubagentView): string =>
  `The ${humanName(name)} goes to work: ${title.charAt(0).toLowerCase()}${title.slice(1).replace(/[.!?]$/, '')}.`;

function endOf({ name, state, outcome }: SubagentView): string {
  const who = `The ${humanName(name)}`;
  if (state === 'completed') return `${who} is done.`;
  if (state === 'cancelled') return `${who} was stopped.`;
  return `${who} gave up${outcome?.error ? `: ${outcome.error.message}` : ''}.`;
}

/** The props of `Transcript`. */
export interface TranscriptProps {
  /** The lines to show. */
  readonly items: readonly TranscriptItem[];
  /**
   * The user of this page, such as `status.user` of `useSession`. Utterances of other users show the speaker's name.
   * @defaultValue all utterances of users have the name `labels.user`
   */
  readonly user?: string | null;
  /** Lines between utterances. @defaultValue none */
  readonly notes?: readonly TranscriptNote[];
  /**
   * For a user who reads: the whole text that was shown remains after an interruption. Otherwise, text that was not
   * heard disappears. @defaultValue false
   */
  readonly keepsWords?: boolean;
  /** Adds a button to the last interrupted line; the button calls this function. */
  readonly onRepeat?: (item: TranscriptItem) => void;
  /** The transcript's texts. @defaultValue English */
  readonly labels?: {
    readonly transcript?: string;
    readonly user?: string;
    readonly assistant?: string;
    readonly repeat?: string;
  };
}

/** The transcript follows new text while it is scrolled to within this distance of its end. */
const NEAR_END_PX = 120;

/** Shows the transcript of the conversation. A screen reader reads each line as soon as it is complete. */
export function Transcript(props: TranscriptProps): ReactElement {
  const { items, notes = [], keepsWords = false, onRepeat, labels = {}, user: me = null } = props;
  const box = useRef<PageElement>(null);
  const follows = useRef(true);
  const words = useRef(new Map<string, string>());
  const toEnd = (): void => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(toEnd);
  useEffect(() => {
    if (!page.ResizeObserver) return undefined;
    const observer = new page.ResizeObserver(toEnd);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const textOf = ({ id, text }: TranscriptItem): string => {
    if (keepsWords && text.length > (words.current.get(id)?.length ?? 0))
      words.current.set(id, text);
    return words.current.get(id) ?? text;
  };
  const cut = onRepeat && items.findLast(({ interrupted }) => interrupted);
  const { user = 'You', assistant = 'Assistant', repeat = 'Say it again' } = labels;
  const lines = [
    ...items.flatMap((item) => {
      const text = textOf(item);
      const { role, by } = item;
      const isOther = me !== null && by !== undefined && by !== me;
      const speaker = role !== 'user' ? assistant : isOther ? by : user;
      const again = onRepeat && item === cut ? { label: repeat, press: onRepeat } : null;
      return text.trim() === ''
        ? []
        : [{ at: item.at, line: h(Line, { key: item.id, item, text, speaker, again }) }];
    }),
    ...notes.map(({ id, at, text }) => ({
      at,
      line: h('p', { key: `note ${id}`, 'data-part': 'note' }, text),
    })),
  ].toSorted((a, b) => a.at - b.at);
  return h(
    'div',
    {
      ref: box,
      role: 'log',
      'aria-label': labels.transcript ?? 'Conversation',
      tabIndex: 0,
      'data-part': 'transcript',
      onScroll: () => {
        const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {};
        follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
      },
    },
    lines.map(({ line }) => line),
  );
}

interface LineProps {
  readonly item: TranscriptItem;
  readonly text: string;
  readonly speaker: string;
  readonly again: { readonly label: string; readonly press: (item: TranscriptItem) => void } | null;
}

const Line = memo(
  function Line({ item, text, speaker, again }: LineProps): ReactElement {
    const { role, final, interrupted } = item;
    return h(
      'p',
      {
        'data-part': 'line',
        'data-role': role,
        'data-interrupted': interrupted,
        'aria-busy': !final,
      },
      h('strong', { 'data-part': 'speaker' }, `${speaker}:`),
      ' ',
      h('span', { 'data-part': 'words' }, text, interrupted && ' —'),
      again && ' ',
      again &&
        h(
          'button',
          { type: 'button', 'data-part': 'repeat', onClick: () => again.press(item) },
          again.label,
        ),
    );
  },
  (before, after) =>
    before.item === after.item &&
    before.text === after.text &&
    before.speaker === after.speaker &&
    before.again?.label === after.again?.label,
);
