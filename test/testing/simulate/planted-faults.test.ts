// Tests the simulation itself. For each promise, a fault is planted in the runtime, and within a few seeds the
// simulation must find a promise that this fault breaks.

import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../src/index.ts';
import { ServiceLedger } from '../../../src/actors/subagents/service-ledger.ts';
import { SubagentTree } from '../../../src/actors/subagents/subagent-tree.ts';
import { Projection } from '../../../src/actors/session/state/projection.ts';
import { SessionRecords } from '../../../src/actors/session/state/session-records.ts';
import { LeadAgents } from '../../../src/actors/session/lead/lead-agents.ts';
import { SessionEffects } from '../../../src/actors/session/effects/session-effects.ts';
import { TextOutput } from '../../../src/actors/session/lead/text-output.ts';
import { TurnChart } from '../../../src/actors/session/lead/turn-chart.ts';
import { SessionUnit } from '../../../src/actors/session/unit/session-unit.ts';
import { SubagentWork } from '../../../src/actors/subagent/subagent-work.ts';
import { Subagent } from '../../../src/actors/subagent/subagent.ts';
import { Supervisor } from '../../../src/actors/admission/supervisor.ts';
import { WorldJournal } from '../../../src/testing/simulate/world-journal.ts';
import { defaultFaults, scriptedModel, simulateOnce } from '../../../src/testing/index.ts';
import type { SimulatedAppLike } from '../../../src/testing/simulate/log/app.ts';
import { defaultApp } from '../../../src/testing/simulate/default-app.ts';
import { Attempt } from '../../../src/voice/connection/attempt.ts';
import { Connection } from '../../../src/voice/connection/connection.ts';
import { Listening } from '../../../src/voice/turns/listening.ts';
import { Turns } from '../../../src/voice/turns/turns.ts';
import { faults as faultsOfTrees } from '../../support/tree-faults.ts';
import type { SpawnedEvent } from '../../../src/actors/subagent/subagent-events.ts';

interface Planted {
  readonly fault: string;
  readonly session: 'text' | 'voice';
  /** @defaultValue the app that all simulations use */
  readonly app?: SimulatedAppLike;
  /** The promises that the fault breaks. The first violation that the simulation finds must be one of them. */
  readonly breaks: readonly string[];
  /** The faults of the world that differ from `defaultFaults`. */
  readonly faults?: Partial<typeof defaultFaults>;
  /** The simulation finds the fault within this many seeds. @defaultValue `MOST_SEEDS` */
  readonly seeds?: number;
  /** Plants the fault and returns a function that removes it. */
  plant(): () => void;
}

/** Returns a fault from the tests of trees by name. */
function ofTrees(name: string, session: 'text' | 'voice', ...breaks: string[]): Planted {
  const fault = faultsOfTrees.find((one) => one.name === name);
  if (!fault) throw new Error(`There is no fault "${name}"`);
  return { fault: name, session, breaks, plant: fault.plant };
}

function patched(target: object, name: string, value: unknown): () => void {
  const right = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { configurable: true, writable: true, value });
  return () => {
    if (right) Object.defineProperty(target, name, right);
  };
}

/** A unit that ignores `delivery.told`, so that a delivery counts only once it has been heard. */
function withoutTold(take: SessionUnit['take']): SessionUnit['take'] {
  return function (this: SessionUnit, actor, event) {
    return event.type === 'delivery.told' ? null : take.call(this, actor, event);
  };
}

type Taken = Parameters<SessionUnit['take']>[1];

/** Changes the events that a session receives. */
function changedEvents(change: (unit: SessionUnit, event: Taken, actor: string) => object) {
  const { take } = SessionUnit.prototype;
  return patched(
    SessionUnit.prototype,
    'take',
    function (this: SessionUnit, ...[actor, event]: Parameters<typeof take>) {
      return take.call(this, actor, { ...event, ...change(this, event, actor) });
    },
  );
}

/** A shop whose user speaks a language that only a model can interpret, with a tool that takes four minutes. */
const shop: SimulatedAppLike = ({ environment: { scheduler } }) => ({
  agents: [
    {
      name: 'host',
      instructions: 'You are the host.',
      language: 'pt',
      tools: [
        defineTool({
          name: 'shopping',
          description: 'Buys something',
          parameters: z.object({ topic: z.string() }),
          execution: 'background',
        }),
        defineTool({
          name: 'survey',
          description: 'Surveys something',
          parameters: z.object({ topic: z.string() }),
          timeout: 300_000,
          execute: () =>
            new Promise((resolve) => scheduler.schedule(() => resolve('done'), 240_000)),
        }),
      ],
    },
  ],
  consentModel: scriptedModel([]),
  subagentConfigs: {
    shopping: {
      name: 'shopping',
      instructions: 'You buy what the user wants.',
      tools: {
        pay: {
          description: 'Pays',
          inputSchema: z.object({ count: z.number().int().min(1).max(9) }),
          needsApproval: true,
          // The user is asked about each payment.
          lasting: false,
          execute: () => 'paid',
        },
      },
      maxSteps: 5,
    },
  },
});

/** A shop whose user may agree to all further payments. */
const stall: SimulatedAppLike = () => ({
  agents: [
    {
      name: 'host',
      instructions: 'You are the host.',
      tools: [
        defineTool({
          name: 'shopping',
          description: 'Buys something',
          parameters: z.object({ topic: z.string() }),
          execution: 'background',
        }),
      ],
    },
  ],
  subagentConfigs: {
    shopping: {
      name: 'shopping',
      instructions: 'You buy what the user wants.',
      tools: {
        pay: {
          description: 'Pays',
          inputSchema: z.object({ count: z.number().int().min(1).max(9) }),
          needsApproval: true,
          lasting: { free: ['count'] },
          execute: () => 'paid',
        },
      },
      maxSteps: 5,
    },
  },
});

/** Changes or suppresses (`null`) the steps that a session takes for its events. */
function changedSteps(step: (unit: SessionUnit, actor: string, event: Taken) => Taken | null) {
  const { apply } = SessionUnit.prototype;
  return patched(
    SessionUnit.prototype,
    'apply',
    function (this: SessionUnit, ...[actor, event]: Parameters<typeof apply>) {
      const taken = step(this, actor, event);
      if (taken) apply.call(this, actor, taken);
    },
  );
}

const planted: readonly Planted[] = [
  {
    fault: 'a delivery is told while a channel is sending it',
    session: 'text',
    breaks: ['P4'],
    plant: () =>
      changedSteps((unit, actor, event) => {
        const deliveryId = actor.slice('reach:'.length);
        const { at } = event;
        const unclaim = { type: 'outbox.unclaim', deliveryId, at };
        if (event.type === 'reach.claimed') unit.apply('outbox', unclaim);
        return event;
      }),
  },
  {
    fault: 'a delivery is sent after the user has heard it',
    session: 'text',
    breaks: ['P4'],
    plant() {
      const { joined } = SessionEffects.prototype;
      const known = new Map<string, ReturnType<typeof joined>>();
      const undo = [
        changedSteps((_unit, _actor, event) => (event.type === 'reach.heard' ? null : event)),
        patched(SessionEffects.prototype, 'joined', function (this: SessionEffects, id: string) {
          const found = joined.call(this, id) ?? known.get(id);
          known.set(id, found);
          return found;
        }),
      ];
      return () => undo.forEach((each) => each());
    },
  },
  {
    fault: 'the last step of a delivery is followed by its first one',
    session: 'text',
    breaks: ['P4'],
    plant: () =>
      changedEvents((_, event) =>
        event.type === 'reach.ended' && 'next' in event && event.next === null
          ? { next: { step: 0, by: 'mail', afterMs: 0, dueAt: event.at + 1000 } }
          : {},
      ),
  },
  {
    fault: 'a message is not the same when it is sent again',
    session: 'text',
    breaks: ['P4'],
    plant() {
      const { joined } = SessionEffects.prototype;
      let times = 0;
      return patched(
        SessionEffects.prototype,
        'joined',
        function (this: SessionEffects, id: string) {
          const found = joined.call(this, id);
          return found && { ...found, text: `${found.text} ${(times += 1)}` };
        },
      );
    },
  },
  {
    fault: 'a time that was due is due again in the next process',
    session: 'text',
    breaks: ['P6'],
    plant: () =>
      changedSteps((unit, _actor, event) =>
        event.type === 'deadline.schedule' && unit.unit.isPaused ? null : event,
      ),
  },
  {
    fault: 'the words of a schedule are lost',
    session: 'text',
    breaks: ['P4'],
    plant: () =>
      changedSteps((_unit, actor, event) =>
        actor === 'notices' && 'label' in event && event.label === 'REMINDER' ? null : event,
      ),
  },
  {
    fault: 'a process forgets the schedules of the process before it',
    session: 'text',
    breaks: ['P9'],
    plant: () =>
      changedSteps((unit, _actor, event) =>
        event.type === 'schedule.set' && unit.unit.isPaused ? null : event,
      ),
  },
  {
    fault: 'an approval that was taken back still lasts',
    session: 'text',
    app: stall,
    breaks: ['P8'],
    plant: () => patched(SessionRecords.prototype, 'endLasting', () => {}),
  },
  {
    fault: 'a yes to one call lasts',
    session: 'text',
    app: stall,
    breaks: ['P3'],
    plant: () =>
      changedEvents((_, event) =>
        event.type === 'answer.given' && 'approved' in event && event.approved === true
          ? { lasts: 'session' }
          : {},
      ),
  },
  {
    fault: 'a call that a page has had is offered to another page',
    session: 'text',
    breaks: ['P6'],
    plant: () =>
      changedEvents((_, { type }) => (type === 'client.called' && { idempotent: true }) || {}),
  },
  {
    fault: 'a yes that only a model has read counts at once',
    session: 'text',
    app: shop,
    breaks: ['P3'],
    plant() {
      const { take } = SessionUnit.prototype;
      const answer = { approved: true, userResponse: 'sim' };
      return patched(
        SessionUnit.prototype,
        'take',
        function (this: SessionUnit, ...args: Parameters<typeof take>) {
          const taken = take.apply(this, args);
          // The unit has already computed the effect of the reading.
          return taken?.type === 'reading.ended' && 'gives' in taken && taken.gives === 'consent'
            ? { ...taken, gives: 'answer', reading: { to: 'question', decisive: false, answer } }
            : taken;
        },
      );
    },
  },
  {
    fault: 'the user changes the arguments of a call, which runs as it was',
    session: 'text',
    app: shop,
    breaks: ['P8'],
    plant() {
      const { receive } = Subagent.prototype;
      return patched(
        Subagent.prototype,
        'receive',
        function (this: Subagent, event: Parameters<typeof receive>[0]) {
          if (event.type !== 'question.answered') return receive.call(this, event);
          const { changed: _, ...answer } = event.answer;
          return receive.call(this, { ...event, answer });
        },
      );
    },
  },
  {
    fault: 'the rest of a request begins a second task',
    session: 'text',
    breaks: ['P6'],
    plant() {
      const right = Object.getOwnPropertyDescriptor(LeadAgents.prototype, 'steers');
      Object.defineProperty(LeadAgents.prototype, 'steers', {
        configurable: true,
        get: () => false,
      });
      return () => {
        if (right) Object.defineProperty(LeadAgents.prototype, 'steers', right);
      };
    },
  },
  {
    fault: 'the result of a detached call is lost',
    session: 'text',
    breaks: ['P4'],
    plant: () =>
      changedEvents((unit, { type }, actor) =>
        type === 'call.executed' && unit.runOf(actor.slice('call:'.length)) === 'detached'
          ? { known: true }
          : {},
      ),
  },
  {
    fault: 'words wait for a tool, however long it takes',
    session: 'text',
    app: shop,
    breaks: ['P10', 'LIVE'],
    plant: () =>
      changedEvents((_, { type }) => (type === 'call.validated' ? { detach: undefined } : {})),
  },
  {
    fault: 'whoever stops a task stops all',
    session: 'text',
    breaks: ['P5'],
    seeds: 500,
    plant() {
      const { cancel } = SubagentTree.prototype;
      return patched(
        SubagentTree.prototype,
        'cancel',
        function (this: SubagentTree, ...[id, requester, reason, by]: Parameters<typeof cancel>) {
          if (reason === 'The user stopped it')
            for (const other of this.live) cancel.call(this, other.id, requester, reason, by);
          return cancel.call(this, id, requester, reason, by);
        },
      );
    },
  },
  {
    fault: 'the words of the user reach a task twice',
    session: 'text',
    breaks: ['P6'],
    plant() {
      const { send } = SubagentTree.prototype;
      return patched(
        SubagentTree.prototype,
        'send',
        function (this: SubagentTree, ...[id, given, ...by]: Parameters<typeof send>) {
          send.call(this, id, { ...given, idempotencyKey: undefined }, ...by);
          return send.call(this, id, given, ...by);
        },
      );
    },
  },
  ofTrees('the ledger forgets what a tool returned', 'text', 'P1'),
  ofTrees('a question does not wait for the floor', 'text', 'P2'),
  ofTrees('a question keeps the floor when it is over', 'text', 'LIVE', 'P2'),
  ofTrees('an answer goes to the next question', 'text', 'P3'),
  ofTrees('a no is taken for a yes', 'text', 'P8', 'P3', 'P1'),
  {
    fault: 'what was said counts as heard, whether or not it was played',
    session: 'voice',
    breaks: ['P4'],
    plant() {
      const right = Object.getOwnPropertyDescriptor(Attempt.prototype, 'isHeard');
      Object.defineProperty(Attempt.prototype, 'isHeard', { configurable: true, get: () => true });
      return () => {
        if (right) Object.defineProperty(Attempt.prototype, 'isHeard', right);
      };
    },
  },
  {
    fault: 'what nobody acknowledges holds up all that comes after it',
    session: 'text',
    breaks: ['LIVE', 'P4'],
    plant() {
      // The output never learns that no client could see the text, and plays until its clock runs out.
      const { push } = TextOutput.prototype;
      const takeOut = [
        patched(
          TextOutput.prototype,
          'push',
          function (this: TextOutput, ...[part, fate]: Parameters<typeof push>) {
            push.call(this, part, fate && { seen: () => fate.seen() });
          },
        ),
        patched(SessionUnit.prototype, 'take', withoutTold(SessionUnit.prototype.take)),
      ];
      return () => takeOut.forEach((each) => each());
    },
  },
  {
    fault: 'whoever traces a session counts as its user',
    session: 'text',
    breaks: ['P4'],
    plant() {
      const { push } = TextOutput.prototype;
      return patched(
        TextOutput.prototype,
        'push',
        function (this: TextOutput, ...[part, fate]: Parameters<typeof push>) {
          push.call(this, part, null);
          fate?.seen();
        },
      );
    },
  },
  {
    fault: 'the client is not told to be silent when the user breaks in',
    session: 'voice',
    breaks: ['P5', 'P4'],
    plant() {
      const { emit } = Projection.prototype;
      return patched(
        Projection.prototype,
        'emit',
        function (this: Projection, ...args: Parameters<typeof emit>) {
          if (args[0].type !== 'playout.clear') emit.apply(this, args);
        },
      );
    },
  },
  ofTrees('a barge-in cancels all', 'voice', 'P5'),
  {
    fault: 'a tool that was being run at a crash is simply run again',
    session: 'text',
    breaks: ['P6'],
    plant() {
      const { restored } = SubagentWork.prototype;
      return patched(SubagentWork.prototype, 'restored', function (this: SubagentWork) {
        restored.call(this);
      });
    },
  },
  {
    fault: 'a slot is given to whoever asks',
    session: 'text',
    breaks: ['P7'],
    plant: () =>
      patched(
        Supervisor.prototype,
        'requestSlot',
        (_session: string, _id: string, _resumed: boolean, grant: () => void) => grant(),
      ),
  },
  ofTrees('the cascade is forgotten', 'text', 'P1'),
  {
    fault: 'what a child is answered goes to its parent',
    session: 'text',
    // A service examines no further events while its agent is waiting.
    breaks: ['LIVE', 'P3', 'P4'],
    plant() {
      const { start, receive } = Subagent.prototype;
      const known = new Map<string, { readonly subagent: Subagent; readonly parentId: string }>();
      const undo = [
        patched(Subagent.prototype, 'start', function (this: Subagent, spawned: SpawnedEvent) {
          known.set(this.id, { subagent: this, parentId: spawned.parentId ?? '' });
          start.call(this, spawned);
        }),
        patched(
          Subagent.prototype,
          'receive',
          function (this: Subagent, event: Parameters<typeof receive>[0]) {
            const parent = known.get(known.get(this.id)?.parentId ?? '')?.subagent;
            receive.call(event.type === 'question.answered' ? (parent ?? this) : this, event);
          },
        ),
      ];
      return () => undo.forEach((each) => each());
    },
  },
  {
    fault: 'a call that is made again after a crash starts another child',
    session: 'text',
    breaks: ['P6'],
    plant() {
      const { spawnFor } = SubagentTree.prototype;
      return patched(
        SubagentTree.prototype,
        'spawnFor',
        function (this: SubagentTree, ...[ports, request]: Parameters<typeof spawnFor>) {
          const { idempotencyKey: _, ...anew } = request;
          return spawnFor.call(this, ports, request.caller.subagentId === null ? request : anew);
        },
      );
    },
  },
  {
    fault: 'a service tells again after a crash',
    session: 'text',
    breaks: ['P4'],
    plant: () => patched(SessionUnit.prototype, 'hasPlace', () => true),
  },
  {
    fault: 'a program is told again after a crash',
    session: 'text',
    breaks: ['P4'],
    plant: () => patched(ServiceLedger.prototype, 'hasHad', () => false),
  },
  {
    fault: 'a model that goes on is told all that it knows',
    session: 'voice',
    breaks: ['LIVE'],
    plant: () => patched(Connection.prototype, 'isResumed', false),
  },
  {
    fault: 'a client that leaves in the middle of a turn leaves the turn as it is',
    session: 'voice',
    // The model never gives up the floor, so nothing is delivered and no service reads the events.
    breaks: ['LIVE', 'P4'],
    plant() {
      const { clientLeft } = Turns.prototype;
      return patched(Turns.prototype, 'clientLeft', function (this: Turns) {
        Object.defineProperty(this, 'next', { configurable: true, value: () => {} });
        clientLeft.call(this);
        Reflect.deleteProperty(this, 'next');
      });
    },
  },
  {
    fault: 'a television has the floor for as long as it is on',
    session: 'voice',
    app: (stage) => ({
      ...(typeof defaultApp === 'function' ? defaultApp(stage) : defaultApp),
      voice: { maxUtteranceMs: 1e9 },
    }),
    breaks: ['LIVE', 'P10'],
    plant: () => () => {},
  },
  {
    fault: 'a television takes the floor again as soon as it has lost it',
    session: 'voice',
    breaks: ['LIVE', 'P10'],
    plant() {
      const { handle } = Listening.prototype;
      return patched(
        Listening.prototype,
        'handle',
        function (this: Listening, event: Parameters<typeof handle>[0]) {
          if (event.type === 'utterance.started') this.reset();
          handle.call(this, event);
        },
      );
    },
  },
  {
    fault: 'a reply without a word counts as one',
    session: 'voice',
    breaks: ['P10'],
    // Models rarely stay silent, and when they do, another reply usually follows.
    faults: { 'lead.empty': { probability: 0.5, most: 20 } },
    plant() {
      const { send } = TurnChart.prototype;
      return patched(
        TurnChart.prototype,
        'send',
        function (this: TurnChart, fact: Parameters<typeof send>[0]) {
          if (fact.type === 'request.ended')
            send.call(this, { type: 'model.spoke', responseId: null });
          send.call(this, fact);
        },
      );
    },
  },
  {
    fault: 'a journal loses the end of what it has kept',
    session: 'text',
    // A process that resumes from an entry that is too early reuses a sequence number. The journal refuses that entry.
    breaks: ['LIVE', 'P9', 'P6', 'P1', 'P2', 'P3'],
    plant() {
      const { read } = WorldJournal.prototype;
      return patched(
        WorldJournal.prototype,
        'read',
        function (this: WorldJournal, ...args: Parameters<typeof read>) {
          return read.apply(this, args).slice(0, -3);
        },
      );
    },
  },
];

/** The default value of `seeds`. */
const MOST_SEEDS = 200;

test.each(planted)(
  'finds $fault',
  { timeout: 300_000 },
  async ({ session, app, breaks, faults, seeds = MOST_SEEDS, plant }) => {
    const takeOut = plant();
    let found: readonly string[] = [];
    try {
      for (let seed = 1; seed <= seeds && found.length === 0; seed += 1) {
        const { broken } = await simulateOnce(seed, {
          session,
          faults: { ...defaultFaults, ...faults },
          ...(app && { app }),
        });
        found = broken.map(({ promise }) => promise);
      }
    } finally {
      takeOut();
    }
    expect(breaks).toContain(found[0]);
  },
);
