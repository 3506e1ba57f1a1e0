// Explores every state of an approval whose call the user changes in words or makes lasting (QUESTION-13). Time stands
// still, except for the moments at which the question has been heard in full (1) and followed by other speech (2).

import {
  questionMachine,
  type QuestionEvent,
  type QuestionSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { FOLLOWED_AT, HEARD_AT, questionInput } from './question-check.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof questionMachine;
type ReadBack = Extract<QuestionEvent, { type: 'question.readBack' }>;
type Answer = Extract<QuestionEvent, { type: 'question.answer' }>;

/** The call that was put to the user last, and the yes that ended the question. */
interface Ghost {
  /** The number of the changed call that is read back, or 0 for the call as asked. */
  readonly change: number;
  /** The user has heard that call in full since it was put. */
  readonly isHeard: boolean;
  readonly isShown: boolean;
  readonly accepted: Answer | null;
}

const at = 0;
/** The call as asked, a changed call, and a lasting approval. */
const changes = [0, 1, 2];

/** A yes to each of these. */
const consents: readonly Answer[] = changes.flatMap((change) => [
  consent('speech', change),
  consent('typing', change),
  consent('button', change),
]);

function consent(channel: Answer['channel'], change: number): Answer {
  const utteranceStartedAt = channel === 'speech' ? HEARD_AT : null;
  return { type: 'question.answer', at, channel, utteranceStartedAt, decisive: false, change };
}

const named: Answer = {
  type: 'question.answer',
  at,
  channel: 'button',
  utteranceStartedAt: null,
  decisive: true,
};

const events: readonly QuestionEvent[] = [
  { type: 'question.granted', at, epoch: 1 },
  { type: 'question.shown', at, startsClock: true },
  { type: 'question.shown', at, startsClock: false },
  { type: 'question.playing', at },
  { type: 'question.heard', at, heardAt: HEARD_AT },
  { type: 'question.followed', at: FOLLOWED_AT },
  { type: 'question.readBack', at },
  ...changes.flatMap((change): QuestionEvent[] => [
    { type: 'question.readBack', at, change },
    { type: 'question.readBack', at: FOLLOWED_AT, after: 'reply', change },
  ]),
  { type: 'reply.ended', at },
  { type: 'question.hold', at, remindAt: 2 },
  { type: 'deadline.reminder', at: 2, dueAt: 2 },
  { type: 'client.attached', at },
  { type: 'client.detached', at },
  ...consents,
  named,
];

/** Explores an approval whose call is changed in words, or a faulty version of it. */
export function checkChangedCall(
  machine: Machine = questionMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'an approval whose call is changed',
    input: questionInput,
    onViolation,
    key: ({ value, context }: QuestionSnapshot) => {
      const { ever, dueAt: _, remainingMs: __, ...kept } = context;
      return [value, kept, ever?.heard];
    },
    events: () => events,
    ghost: {
      initial: { change: 0, isHeard: false, isShown: false, accepted: null },
      next(ghost, { event, outcome }, before, after) {
        if (outcome !== 'taken') return ghost;
        const isPutAnew = after.matches('presenting') && !before.matches('presenting');
        const known = isPutAnew ? { ...ghost, isHeard: false, isShown: false } : ghost;
        switch (event.type) {
          case 'question.readBack': {
            const { change = known.change, after: waits } = event as ReadBack;
            return waits === 'reply' && change === known.change
              ? known
              : { ...known, change, isHeard: false, isShown: false };
          }
          case 'reply.ended':
            return { ...known, isHeard: false, isShown: false };
          case 'question.heard':
            return { ...known, isHeard: true };
          case 'question.shown':
            return { ...known, isShown: true };
          case 'question.answer':
            return { ...known, accepted: event as unknown as Answer };
          default:
            return known;
        }
      },
    },
    invariants: {
      'QUESTION-13: a yes counts for the call that was put last': (_snapshot, ghost) =>
        ghost.accepted?.change === undefined || ghost.accepted.change === ghost.change,
      'QUESTION-13: a spoken yes counts once that call was heard': (_snapshot, ghost) =>
        ghost.accepted?.channel !== 'speech' || ghost.isHeard,
      'QUESTION-13: a button that names the arguments counts once the question was put': (
        snapshot,
      ) => !snapshot.matches('open') || snapshot.can(named),
    },
    reachable: {
      'the changed call is approved in speech': (_snapshot, { accepted }) =>
        accepted?.channel === 'speech' && accepted.change === 1,
      'an approval that lasts is given in speech': (_snapshot, { accepted }) =>
        accepted?.channel === 'speech' && accepted.change === 2,
      'the call as asked is approved after the change was dropped': (snapshot, { accepted }) =>
        accepted?.change === 0 && snapshot.context.change === 0,
    },
  });
}
