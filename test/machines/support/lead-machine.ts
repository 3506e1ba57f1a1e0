// Stand-ins for what surrounds a session's machines: a lead agent with its voice model and the client's loudspeaker,
// and the mailbox through which its reports reach the session.

import { assign, setup } from 'xstate';

export interface LeadContext {
  /** The item that the lead agent is speaking, and the attempt. */
  readonly deliveryId: string;
  readonly generation: number;
}

/** The item of a reply that was not requested. */
export const REPLY = 'reply';

type LeadEvent =
  | ({ readonly type: 'offer' } & LeadContext)
  | { readonly type: 'reply' }
  | { readonly type: 'stop' }
  | { readonly type: 'begin' | 'finish' | 'fail' | 'lose' | 'return' };

/** A report that consists of one event for the outbox about the attempt and some events for the session. */
export interface LeadReport {
  readonly outbox?: string;
  readonly session: readonly string[];
}

const report = (session: readonly string[], outbox?: string) =>
  ({ type: 'report', params: { session, outbox } }) as const;

/** Speaks one item at a time, completely or in part, and reports it. */
export const leadMachine = setup({
  types: { context: {} as LeadContext, events: {} as LeadEvent },
  actions: {
    keep: assign(({ event }) =>
      event.type === 'offer'
        ? { deliveryId: event.deliveryId, generation: event.generation }
        : { deliveryId: REPLY, generation: 0 },
    ),
    report: (_args, _params: LeadReport) => {},
  },
}).createMachine({
  id: 'lead',
  context: { deliveryId: '', generation: 0 },
  initial: 'silent',
  states: {
    silent: {
      on: {
        offer: { target: 'asked', actions: ['keep', report(['response.requested'])] },
        reply: { target: 'asked', actions: ['keep', report(['response.requested'])] },
        lose: { target: 'lost', actions: report(['transport.lost']) },
      },
    },
    asked: {
      on: {
        begin: { target: 'speaking', actions: report(['playout.started'], 'delivery.playing') },
        fail: { target: 'silent', actions: report(['response.ended'], 'delivery.failed') },
        stop: { target: 'silent', actions: report(['response.ended'], 'delivery.interrupted') },
        lose: { target: 'lost', actions: report(['transport.lost'], 'delivery.interrupted') },
        // An item that is offered in the meantime is spoken instead.
        offer: { actions: 'keep' },
      },
    },
    speaking: {
      on: {
        finish: {
          target: 'silent',
          actions: report(['response.ended', 'playout.drained'], 'delivery.heard'),
        },
        stop: {
          target: 'silent',
          actions: report(['response.ended', 'playout.drained'], 'delivery.interrupted'),
        },
        lose: {
          target: 'lost',
          actions: report(['transport.lost', 'playout.drained'], 'delivery.interrupted'),
        },
        offer: { target: 'asked', actions: 'keep' },
      },
    },
    // The offer gets no response, and the outbox has to notice this without help.
    lost: { on: { return: 'silent' } },
  },
});

/** Events that are received and handled together. */
export type Letter = readonly {
  readonly to: string;
  readonly event: { readonly type: string; readonly [detail: string]: unknown };
}[];

/** Delivers messages later, in the order in which they were sent. */
export const mailboxMachine = setup({
  types: {
    context: {} as { readonly letters: readonly Letter[] },
    events: {} as { readonly type: 'post'; readonly letter: Letter } | { readonly type: 'deliver' },
  },
  actions: { deliver: (_args, _params: { readonly letter: Letter }) => {} },
}).createMachine({
  id: 'mailbox',
  context: { letters: [] },
  on: {
    post: {
      actions: assign(({ context, event }) => ({ letters: [...context.letters, event.letter] })),
    },
    deliver: {
      guard: ({ context }) => context.letters.length > 0,
      actions: [
        { type: 'deliver', params: ({ context }) => ({ letter: context.letters[0] ?? [] }) },
        assign(({ context }) => ({ letters: context.letters.slice(1) })),
      ],
    },
  },
});
