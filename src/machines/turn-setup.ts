// The parts of the turn's statechart: the facts, the context, the effects, the guards and the actions.
//
// Owns:     the meaning of each fact, the comparisons in the guards, and the bookkeeping of responses and calls.
// Does not: decide when an action applies (turn-machine.ts).

import { and, assign, not, or, setup, stateIn } from 'xstate';
import { activities, effect, type Deadline, type EffectsOf, type Stamped } from './effect.ts';

/** A turn's options and time limits. */
export interface TurnInput {
  /**
   * Whether an offer waits until the model is available. If false, an offer is refused while either side is speaking.
   */
  readonly keepsOffers: boolean;
  /**
   * How a working tool affects the floor: it remains taken, the session is informed that the model is waiting, or the
   * turn counts as over.
   */
  readonly whileToolWorks: 'keeps_floor' | 'waits' | 'ends_turn';
  /** Whether the model answers the words that it hears without being asked. */
  readonly answersWords: boolean;
  /** Whether the model also answers the results of its calls without being asked. */
  readonly answersResults: boolean;
  readonly holdsFloorMs: number;
  readonly settleTimeoutMs: number;
  readonly replyTimeoutMs: number;
  /** The maximum number of times that the model is asked for the same reply. @defaultValue 3 */
  readonly maxAsked?: number;
  /** The maximum duration of a doubt while the user is speaking, in milliseconds. */
  readonly doubtMs: number;
  /** The maximum duration of a doubt after the user has stopped speaking, in milliseconds. */
  readonly falseInterruptionMs: number;
}

/** A current response of the model. */
export interface TurnResponse {
  /** The key of the request for the response; null if the model started the response on its own. */
  readonly key: string | null;
  /** Null if the response was requested but has not started yet. */
  readonly id: string | null;
  readonly says: 'reply' | 'offer';
  /** Whether the session has requested that the response be cancelled. */
  readonly isCancelled: boolean;
}

/** A call whose result the model receives as soon as the call ends. */
export interface AwaitedCall {
  readonly callId: string;
  /** The response that made the call. */
  readonly responseId: string;
  /**
   * The kind of that response. `delegation`: a task that the model has handed over; the calls for it are not known yet.
   */
  readonly of: 'reply' | 'offer' | 'delegation';
}

export interface TurnContext extends Required<TurnInput> {
  /** The utterances that have ended, but whose words or addressee are not known yet. */
  readonly unknown: readonly string[];
  /** The user's current or latest utterance. */
  readonly newest: string;
  /** The utterance that is in doubt. */
  readonly doubted: string | null;
  readonly responses: readonly TurnResponse[];
  readonly calls: readonly AwaitedCall[];
  /** The number of replies requested so far, from which the next key is formed. */
  readonly replies: number;
  readonly offer: { readonly generation: number; readonly key: string } | null;
  /** Whether the model has spoken or acted since the user started to speak. */
  readonly hasAnswered: boolean;
  /** Whether a reply was cut off for an urgent delivery. */
  readonly isOwed: boolean;
  /**
   * The responses that were in progress when a result arrived. Their speech does not count as an answer to the result.
   */
  readonly before: readonly string[];
  /** The number of requests since the latest reply became owed. */
  readonly asked: number;
  readonly settleBy: number;
  readonly doubtBy: number;
  readonly replyBy: number;
  readonly holdBy: number;
}

/** Facts at the time of an event that the chart cannot determine itself. */
export interface TurnNow extends Stamped {
  /** Whether the model can be asked, because it is connected and is not saying a filler. */
  readonly isFree: boolean;
}

/** The effect of the user's words on the paused speech. */
export type WordsRead = 'interrupts' | 'listens';

/** The likely source of an utterance's audio before its words are known: the model (`echo`) or a person. */
export type SoundRead = 'echo' | 'voice';

/** A fact about a spoken turn. */
export type TurnFact =
  | { readonly type: 'choose' }
  // The user
  | { readonly type: 'user.began'; readonly utteranceId: string }
  | { readonly type: 'user.ended'; readonly utteranceId: string }
  /** The words and their addressee are known, or the utterance has no words. */
  | { readonly type: 'user.understood'; readonly utteranceId: string }
  /** The client has left, so the user neither speaks nor listens. */
  | { readonly type: 'client.left' }
  /** The lost connection would have reported the words. */
  | { readonly type: 'user.lost' }
  | { readonly type: 'deadline.settle'; readonly dueAt: number }
  // The doubt
  /** The user is speaking while the model can be heard or is about to be heard. */
  | { readonly type: 'user.overlaps'; readonly utteranceId: string; readonly canPause: boolean }
  | { readonly type: 'user.worded'; readonly utteranceId: string; readonly reading: WordsRead }
  | { readonly type: 'user.sounded'; readonly utteranceId: string; readonly reading: SoundRead }
  /** The speech has stopped for another reason. */
  | { readonly type: 'speech.stopped' }
  /** The model has heard an interruption and has stopped on its own. */
  | { readonly type: 'model.stopped' }
  /** The words of the utterance will never arrive. */
  | { readonly type: 'doubt.lost' }
  | { readonly type: 'deadline.doubt'; readonly dueAt: number }
  // The model
  | { readonly type: 'response.started'; readonly key: string; readonly responseId: string }
  /** The model started a response without a request. */
  | { readonly type: 'response.began'; readonly responseId: string }
  | { readonly type: 'response.ended'; readonly responseId: string }
  /** The model has started to read the conversation for the requested response. */
  | { readonly type: 'request.read' }
  /**
   * The requested response is over. `continuesAs`: the id of the response in which the model continues. It is unknown
   * what this response is an answer to. `done`: the response ended normally. @defaultValue false
   */
  | { readonly type: 'request.ended'; readonly continuesAs: string | null; readonly done?: boolean }
  /** `responseId` is null if all responses were cancelled. */
  | { readonly type: 'response.cancelled'; readonly responseId: string | null }
  | { readonly type: 'responses.lost' }
  | { readonly type: 'model.working' }
  | { readonly type: 'model.idle' }
  | ({ readonly type: 'call.made' } & AwaitedCall)
  /** `respond`: the model should answer the result. */
  | { readonly type: 'call.answered'; readonly callId: string; readonly respond: boolean }
  /** The model no longer waits for the result. */
  | { readonly type: 'call.dropped'; readonly callId: string }
  | { readonly type: 'calls.lost' }
  // Offers of the outbox
  | { readonly type: 'offer.made'; readonly generation: number; readonly key: string }
  | { readonly type: 'offer.over'; readonly generation: number }
  // The floor
  /** The lead agent is about to speak. */
  | { readonly type: 'floor.taken' }
  /** An urgent item is waiting. */
  | { readonly type: 'urgent.waits' }
  | { readonly type: 'deadline.hold'; readonly dueAt: number }
  // Replies
  | { readonly type: 'reply.wanted' }
  /**
   * The user's words are addressed to the lead agent. `typed`: the user typed the words, so the voice model has not
   * heard them.
   */
  | { readonly type: 'reply.toWords'; readonly typed: boolean }
  /** The model's earlier speech does not answer the words that the user is starting to say. */
  | { readonly type: 'user.spoke' }
  /** The model is speaking or acting without a request, and this counts as the reply. */
  | { readonly type: 'model.spoke'; readonly responseId: string | null }
  /** The requested reply has failed and was not cancelled by the session. */
  | { readonly type: 'reply.failed' }
  | { readonly type: 'reply.cutOff' }
  /** The urgent item is over, so the reply that was cut off for it is due. */
  | { readonly type: 'urgent.over' }
  /** The new model does not answer the existing conversation without a request. */
  | { readonly type: 'reply.moved'; readonly wasReplying: boolean }
  | { readonly type: 'reply.forgotten' }
  | { readonly type: 'deadline.reply'; readonly dueAt: number };

/** The events of `turnMachine`. */
export type TurnEvent = TurnFact & TurnNow;

const effects = {
  /** Monitors the current utterance until it ends: `user.ended` follows. */
  watchSpeech: effect<object>(),
  unwatchSpeech: effect<object>(),
  /** The session stops waiting for the words of these utterances. */
  settled: effect<{ readonly utteranceIds: readonly string[] }>(),
  /** Pauses the speech. `resume` or `breakOff` follows, unless the speech stops for another reason. */
  pause: effect<object>(),
  resume: effect<object>(),
  /** Stops the speech permanently, because the user has interrupted it. */
  breakOff: effect<object>(),
  /** Requests a reply with this key. */
  reply: effect<{ readonly key: string }>(),
  /** Asks the model to deliver the offer, or to continue it. */
  tell: effect<{ readonly generation: number; readonly key: string }>(),
  /** Refuses an offer that arrived while a party was speaking. */
  refuse: effect<{ readonly generation: number }>(),
  /** A reply has replaced an offer that had already started. */
  brokenOff: effect<{ readonly generation: number }>(),
  /** Reminds the model of the owed reply, which was cut off. */
  remind: effect<object>(),
  /** A reply has become overdue and may be requested now. */
  overdue: effect<object>(),
  /** The lead agent has not replied to any of the requests. */
  unanswered: effect<object>(),
  /** The lead agent takes the floor. */
  take: effect<object>(),
  /** The model is waiting for a tool, and a due delivery may be spoken. */
  wait: effect<object>(),
  /** The lead agent's turn is over. */
  release: effect<object>(),
  /** Neither side is speaking or about to speak. */
  rest: effect<object>(),
};

/** The effects of `turnMachine`, each with its params. */
export type TurnEffects = EffectsOf<typeof effects>;

interface Args {
  readonly context: TurnContext;
  readonly event: TurnEvent;
}

const isDoubted = ({ context, event }: Args): boolean =>
  'utteranceId' in event && event.utteranceId === context.doubted;
const isRead =
  (reading: WordsRead | SoundRead) =>
  ({ context, event }: Args): boolean =>
    (event.type === 'user.worded' || event.type === 'user.sounded') &&
    event.utteranceId === context.doubted &&
    event.reading === reading;

export const turnSetup = setup({
  types: {
    input: {} as TurnInput,
    context: {} as TurnContext,
    events: {} as TurnEvent,
  },
  actions: {
    ...activities<Deadline>(),
    ...effects,
    expectReply: assign({ asked: 0, before: [] }),
    withResult: assign(({ context, event }) => {
      if (event.type !== 'call.answered') return {};
      const calledIn = context.calls.find(({ callId }) => callId === event.callId)?.responseId;
      const ids = context.responses.flatMap(({ id }) => id ?? []);
      return { asked: 0, before: ids.filter((id) => id !== calledIn) };
    }),
    noteAnswer: assign({ hasAnswered: true, before: [] }),
    countReply: assign(({ context }) => ({
      asked: context.asked + 1,
      replies: context.replies + 1,
    })),
    dropCall: assign(({ context, event }) => ({
      calls: context.calls.filter((call) => !('callId' in event) || call.callId !== event.callId),
    })),
    request: assign(({ context }, { key, says }: { key: string; says: 'reply' | 'offer' }) => ({
      responses: [...context.responses, { key, id: null, says, isCancelled: false }],
    })),
    keepOffer: assign(({ event }) =>
      event.type === 'offer.made'
        ? { offer: { generation: event.generation, key: event.key } }
        : {},
    ),
    endOffer: assign({ offer: null }),
  },
  guards: {
    isFree: ({ event }) => event.isFree,
    hasNoResponse: ({ context }) => context.responses.length === 0,
    hasNoCall: ({ context }) => context.calls.length === 0,
    hasNoCallOfOffer: ({ context }) => !context.calls.some(({ of }) => of === 'offer'),
    delegates: ({ context }) => context.calls.some(({ of }) => of === 'delegation'),
    answersWords: ({ context }) => context.answersWords,
    keepsOffers: ({ context }) => context.keepsOffers,
    keepsFloor: ({ context }) => context.whileToolWorks === 'keeps_floor',
    endsTurn: ({ context }) => context.whileToolWorks === 'ends_turn',
    answersResults: ({ context }) => context.answersResults,
    hasAnswered: ({ context }) => context.hasAnswered,
    /** Speech that was in progress when a result arrived does not answer that result. */
    answers: ({ context, event }) =>
      event.type === 'model.spoke' &&
      (event.responseId === null || !context.before.includes(event.responseId)),
    mayAskAgain: ({ context }) => context.asked < context.maxAsked,
    isDone: ({ event }) => event.type === 'request.ended' && event.done === true,
    /** The session cancelled the requested response. */
    isCalledOff: ({ context }) =>
      context.responses.some(({ key, isCancelled }) => key !== null && isCancelled),
    isReplying: ({ context }) => context.responses.some(({ says }) => says === 'reply'),
    isReplyLate: ({ context, event }) =>
      event.type === 'deadline.reply' && event.dueAt === context.replyBy,
    isHeldLong: ({ context, event }) =>
      event.type === 'deadline.hold' && event.dueAt === context.holdBy,
    isDoubted,
    isEcho: isRead('echo'),
    isVoice: isRead('voice'),
    interrupts: isRead('interrupts'),
    listens: isRead('listens'),
    /** Neither side is speaking or about to speak, and the model can be asked. */
    isOpen: and(['isFree', 'hasNoResponse', stateIn({ model: 'silent', user: 'silent' })]),
    isQuiet: and(['isOpen', 'hasNoCall']),
    mayReply: and(['isQuiet', or([stateIn({ reply: 'due' }), stateIn({ reply: 'overdue' })])]),
    mayTell: and(['isOpen', 'hasNoCallOfOffer', not(stateIn({ offer: 'none' })), not('mayReply')]),
    rests: and(['isQuiet', stateIn({ offer: 'none', reply: 'none' })]),
    /** The only reason not to request a response is that a tool is running. */
    onlyToolWorks: and([
      'isOpen',
      not('keepsFloor'),
      not('hasNoCall'),
      not('delegates'),
      stateIn({ offer: 'none' }),
      not(or([stateIn({ reply: 'expected' }), stateIn({ reply: 'overdue' })])),
    ]),
    refuses: and([not('keepsOffers'), not('isOpen')]),
    saysAtOnce: and([not('keepsOffers'), 'isOpen']),
  },
});
