// Faults that are planted in the runtime one at a time, to verify that the checks on the trees find them.

import { SubagentRegistry } from '../../src/actors/subagents/subagent-registry.ts';
import { Cascade, SubagentHost } from '../../src/actors/subagents/subagent-host.ts';
import { Messages } from '../../src/actors/subagents/messages.ts';
import { SubagentTree } from '../../src/actors/subagents/subagent-tree.ts';
import { Waits } from '../../src/actors/subagents/waits.ts';
import { SessionUnit } from '../../src/actors/session/unit/session-unit.ts';
import { UserInput } from '../../src/actors/session/questions/user-input.ts';
import { Subagent } from '../../src/actors/subagent/subagent.ts';
import { SubagentLog } from '../../src/actors/subagent/subagent-log.ts';
import { Supervisor } from '../../src/actors/admission/supervisor.ts';
import type { Answer } from '../../src/actors/contracts/records.ts';
import type { Scene } from './tree-story.ts';
import { Budget, Budgets } from '../../src/actors/admission/budget.ts';

export interface Fault {
  readonly name: string;
  readonly scene: Scene;
  /** The first broken promise that the checks report must be one of these. */
  readonly breaks: readonly string[];
  /** Plants the fault and returns a function that removes it. */
  plant(): () => void;
}

/** Replaces a method and returns a function that restores it. */
function replace<T extends object, K extends keyof T>(
  target: T,
  name: K,
  make: (right: T[K]) => T[K],
): () => void {
  const right = target[name];
  target[name] = make(right);
  return () => {
    target[name] = right;
  };
}

/** Returns a function that returns true on every `times`-th call. */
function every(times: number): () => boolean {
  let count = 0;
  return () => {
    count += 1;
    return count % times === 0;
  };
}

export const faults: readonly Fault[] = [
  {
    name: 'a slot is released twice',
    scene: 'program',
    breaks: ['P7'],
    plant() {
      let last: string | null = null;
      return replace(
        SubagentHost.prototype,
        'releaseSlot',
        (right) =>
          function (this: SubagentHost, id) {
            right.call(this, id);
            if (last !== null) right.call(this, last);
            last = id;
          },
      );
    },
  },
  {
    name: 'who waits for children keeps its slot',
    scene: 'program',
    // A subagent that is waiting for a slot never ends if no slot becomes free.
    breaks: ['P7', 'P1'],
    plant() {
      const subagents = new Map<string, Subagent>();
      const undo = [
        replace(
          Subagent.prototype,
          'start',
          (right) =>
            function (this: Subagent, spawned) {
              subagents.set(this.id, this);
              right.call(this, spawned);
            },
        ),
        replace(
          SubagentHost.prototype,
          'releaseSlot',
          (right) =>
            function (this: SubagentHost, id) {
              if (subagents.get(id)?.state !== 'waiting_for_children') right.call(this, id);
            },
        ),
      ];
      return () => undo.forEach((each) => each());
    },
  },
  {
    name: 'who has ended keeps its place',
    scene: 'program',
    breaks: ['P7'],
    plant: () => replace(Supervisor.prototype, 'ended', () => () => {}),
  },
  {
    name: 'one more may live than the limit says',
    scene: 'program',
    breaks: ['P7'],
    plant: () =>
      replace(
        Supervisor.prototype,
        'open',
        (right) =>
          function (this: Supervisor, id, limits) {
            right.call(this, id, { ...limits, maxLivePerSession: limits.maxLivePerSession + 1 });
          },
      ),
  },
  {
    name: 'a budget is never used up',
    scene: 'program',
    breaks: ['P7'],
    plant: () => replace(Budget.prototype, 'usedUp', () => () => null),
  },
  {
    name: 'what a budget has reserved is not given back',
    scene: 'program',
    breaks: ['P7'],
    plant: () => replace(Budgets.prototype, 'ended', () => () => {}),
  },
  {
    name: 'a grace is not called off',
    scene: 'program',
    breaks: ['P7'],
    plant: () => replace(Cascade.prototype, 'ended', () => () => {}),
  },
  {
    name: 'what was delivered is kept for ever',
    scene: 'program',
    breaks: ['P7'],
    plant: () => replace(SubagentRegistry.prototype, 'markDelivered', () => () => {}),
  },
  {
    name: 'the cascade is forgotten',
    scene: 'program',
    breaks: ['P1'],
    plant: () => replace(Cascade.prototype, 'begin', () => () => {}),
  },
  {
    name: 'an end is told twice',
    scene: 'program',
    breaks: ['P1'],
    plant: () =>
      replace(
        SubagentHost.prototype,
        'emit',
        (right) =>
          function (this: SubagentHost, record, body) {
            right.call(this, record, body);
            if (body.type === 'ended') right.call(this, record, body);
          },
      ),
  },
  {
    name: 'a receipt is dropped',
    scene: 'program',
    breaks: ['P1'],
    plant() {
      const isDropped = every(3);
      return replace(
        Messages.prototype,
        'settle',
        (right) =>
          function (this: Messages, ids, receipt) {
            if (!isDropped()) right.call(this, ids, receipt);
          },
      );
    },
  },
  {
    name: 'a message has two receipts',
    scene: 'program',
    breaks: ['P1'],
    plant: () =>
      replace(
        SubagentHost.prototype,
        'tell',
        (right) =>
          function (this: SubagentHost, subagent, news) {
            right.call(this, subagent, news);
            if (news.type === 'message.applied') right.call(this, subagent, news);
          },
      ),
  },
  {
    name: 'a wait is never settled',
    scene: 'program',
    breaks: ['P1'],
    plant: () =>
      replace(
        Waits.prototype,
        'end',
        (right) =>
          function (this: Waits, wait, why) {
            if (why === 'cancelled') right.call(this, wait, why);
          },
      ),
  },
  {
    name: 'the ledger forgets what a tool returned',
    scene: 'program',
    breaks: ['P1'],
    plant() {
      const isForgotten = every(3);
      return replace(
        SubagentLog.prototype,
        'settled',
        (right) =>
          function (this: SubagentLog, callId, outcome) {
            if (!isForgotten()) right.call(this, callId, outcome);
          },
      );
    },
  },
  {
    name: 'denials are not inherited',
    scene: 'program',
    breaks: ['P8'],
    plant: () =>
      replace(
        SubagentRegistry.prototype,
        'add',
        (right) =>
          function (this: SubagentRegistry, record) {
            Object.assign(record.admission, { denied: new Set() });
            right.call(this, record);
          },
      ),
  },
  {
    name: 'a grant of few tools is one of all',
    scene: 'program',
    breaks: ['P8'],
    plant: () =>
      replace(
        SubagentTree.prototype,
        'spawnFor',
        (right) =>
          function (this: SubagentTree, ports, { grant, ...request }) {
            const { tools: _, ...rest } = grant ?? {};
            const isByModel = request.caller.subagentId !== null && grant !== undefined;
            const all = isByModel
              ? { ...request, grant: rest }
              : { ...request, ...(grant ? { grant } : {}) };
            return right.call(this, ports, all);
          },
      ),
  },
  {
    name: 'everybody sees everybody',
    scene: 'program',
    breaks: ['P8'],
    plant: () =>
      replace(
        SubagentRegistry.prototype,
        'seenBy',
        () =>
          function (this: SubagentRegistry, _requester, id) {
            return this.get(id);
          },
      ),
  },
  {
    name: 'an answer goes to the next question',
    scene: 'text',
    breaks: ['P3'],
    plant() {
      let kept: Answer | null = null;
      return replace(
        Subagent.prototype,
        'receive',
        (right) =>
          function (this: Subagent, event) {
            if (event.type !== 'question.answered') {
              right.call(this, event);
              return;
            }
            const answer = kept ?? event.answer;
            kept = event.answer;
            right.call(this, { ...event, answer });
          },
      );
    },
  },
  {
    name: 'a no is taken for a yes',
    scene: 'text',
    breaks: ['P3'],
    plant: () =>
      replace(
        Subagent.prototype,
        'receive',
        (right) =>
          function (this: Subagent, event) {
            const isNo = event.type === 'question.answered' && event['approved'] === false;
            right.call(this, isNo ? { ...event, approved: true } : event);
          },
      ),
  },
  {
    name: 'a click too late counts',
    scene: 'text',
    breaks: ['P3'],
    plant: () =>
      replace(
        UserInput.prototype,
        'answered',
        (right) =>
          function (this: UserInput, ticket) {
            right.call(this, ticket, { accepted: true });
          },
      ),
  },
  {
    name: 'a question keeps the floor when it is over',
    scene: 'text',
    breaks: ['P2'],
    plant() {
      const isForgotten = every(2);
      return replace(
        SessionUnit.prototype,
        'route',
        (right) =>
          function (this: SessionUnit, posted) {
            const isRelease = posted.effect.kind === 'do' && posted.effect.name === 'release';
            return isRelease && isForgotten() ? [] : right.call(this, posted);
          },
      );
    },
  },
  {
    name: 'a question does not wait for the floor',
    scene: 'text',
    breaks: ['P2'],
    plant: () =>
      replace(
        SessionUnit.prototype,
        'apply',
        (right) =>
          function (this: SessionUnit, actor, event) {
            right.call(this, actor, event);
            if (actor !== 'questions') return;
            const { requestId } = event as never as { readonly requestId: string };
            const granted = { type: 'question.granted', epoch: 1, at: event.at };
            if (this.take(`question:${requestId}`, granted))
              this.apply(`question:${requestId}`, granted);
          },
      ),
  },
  {
    name: 'a barge-in cancels all',
    scene: 'voice',
    breaks: ['P5'],
    plant: () =>
      replace(
        Subagent.prototype,
        'start',
        (right) =>
          function (this: Subagent, spawned) {
            Object.assign(this, { definition: { ...this.definition, onBargeIn: 'cancel' } });
            right.call(this, spawned);
          },
      ),
  },
];
