// The parts of `offstage/react` for subagents' questions: a card, and the list of open questions in the order in which
// they are asked. The parts have no styles. `data-` attributes are for the app's style sheet. Text from users and
// models is shown as text, never as markup.
//
// Invariants
//   REACT-PARTS-1. A card shows an action as done only after the session has confirmed it: an answer is pending until
//       its receipt arrives.
//   REACT-PARTS-2. A card keeps the focus when its question ends, and passes the focus to the list when the card
//       disappears.
//   REACT-PARTS-3. If a question has not been asked yet or is for another user, its card has no enabled button and says
//                  why.

'use client';

import { createElement as h, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import type { ReactElement } from 'react';
import {
  APPROVE_LASTING,
  lastingWords,
  withoutArguments,
  type AnswerReceipt,
  type QuestionPut,
  type QuestionView,
} from '../actors/contracts/session-views.ts';
import type { ClientAnswer } from '../actors/contracts/session-command.ts';
import type { SessionClient } from '../client/session-client.ts';
import { messageOf } from '../values/errors.ts';
import { visible } from '../values/visible.ts';
import { scheduler, useServerTime } from './hooks.ts';
import { isForPage, page, valueIn, type PageElement, type PageKey } from './page.ts';
import { clockTime, humanName, ordinal, type Timed } from './words.ts';

/** The texts of a card. Each is English by default. */
export interface QuestionLabels {
  /** The button that approves. @defaultValue 'Approve' */
  readonly approve?: string;
  /** The button that declines. @defaultValue 'Decline' */
  readonly decline?: string;
  /** The button that also approves later calls of the task. @defaultValue 'Approve, and do not ask again' */
  readonly always?: string;
  /** The button that also approves later calls of the session. @defaultValue 'Approve for this conversation' */
  readonly alwaysInSession?: string;
  /** The button that revokes a lasting approval. @defaultValue 'Ask again' */
  readonly askAgain?: string;
  /** The label of the text field. @defaultValue 'Your answer' */
  readonly answer?: string;
  /** The button that sends the text field's content. @defaultValue 'Send' */
  readonly send?: string;
  /** Shown until the receipt for an answer arrives. @defaultValue 'Sending …' */
  readonly pending?: string;
  /** The heading of an approval's call. */
  readonly approval?: string;
  /** The status of an unfinished question. `place` is its position in the queue. */
  readonly turn?: (question: QuestionView, place: number) => string;
  /** The screen reader's name for the bar that shows the remaining time. @defaultValue 'Time to answer' */
  readonly timeLeft?: string;
  /** The note on a question that another user must answer. */
  readonly others?: string;
  /** Shown instead of the remaining time while the countdown is paused. */
  readonly clockWaits?: string;
  /** Returns the text for a refused answer. `reason`: the receipt's reason. @defaultValue an English sentence */
  readonly refused?: (reason: string) => string;
  /** The note on a question that was asked more than once. `times` is 2 or more. */
  readonly again?: (times: number) => string;
  /**
   * Returns the status of a question that has ended.
   * @defaultValue an English sentence with the answer, if there is one
   */
  readonly ended?: (question: QuestionView) => string;
}

/** The props of `QuestionCard`. */
export interface QuestionCardProps {
  /** The question to show. */
  readonly question: QuestionView;
  /** If the client has a `status`, the card in a voice session tells the user that an answer can be spoken. */
  readonly client: Pick<SessionClient, 'answer' | 'questionShown'> &
    Partial<Timed & Pick<SessionClient, 'status'>>;
  /** The question's position in the queue. @defaultValue 1 */
  readonly place?: number;
  /** Whether the buttons show the digits 1 to 9 as shortcuts. @defaultValue false */
  readonly shortcuts?: boolean;
  /**
   * The user of this page, such as `status.user` of `useSession`. If another user has answered, the card names that
   * user.
   * @defaultValue no names are shown
   */
  readonly user?: string | null;
  /** The card's texts. @defaultValue English */
  readonly labels?: QuestionLabels;
}

const refusals: Readonly<Record<string, string>> = {
  not_allowed: 'Only another person can answer this.',
  unknown: 'This question is not there any more.',
  queued: 'Another question comes first.',
  not_presented: 'This question has not been asked yet.',
  changed: 'The call was changed meanwhile: look at it again.',
  over: 'This question is over.',
  invalid_option: 'This is none of the options.',
  unclear: 'This answer is not clear: say it in other words.',
} satisfies Record<Extract<AnswerReceipt, { accepted: false }>['reason'], string>;

const ends: Partial<Record<QuestionView['state'], string>> = {
  answered: 'Answered',
  expired: 'No answer came in time.',
  withdrawn: 'Not needed any more.',
  superseded: 'Asked anew.',
};

const isOver = ({ state }: QuestionView): boolean => state in ends;
const isLasting = ({ lasts, ...question }: QuestionView): boolean =>
  lasts !== undefined && isOver(question);
const isAsked = ({ state }: QuestionView): boolean => state === 'presenting' || state === 'open';
const isForOthers = ({ mayAnswer }: QuestionView): boolean => mayAnswer === false;

/** One of the ways to answer. */
interface Choice {
  readonly id: string;
  readonly label: string;
  readonly description?: string | undefined;
  readonly answer: ClientAnswer;
}

function choicesOf(
  { kind, options, changed, lasts, mayDiffer }: QuestionView,
  labels: QuestionLabels,
): readonly Choice[] {
  const ofOptions = options.map((option) => ({ ...option, answer: { optionId: option.id } }));
  if (kind !== 'approval') return ofOptions;
  return [
    {
      id: 'approve',
      label: labels.approve ?? 'Approve',
      answer: { approved: true, ...(changed && { input: changed.input }) },
    },
    { id: 'decline', label: labels.decline ?? 'Decline', answer: { approved: false } },
    ...ofOptions.filter(({ id }) => id === APPROVE_LASTING),
    ...(mayDiffer === false || options.some(({ id }) => id === APPROVE_LASTING)
      ? []
      : (lasts ? [lasts] : (['task', 'session'] as const)).map((scope) => ({
          id: `always-${scope}`,
          label:
            scope === 'task'
              ? (labels.always ?? 'Approve, and do not ask again')
              : (labels.alwaysInSession ?? 'Approve for this conversation'),
          description: lastingWords({ ...(mayDiffer && { mayDiffer }) }, scope),
          answer: {
            approved: true,
            lasts: scope,
            ...(changed && { input: changed.input }),
          } as const,
        }))),
  ];
}

/**
 * A question or an approval, with its buttons or a field. The card reports to the session that it shows the question. A
 * lasting approval has a button that revokes it.
 */
export function QuestionCard(props: QuestionCardProps): ReactElement {
  const { question, client, place = 1, shortcuts = false, user = null, labels = {} } = props;
  const { requestId, kind, state, subagentName, action, changed, putAgain } = question;
  const id = useId();
  const card = useRef<PageElement>(null);
  const hadFocus = useRef(false);
  const [text, setText] = useState('');
  const [isPending, setPending] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const say = client.status?.get().hasVoice ? 'say it or press it' : 'waits for your answer';
  const over = isOver(question);
  const others = isForOthers(question);
  const asked = isAsked(question);
  const lasts = over ? question.lasts : undefined;
  const active = (asked || lasts !== undefined) && !others;
  const choices = choicesOf(question, labels);
  const shownCall = action && { ...action, ...(changed && { input: changed.input }) };
  useEffect(() => {
    if (state === 'presenting') void client.questionShown(requestId);
  }, [client, requestId, state]);
  useLayoutEffect(() => {
    const focused = page.document?.activeElement;
    if (over && hadFocus.current && (!focused || focused === page.document?.body))
      card.current?.focus();
  }, [over]);

  async function answer(given: ClientAnswer): Promise<void> {
    if (isPending || !active) return;
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
  const press = useRef((_digit: number): void => undefined);
  useEffect(() => {
    press.current = (digit) => {
      const choice = choices[digit - 1];
      if (choice) void answer(choice.answer);
    };
  });
  useEffect(() => {
    if (!shortcuts || !active || over) return undefined;
    const onKey = (event: PageKey): void => {
      if (/^[1-9]$/.test(event.key) && isForPage(event)) press.current(Number(event.key));
    };
    page.addEventListener?.('keydown', onKey);
    return () => page.removeEventListener?.('keydown', onKey);
  }, [shortcuts, active, over]);

  const buttons = choices.map(({ id: key, label, description, answer: given }, index) =>
    h(
      'li',
      { key },
      h(
        'button',
        {
          type: 'button',
          disabled: !active,
          // `disabled` would make the button lose the focus.
          'aria-disabled': isPending,
          onClick: () => void answer(given),
        },
        h('span', { 'data-part': 'label' }, label),
        description !== undefined && h('span', { 'data-part': 'description' }, ' ', description),
        shortcuts && active && index < 9 && h('kbd', { 'aria-hidden': true }, index + 1),
      ),
    ),
  );
  const field = h(
    'form',
    {
      'data-part': 'field',
      onSubmit: (event: { preventDefault(): void }) => {
        event.preventDefault();
        if (text.trim() !== '') void answer({ text: text.trim() });
      },
    },
    h('label', { htmlFor: `${id}-text` }, labels.answer ?? 'Your answer'),
    ' ',
    h('input', {
      id: `${id}-text`,
      value: text,
      maxLength: 8_000,
      autoComplete: 'off',
      onChange: (event: { target: unknown }) => setText(valueIn(event)),
    }),
    ' ',
    h('button', { type: 'submit', 'aria-disabled': isPending }, labels.send ?? 'Send'),
  );
  return h(
    'article',
    {
      ref: card,
      tabIndex: -1,
      'aria-labelledby': `${id}-name ${id}-question`,
      'data-part': 'question-card',
      'data-state': state,
      'data-kind': kind,
      'data-for-others': others || undefined,
      onFocus: () => {
        hadFocus.current = true;
      },
      onBlur: ({ relatedTarget }: { relatedTarget: unknown }) => {
        if (relatedTarget) hadFocus.current = false;
      },
    },
    h('p', { id: `${id}-name`, 'data-part': 'from' }, humanName(subagentName)),
    !over && h('p', { 'data-part': 'turn' }, turnIn(labels, question, place, say)),
    !over &&
      putAgain &&
      h('p', { key: putAgain.times, 'data-part': 'again' }, againIn(labels, putAgain)),
    h(
      'p',
      { id: `${id}-question`, 'data-part': 'question' },
      withoutArguments({
        question: changed?.question ?? putAgain?.text ?? question.question,
        ...(shownCall && { action: shownCall }),
      }),
    ),
    !over &&
      kind === 'approval' &&
      h('p', { 'data-part': 'note' }, labels.approval ?? 'It does this only if you approve it.'),
    shownCall && h(Call, { input: shownCall.input }),
    !over &&
      (choices.length > 0
        ? h('ul', { 'data-part': 'options', 'aria-labelledby': `${id}-question` }, buttons)
        : active && field),
    lasts &&
      h(
        'p',
        { 'data-part': 'lasting' },
        `It may do ${lastingWords(question, lasts)}. `,
        h(
          'button',
          {
            type: 'button',
            disabled: !active,
            'aria-disabled': isPending,
            onClick: () => void answer({ approved: false }),
          },
          labels.askAgain ?? 'Ask again',
        ),
      ),
    h(
      'p',
      { role: 'status', 'data-part': 'status' },
      over
        ? (refusal ?? labels.ended?.(question) ?? endOf(question, user))
        : isPending
          ? (labels.pending ?? 'Sending …')
          : refusal,
    ),
    asked && client.serverNow && h(Clock, { question, client: client as Timed, labels }),
  );
}

function turnIn(labels: QuestionLabels, of: QuestionView, place: number, say: string): string {
  const { answerableBy: people = ['another person'] } = of;
  if (isForOthers(of)) return labels.others ?? `Only ${people.join(' or ')} can answer this.`;
  return labels.turn?.(of, place) ?? turnOf(of, place, say);
}

function againIn({ again }: QuestionLabels, { times }: QuestionPut): string {
  return again?.(times) ?? (times > 2 ? `Asked for the ${ordinal(times)} time.` : 'Asked again.');
}

function turnOf({ state }: QuestionView, place: number, say: string): string {
  if (state === 'presenting') return 'is being asked';
  if (state === 'open') return say;
  if (state === 'parked') return 'waits for you to come back';
  return place > 1 ? `${ordinal(place)} in line` : 'comes next';
}

function endOf({ state, answer, answeredBy }: QuestionView, user: string | null): string {
  if (state !== 'answered' || answer === null) return ends[state] ?? '';
  const isOther = user !== null && answeredBy !== undefined && answeredBy !== user;
  const by = isOther ? ` by ${answeredBy}` : '';
  return `${ends.answered}${by}: ${answer}`;
}

/** The arguments of a call, one per line. */
function Call({ input }: { readonly input: unknown }): ReactElement {
  const text = (value: unknown): string =>
    visible(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
  const isRecord = typeof input === 'object' && input !== null && !Array.isArray(input);
  const fields: readonly (readonly [string, unknown])[] = isRecord
    ? Object.entries(input)
    : [['input', input]];
  const lines = fields.map(([name, value]) =>
    h('div', { key: name }, h('dt', null, visible(humanName(name))), h('dd', null, text(value))),
  );
  return h('dl', { 'data-part': 'call' }, lines);
}

/** The time that remains for an answer. A separate component, so that only this text is rendered every second. */
function Clock(props: {
  readonly question: QuestionView;
  readonly client: Timed;
  readonly labels: QuestionLabels;
}): ReactElement | null {
  const { client, labels } = props;
  const { dueAt, timeoutMs } = props.question;
  const now = useServerTime(client, dueAt !== null);
  if (dueAt === null)
    return h(
      'p',
      { 'data-part': 'clock' },
      labels.clockWaits ?? 'The clock starts when it has been asked.',
    );
  if (now === 0) return null;
  const leftMs = Math.min(timeoutMs, Math.max(0, dueAt - now));
  return h(
    'p',
    { 'data-part': 'clock', 'data-late': leftMs < LATE_MS },
    h('progress', {
      max: timeoutMs,
      value: leftMs,
      'aria-label': labels.timeLeft ?? 'Time to answer',
    }),
    ' ',
    h('time', null, clockTime(Math.ceil(leftMs / 1000))),
  );
}

const LATE_MS = 15_000;
const LINGER_MS = 5_000;

/** The props of `QuestionList`. */
export interface QuestionListProps extends Pick<
  QuestionCardProps,
  'client' | 'shortcuts' | 'user'
> {
  /** The questions to show. */
  readonly questions: readonly QuestionView[];
  /** How long a question stays visible after it has ended, in milliseconds. @defaultValue 5000 */
  readonly lingerMs?: number;
  /** The cards' texts. @defaultValue English */
  readonly labels?: QuestionLabels & { readonly questions?: string };
}

/**
 * Lists the open questions: first the one that is being asked, then the queued ones, then the lasting approvals. A
 * question that has ended stays visible with its answer for `lingerMs`. With `shortcuts`, the digits 1 to 9 press the
 * buttons of the first question.
 */
export function QuestionList(props: QuestionListProps): ReactElement {
  const { questions, lingerMs = LINGER_MS, labels = {}, ...card } = props;
  const list = useRef<PageElement>(null);
  const wasOpen = useRef(new Set<string>());
  const [lingering, setLingering] = useState<ReadonlySet<string>>(new Set());
  const timers = useRef(new Set<() => void>());
  useEffect(() => {
    for (const question of questions) {
      const { requestId } = question;
      if (!isOver(question) || isLasting(question)) wasOpen.current.add(requestId);
      // A question that ended before this page opened is not shown.
      else if (wasOpen.current.delete(requestId)) {
        setLingering((before) => new Set(before).add(requestId));
        const cancel = scheduler.schedule(() => {
          timers.current.delete(cancel);
          // REACT-PARTS-2
          const { activeElement } = page.document ?? {};
          if (list.current?.contains(activeElement) && activeElement !== list.current)
            list.current.focus({ preventScroll: true });
          setLingering((before) => new Set([...before].filter((each) => each !== requestId)));
        }, lingerMs);
        timers.current.add(cancel);
      }
    }
  }, [questions, lingerMs]);
  useEffect(
    () => () => {
      for (const cancel of timers.current) cancel();
    },
    [],
  );
  const open = questions
    .filter((question) => !isOver(question))
    .toSorted((a, b) => Number(!isAsked(a)) - Number(!isAsked(b)) || a.askedAt - b.askedAt);
  const shown = [
    ...questions.filter(
      (each) =>
        isOver(each) &&
        !isLasting(each) &&
        (lingering.has(each.requestId) || wasOpen.current.has(each.requestId)),
    ),
    ...open,
    ...questions.filter(isLasting),
  ];
  return h(
    'ol',
    {
      ref: list,
      tabIndex: -1,
      'data-part': 'questions',
      'aria-label': labels.questions ?? 'Questions',
      'aria-live': 'polite',
    },
    shown.map((question) =>
      h(
        'li',
        { key: question.requestId },
        h(QuestionCard, { ...card, question, labels, place: open.indexOf(question) + 1 }),
      ),
    ),
  );
}
