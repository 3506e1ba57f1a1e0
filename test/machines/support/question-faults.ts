// Faults planted in a question, each with the property that must catch it.

import { assign } from 'xstate';
import {
  questionMachine,
  type QuestionEvent,
  type QuestionSnapshot,
} from '../../../src/machines/index.ts';
import { readingDoes } from '../../../src/machines/question-machine.ts';
import { candidates, forget, mutate, provide, stateOf, without, type Fault } from './mutate.ts';

type Machine = typeof questionMachine;
type Args = Pick<QuestionSnapshot, 'context'>;
type Answer = Extract<QuestionEvent, { type: 'question.answer' }>;
type Ended = Extract<QuestionEvent, { type: 'reading.ended' }>;
type Settlement = Extract<QuestionEvent, { type: 'question.settle' }>;

const ends = ['answered', 'expired', 'withdrawn', 'superseded'] as const;

/** The question never does this when it ends. */
function never(action: 'release' | 'retract' | 'reply'): Machine {
  return mutate(questionMachine, (chart) => {
    for (const end of ends) {
      const state = stateOf(chart, end);
      state.entry = without(state.entry, action);
    }
  });
}

export const neverReleased = never('release');
export const neverRetracted = never('retract');
export const neverReplied = never('reply');

/** A question beside the floor is put to the session's user, and waits until it is heard. */
export const besidePresented: Machine = mutate(questionMachine, (chart) => {
  stateOf(chart, 'queued').on['question.opened'] = 'presenting';
});

/** An utterance also counts after something else was spoken. */
export const followedCounts: Machine = provide(questionMachine, 'guards', {
  mayAnswerOpen: (
    { context: { playingSince, heard, heardAt = -Infinity } }: Args,
    { channel, utteranceStartedAt, decisive }: Answer,
  ) =>
    channel !== 'speech' ||
    (playingSince !== null &&
      utteranceStartedAt !== null &&
      utteranceStartedAt >= playingSince &&
      (decisive || (heard && heardAt <= utteranceStartedAt))),
});

/** The guard with a different rule for the utterances that answer the question. */
const ifRead =
  (answers: (context: QuestionSnapshot['context'], ended: Ended) => boolean) =>
  ({ context }: Args, { event, does }: { event: Ended; does: string }) =>
    does === 'answers' ? answers(context, event) : readingDoes(context, event) === does;

/** Faults of a question that opens beside the floor. */
export const besideFaults: readonly Fault<Machine>[] = [
  {
    fault: 'a question beside the floor is said',
    machine: mutate(questionMachine, (chart) => {
      stateOf(chart, 'queued').on['question.opened'] = { target: 'open', actions: 'present' };
    }),
    property: 'QUESTION-14: opened beside the floor, its clock runs at once, and nothing is said',
  },
  {
    fault: 'a question beside the floor waits for a screen',
    machine: besidePresented,
    property: 'QUESTION-14: opened beside the floor, its clock runs at once, and nothing is said',
  },
];

export const questionFaults: readonly Fault<Machine>[] = [
  {
    fault: 'the release is forgotten',
    machine: neverReleased,
    property:
      'QUESTION-5: its end gives the floor back, takes it from the outbox and tells the asker, once',
  },
  {
    fault: 'it never expires',
    machine: mutate(questionMachine, (chart) => forget(stateOf(chart, 'open'), 'deadline.answer')),
    property: 'open ends by a deadline',
  },
  {
    fault: 'the clock starts before it was heard',
    machine: mutate(questionMachine, (chart) => {
      const { entry, invoke, on } = stateOf(chart, 'open');
      const presenting = stateOf(chart, 'presenting');
      presenting.entry = [presenting.entry, entry].flat();
      presenting.invoke = invoke;
      presenting.on['deadline.answer'] = on['deadline.answer'];
    }),
    property: 'QUESTION-4: the clock starts in open and stands still outside',
  },
  {
    fault: 'the clock starts when it is shown, though it will be said',
    machine: mutate(questionMachine, (chart) => {
      const { on } = stateOf(chart, 'presenting');
      const [starts] = candidates(on['question.shown']);
      on['question.shown'] = { ...starts, guard: undefined };
    }),
    property: 'QUESTION-4: it starts when heard, or when shown and that is all it gets',
  },
  {
    fault: 'the clock goes on while nobody is there',
    machine: mutate(questionMachine, (chart) => forget(stateOf(chart, 'open'), 'client.detached')),
    property: 'the user comes back with no time left',
  },
  {
    fault: 'a deadline of an earlier presentation counts',
    machine: provide(questionMachine, 'guards', { isThisDeadline: () => true }),
    property: 'QUESTION-4: a deadline that is not the armed one is ignored',
  },
  {
    fault: 'an answer to a closed question counts',
    machine: mutate(questionMachine, (chart) => {
      stateOf(chart, 'expired').on['question.answer'] = 'answered';
    }),
    property: 'nothing leaves a final state',
  },
  {
    fault: 'an answer before it was put to the user counts',
    machine: mutate(questionMachine, (chart) => {
      stateOf(chart, 'queued').on['question.answer'] = 'answered';
    }),
    property: 'QUESTION-1: nothing answers it before it was put to the user',
  },
  {
    fault: 'speech that began before it counts',
    machine: provide(questionMachine, 'guards', {
      mayAnswerOpen: ({ context }: Args, { channel, decisive }: Answer) =>
        channel !== 'speech' || (context.playingSince !== null && (decisive || context.heard)),
    }),
    property: 'QUESTION-2: what was said before it played does not answer it',
  },
  {
    fault: 'any words that interrupt it count',
    machine: provide(questionMachine, 'guards', {
      mayAnswerNow: ({ context }: Args, { channel, utteranceStartedAt }: Answer) =>
        channel === 'speech'
          ? context.playingSince !== null && (utteranceStartedAt ?? -1) >= context.playingSince
          : context.playingSince !== null || context.shownAt !== null,
    }),
    property: 'QUESTION-3: speech that begins before it was heard is decisive',
  },
  {
    fault: 'any words that interrupt a card that is read aloud count',
    machine: provide(questionMachine, 'guards', {
      mayAnswerOpen: ({ context }: Args, { channel, utteranceStartedAt }: Answer) =>
        channel !== 'speech' ||
        (context.playingSince !== null && (utteranceStartedAt ?? -1) >= context.playingSince),
    }),
    property: 'QUESTION-3: speech that begins before it was heard is decisive',
  },
  {
    fault: 'put anew, words that are still read count no more',
    machine: provide(questionMachine, 'guards', {
      maySettle: ({ context }: Args, { channel, saidAt, decisive }: Settlement) =>
        channel === 'speech'
          ? context.playingSince !== null &&
            context.playingSince <= saidAt &&
            (decisive || context.heard)
          : Math.min(context.shownAt ?? Infinity, context.playingSince ?? Infinity) <= saidAt,
    }),
    property: 'QUESTION-9: words that began after it was first put settle it, and no others',
  },
  {
    fault: 'words that are still read count no more once the user has gone',
    machine: mutate(questionMachine, (chart) =>
      forget(stateOf(chart, 'parked'), 'question.settle'),
    ),
    property: 'QUESTION-9: words that began after it was first put settle it, and no others',
  },
  {
    fault: 'a yes to the question of the lead agent counts',
    machine: followedCounts,
    property: 'QUESTION-10: no words answer it once something else was said',
  },
  {
    fault: 'words that interrupt it count once all of it was played',
    machine: provide(questionMachine, 'guards', {
      mayAnswerOpen: ({ context }: Args, { channel, utteranceStartedAt, decisive }: Answer) =>
        channel !== 'speech' ||
        (context.playingSince !== null &&
          (utteranceStartedAt ?? -1) >= context.playingSince &&
          (utteranceStartedAt ?? -1) < (context.followedAt ?? Infinity) &&
          (decisive || context.heard)),
    }),
    property: 'QUESTION-3: speech that begins before it was heard is decisive',
  },
  {
    fault: 'put again, it stays followed',
    machine: provide(questionMachine, 'guards', {
      isSaidAnew: ({ context }: Args) => context.playingSince === null,
    }),
    property: 'QUESTION-10: it can always be put again',
  },
  {
    fault: 'read back after the reply, it is never said',
    machine: mutate(questionMachine, (chart) => forget(stateOf(chart, 'open'), 'reply.ended')),
    property: 'QUESTION-6: what waits for the end of a reply is read back',
  },
  {
    fault: 'read back, what was heard before counts on',
    machine: provide(questionMachine, 'actions', { forgetHearing: () => {} }),
    property: 'QUESTION-6: read back, it stays as it is but for what was heard of it',
  },
  {
    fault: 'read back, its time begins anew',
    machine: mutate(questionMachine, (chart) => {
      const { on } = stateOf(chart, 'open');
      on['question.readBack'] = 'presenting';
    }),
    property: 'QUESTION-6: read back, it stays as it is but for what was heard of it',
  },
  {
    fault: 'it is asked again without end',
    machine: provide(questionMachine, 'guards', {
      mayNudge: ({ context }: Args) => context.heard && (context.nudges ?? 0) < 3,
    }),
    property: 'QUESTION-8: it is asked again twice at most',
  },
  {
    fault: 'it is asked again before it was heard',
    machine: provide(questionMachine, 'guards', {
      mayNudge: ({ context }: Args) => (context.nudges ?? 0) < 2,
    }),
    property: 'QUESTION-8: it is asked again while it is open and was heard, and stays as it is',
  },
  {
    fault: 'nobody asks again what the user wanted to hear once more',
    machine: provide(questionMachine, 'actions', { forgetNudges: () => {} }),
    property: 'QUESTION-8: the count begins anew when it is put anew or the user asks for it',
  },
  {
    fault: 'it is never asked again',
    machine: mutate(questionMachine, (chart) => forget(stateOf(chart, 'open'), 'question.nudge')),
    property: 'QUESTION-8: a question that nobody answers can be asked again',
  },
  {
    fault: 'a card that is read aloud cannot be answered aloud',
    machine: mutate(questionMachine, (chart) => forget(stateOf(chart, 'open'), 'question.playing')),
    property: 'QUESTION-1: that it plays or was heard is never missed',
  },
];

/** Faults in how a call that the user changes in words is handled. */
export const changedCallFaults: readonly Fault<typeof questionMachine>[] = [
  {
    fault: 'a yes to the call as asked runs the changed call',
    machine: provide(questionMachine, 'actions', { noteChange: () => {} }),
    property: 'QUESTION-13: a yes counts for the call that was put last',
  },
  {
    fault: 'a yes to a changed call counts after it was dropped',
    machine: provide(questionMachine, 'guards', {
      mayAnswerOpen: ({ context }: Args, { channel, change }: Answer) =>
        channel === 'button' && (change ?? Infinity) >= (context.change ?? 0),
    }),
    property: 'QUESTION-13: a yes counts for the call that was put last',
  },
  {
    fault: 'a changed call runs without its read-back',
    machine: mutate(questionMachine, (chart) => {
      const { on } = stateOf(chart, 'open');
      on['question.readBack'] = {
        actions: { type: 'noteChange', params: ({ event }: { event: unknown }) => event },
      };
    }),
    property: 'QUESTION-13: a spoken yes counts once that call was heard',
  },
  {
    fault: 'a yes to a changed call gives an approval that lasts',
    machine: provide(questionMachine, 'actions', {
      noteChange: assign(({ event }: { event: { readonly change?: number } }) =>
        event.change === undefined
          ? {}
          : {
              change: event.change,
              ...(event.change < 2 && { playingSince: null, heard: false, heardAt: undefined }),
            },
      ),
    }),
    property: 'QUESTION-13: a spoken yes counts once that call was heard',
  },
  {
    fault: 'a late yes to the call as asked runs the changed call',
    machine: provide(questionMachine, 'actions', {
      noteChange: assign(({ event }: { event: { readonly change?: number } }) =>
        event.change === undefined ? {} : { change: event.change },
      ),
    }),
    property: 'QUESTION-13: a spoken yes counts once that call was heard',
  },
];

/** Faults that involve a model's interpretations. */
export const readingFaults: readonly Fault<Machine>[] = [
  {
    fault: 'a late yes counts',
    machine: provide(questionMachine, 'guards', {
      ifRead: ifRead(
        (context, ended) => readingDoes({ ...context, readBy: Infinity }, ended) === 'answers',
      ),
    }),
    property: 'QUESTION-11: only the reading that it waits for answers it, in time',
  },
  {
    fault: 'a reading of the first of two utterances counts',
    machine: provide(questionMachine, 'guards', {
      ifRead: ifRead((context, ended) => {
        const utteranceId = context.words?.utteranceId ?? '';
        return readingDoes(context, { ...ended, utteranceId }) === 'answers';
      }),
    }),
    property: 'QUESTION-11: only the reading that it waits for answers it, in time',
  },
  {
    fault: 'a yes that only a model read counts without being read back',
    machine: provide(questionMachine, 'guards', {
      ifRead: ifRead(
        (context, ended) => readingDoes({ ...context, isAffirmed: true }, ended) === 'answers',
      ),
    }),
    property: 'QUESTION-12: a yes that only a model read answers it only after it was read back',
  },
  {
    fault: 'a yes that only a model read counts before the reading back is said',
    machine: provide(questionMachine, 'guards', {
      ifRead: ifRead(
        (context, ended) =>
          readingDoes({ ...context, followedAt: null, playingSince: -1 }, ended) === 'answers',
      ),
    }),
    property: 'QUESTION-12: read words answer it only if it was the last thing said',
  },
  {
    fault: 'words that a model passes on end a hold',
    machine: provide(questionMachine, 'guards', {
      ifRead: ({ context }: Args, { event, does }: { event: Ended; does: string }) =>
        readingDoes({ ...context, remindAt: 0 }, event) === does,
    }),
    property: 'QUESTION-11: a hold goes on after words that a model passes on',
  },
  {
    fault: 'a model that never answers keeps the words',
    machine: mutate(questionMachine, (chart) => {
      forget(stateOf(chart, 'reading'), 'deadline.reading');
    }),
    property: 'reading ends by a deadline',
  },
];
