// The parts of `offstage/react` for subagents' tasks and results. They have no styles, and they show text from users
// and models as text.

'use client';

import { createElement as h, useEffect, useState, type ReactElement } from 'react';
import type { DeliveryView, SubagentView } from '../actors/contracts/session-views.ts';
import type { SessionClient } from '../client/session-client.ts';
import { Elapsed, humanName, type Timed } from './words.ts';

/** The props of `SubagentList`. */
export interface SubagentListProps {
  /** The subagents to show. */
  readonly subagents: readonly SubagentView[];
  /** If a client is passed, each task shows its time and a running task has a cancel button. */
  readonly client?: Pick<SessionClient, 'cancel'> & Partial<Timed>;
  /** The number of ended tasks to show, starting with the latest. @defaultValue all */
  readonly maxEnded?: number;
  /** The list's texts. @defaultValue English */
  readonly labels?: {
    readonly tasks?: string;
    readonly cancel?: (subagent: SubagentView) => string;
    readonly state?: (subagent: SubagentView) => string;
    /** The line that stands for the ended tasks that `maxEnded` hides. */
    readonly earlier?: (count: number) => string;
  };
}

const states: Readonly<Record<SubagentView['state'], string>> = {
  spawning: 'about to start',
  ready: 'about to start',
  running: 'at work',
  waiting_for_input: 'waits for an answer',
  waiting_for_children: 'waits for its helpers',
  sleeping: 'sleeps until its time',
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** Lists the tasks of subagents and their current activity. */
export function SubagentList(props: SubagentListProps): ReactElement {
  const { subagents, client, maxEnded = Number.POSITIVE_INFINITY, labels = {} } = props;
  const ended = subagents
    .filter(({ endedAt }) => endedAt !== null)
    .toSorted((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0));
  const left = new Set(ended.slice(0, maxEnded));
  const shown = subagents.filter((each) => each.endedAt === null || left.has(each));
  const earlier = subagents.length - shown.length;
  return h(
    'ul',
    { 'aria-label': labels.tasks ?? 'Tasks', 'data-part': 'tasks' },
    shown.map((subagent) => h(Task, { key: subagent.id, subagent, client, labels })),
    earlier > 0 &&
      h('li', { 'data-part': 'earlier' }, labels.earlier?.(earlier) ?? `and ${earlier} before`),
  );
}

function Task(props: {
  readonly subagent: SubagentView;
  readonly client: SubagentListProps['client'];
  readonly labels: NonNullable<SubagentListProps['labels']>;
}): ReactElement {
  const { subagent, client, labels } = props;
  const { id, name, title, state, depth, progress, startedAt, endedAt } = subagent;
  const [isStopping, setStopping] = useState(false);
  const cancel = labels.cancel?.(subagent) ?? `Cancel ${humanName(name)}`;
  const words = labels.state?.(subagent) ?? states[state];
  return h(
    'li',
    { 'data-part': 'task', 'data-state': state, 'data-depth': depth },
    h('strong', { 'data-part': 'title' }, title),
    ' ',
    h('span', { 'data-part': 'name' }, humanName(name)),
    ' ',
    h(
      'span',
      { role: 'status', 'data-part': 'status' },
      progress === null ? words : `${words}: ${progress}`,
    ),
    ' ',
    client?.serverNow && h(Elapsed, { client: client as Timed, from: startedAt, to: endedAt }),
    client &&
      endedAt === null &&
      h(
        'button',
        {
          type: 'button',
          'data-part': 'cancel',
          title: cancel,
          // Titles distinguish two tasks of the same kind.
          'aria-label': `${cancel}: ${title}`,
          'aria-disabled': isStopping,
          onClick: () => {
            if (isStopping) return;
            // The button stays disabled until the subagent ends or the cancellation fails.
            setStopping(true);
            client.cancel(id, 'the user pressed the button').catch(() => setStopping(false));
          },
        },
        cancel,
      ),
  );
}

/** The props of `DeliveryList`. */
export interface DeliveryListProps {
  /** The deliveries to show. */
  readonly deliveries: readonly DeliveryView[];
  /** The client that reports deliveries as shown or dismissed. */
  readonly client: Pick<SessionClient, 'shown' | 'dismiss'>;
  /** The subagents, whose titles name their results. @defaultValue the label of each delivery */
  readonly subagents?: readonly SubagentView[];
  /** The number of deliveries to show, starting with the latest. @defaultValue 8 */
  readonly max?: number;
  /** The list's texts. @defaultValue English */
  readonly labels?: {
    readonly results?: string;
    readonly state?: (delivery: DeliveryView) => string;
    readonly read?: string;
    readonly dismiss?: string;
  };
}

/**
 * Lists the results and notices. The text of a delivery that is waiting to be spoken is hidden, because the session
 * will say it. A button shows the text instead. A delivery that could not be spoken is shown, and is reported as shown.
 */
export function DeliveryList(props: DeliveryListProps): ReactElement {
  const { deliveries, client, subagents = [], max = 8, labels = {} } = props;
  const [away, setAway] = useState<ReadonlySet<string>>(new Set());
  const shown = deliveries
    .filter(
      ({ deliveryId, kind, state }) =>
        (kind === 'result' || kind === 'notice') &&
        state !== 'dismissed' &&
        state !== 'dropped' &&
        !away.has(deliveryId),
    )
    .toSorted((a, b) => b.at - a.at)
    .slice(0, max);
  return h(
    'ul',
    { 'aria-label': labels.results ?? 'Results', 'aria-live': 'polite', 'data-part': 'results' },
    shown.map((delivery) => {
      const { deliveryId, subagentId, label, state } = delivery;
      const words = humanName(label.toLowerCase());
      const title =
        subagents.find(({ id }) => id === subagentId)?.title ??
        words.charAt(0).toUpperCase() + words.slice(1);
      const dismiss = (): void => {
        setAway((before) => new Set(before).add(deliveryId));
        if (state !== 'delivered') void client.dismiss(deliveryId).catch(() => undefined);
      };
      return h(Delivery, { key: deliveryId, delivery, client, title, dismiss, labels });
    }),
  );
}

function Delivery(props: {
  readonly delivery: DeliveryView;
  readonly client: DeliveryListProps['client'];
  readonly title: string;
  readonly dismiss: () => void;
  readonly labels: NonNullable<DeliveryListProps['labels']>;
}): ReactElement {
  const { delivery, client, title, dismiss, labels } = props;
  const { deliveryId, state, card, priority, text } = delivery;
  const mustShow = card && state !== 'delivered';
  useEffect(() => {
    if (mustShow) void client.shown(deliveryId).catch(() => undefined);
  }, [client, deliveryId, mustShow]);
  const isTold = state === 'delivered' || state === 'playing' || card;
  const wave = labels.dismiss ?? 'Dismiss';
  return h(
    'li',
    { 'data-part': 'result', 'data-state': state, 'data-priority': priority },
    h('strong', { 'data-part': 'title' }, title),
    ' ',
    h('span', { 'data-part': 'status' }, labels.state?.(delivery) ?? standing(delivery)),
    ' ',
    isTold
      ? h('p', { 'data-part': 'text' }, text)
      : h(
          'button',
          {
            type: 'button',
            'data-part': 'read',
            onClick: () => void client.shown(deliveryId).catch(() => undefined),
          },
          labels.read ?? 'Read it now',
        ),
    h(
      'button',
      {
        type: 'button',
        'data-part': 'dismiss',
        title: wave,
        'aria-label': `${wave}: ${title}`,
        onClick: dismiss,
      },
      wave,
    ),
  );
}

function standing({ state, grade, card }: DeliveryView): string {
  if (state === 'playing') return 'is being told';
  if (state === 'delivered') return grade === 'shown' || grade === 'read' ? 'read' : 'told';
  return card ? 'could not be told' : 'waits for a pause';
}
