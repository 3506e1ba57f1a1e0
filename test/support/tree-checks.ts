// The invariants of a tree of subagents, both at every moment and at the end of the tree: P1, P7, P8, and that no
// subagent was cancelled without a reason (P5).

import type { SubagentChunk } from '../../src/entries/subagents.ts';
import type { Runtime } from '../../src/index.ts';
import type { Supervisor } from '../../src/actors/admission/supervisor.ts';
import type { Person, Stage } from './tree-stage.ts';
import { Budgets } from '../../src/actors/admission/budget.ts';

/** Tools that the runtime adds to each spawned subagent, and which the checks do not watch. */
const RUNTIMES_OWN = new Set([
  'ask_user',
  'not_for_me',
  'request_input',
  'complete_task',
  'report_progress',
]);

/** The number of tokens that one call to the scripted model uses. */
const CALL_TOKENS = 15;

export class TreeChecks {
  readonly #stage: Stage;
  readonly #supervisor: Supervisor;
  /** The subagents that have a run slot according to their grants. */
  readonly #holders = new Set<string>();
  readonly #budgets = new Set<Budgets>();
  readonly #stopWatching: () => void;

  constructor(stage: Stage, { supervisor }: Runtime) {
    this.#stage = stage;
    this.#supervisor = supervisor;
    this.#watchSlots();
    this.#stopWatching = this.#watchBudgets();
  }

  /** Handles a chunk of a subagent. */
  on(chunk: SubagentChunk): void {
    const stage = this.#stage;
    const { subagentId: id } = chunk;
    if (chunk.type === 'spawned') {
      this.#spawned(chunk);
      return;
    }
    const person = stage.people.get(id);
    if (!person) {
      stage.expect(false, 'P1', () => `${chunk.type} of ${id}, whom nobody has spawned`);
      return;
    }
    stage.expect(person.outcome === null, 'P1', () => `${chunk.type} of ${id} after its end`);
    if (chunk.type === 'ended') this.#ended(person, chunk);
    else if (chunk.type === 'message.sent' && chunk.mode !== null) {
      const { messageId } = chunk;
      // A subagent that is ending at this moment may already have refused the message.
      const known = stage.sent.get(messageId);
      stage.sent.set(messageId, { to: id, messageId, receipts: known?.receipts ?? 0 });
      stage.count('messages sent');
    } else if (chunk.type === 'message.applied' || chunk.type === 'message.refused') {
      const { messageId } = chunk;
      const sent = stage.sent.get(messageId) ?? { to: id, messageId, receipts: 0 };
      sent.receipts += 1;
      stage.sent.set(messageId, sent);
      stage.count(chunk.type);
      stage.expect(sent.receipts === 1, 'P1', () => `${messageId} has ${sent.receipts} receipts`);
    } else if (chunk.type === 'hung') {
      stage.count('hung');
      if (stage.story.nodes[person.node]?.config.onHung === 'cancel') person.blamed.add('hung');
    } else if (chunk.type === 'progress') stage.count('notes');
    else if (chunk.type === 'input.settled') stage.count(`inputs ${chunk.how}`);
  }

  /** Checks an idle tree. */
  check(): void {
    const stage = this.#stage;
    const { limits } = stage.story;
    const live = [...stage.service.live];
    const running = live.filter(({ state }) => state === 'running');
    stage.expect(running.length <= limits.running, 'P7', () => `${running.length} run`);
    for (const { id, state } of live) {
      const holds = this.#holders.has(id);
      if (state === 'running') stage.expect(holds, 'P7', () => `${id} runs without a slot`);
      if (state === 'waiting_for_input' || state === 'waiting_for_children') {
        stage.count(state);
        stage.expect(!holds, 'P7', () => `${id} is ${state} and holds a slot`);
      }
    }
    stage.expect(
      live.length === stage.live.length,
      'P1',
      () => `${live.length} live, and ${stage.live.length} were not said to have ended`,
    );
    if (stage.isPrompt)
      for (const { id, by } of stage.live)
        stage.expect(by === null || stage.isLive(by), 'P1', () => `${id} outlives ${by}`);
    this.#checkBudgets();
  }

  /** Stops watching. */
  stop(): void {
    this.#stopWatching();
  }

  /** Checks the tree after all subagents have ended. */
  end(): void {
    const stage = this.#stage;
    const { asked, accepted, rejected } = stage.spawns;
    stage.expect(
      asked === accepted + rejected && accepted === stage.people.size,
      'P1',
      () =>
        `${asked} were asked for, ${accepted} accepted, ${rejected} not, ${stage.people.size} came`,
    );
    for (const person of stage.people.values()) {
      const { id, outcome, told } = person;
      stage.expect(outcome !== null, 'P1', () => `${id} has not ended`);
      stage.expect(
        JSON.stringify(outcome) === told,
        'P1',
        () => `the outcome of ${id} has changed`,
      );
    }
    for (const { messageId, receipts } of stage.sent.values())
      stage.expect(receipts === 1, 'P1', () => `${messageId} has ${receipts} receipts`);
    const { begun, settled } = stage.waits;
    stage.expect(begun === settled, 'P1', () => `${begun} waits were begun, ${settled} settled`);
    stage.expect(
      stage.service.waits.count === 0,
      'P7',
      () => `${stage.service.waits.count} waits are open`,
    );
    stage.expect(this.#holders.size === 0, 'P7', () => `${[...this.#holders].join()} hold slots`);
    for (const budgets of this.#budgets)
      for (const [resource, use] of Object.entries(budgets.report))
        stage.expect(
          resource === 'timeMs' || use.reserved === 0,
          'P7',
          () => `${use.reserved} ${resource} are reserved for nobody`,
        );
  }

  #spawned(chunk: Extract<SubagentChunk, { type: 'spawned' }>): void {
    const stage = this.#stage;
    const { subagentId: id, parentId, depth, workstreamId } = chunk;
    const { asking, story } = stage;
    stage.count('spawned');
    stage.expect(!stage.people.has(id), 'P1', () => `${id} was spawned twice`);
    if (!asking) {
      stage.expect(false, 'P1', () => `${id} was spawned, and nobody asked for it`);
      return;
    }
    const { config = {}, isHandedOver = false } = story.nodes[asking.node] ?? {};
    const wantsBargeIn = config.onBargeIn === 'cancel' && !(isHandedOver && asking.by !== null);
    stage.people.set(id, {
      ...asking,
      id,
      depth,
      blamed: new Set(),
      wantsBargeIn,
      outcome: null,
      endedAt: 0,
      told: '',
    });
    const { limits } = story;
    const own = stage.ancestorsOf(id).length + 1;
    stage.expect(
      parentId === asking.by && depth === own,
      'P7',
      () => `${id} is at depth ${depth}, below ${parentId}`,
    );
    stage.expect(own <= limits.depth, 'P7', () => `${id} is at depth ${own}`);
    stage.expect(stage.live.length <= limits.live, 'P7', () => `${stage.live.length} live`);
    stage.expect(stage.people.size <= limits.total, 'P7', () => `${stage.people.size} in all`);
    stage.expect(
      workstreamId === asking.workstream,
      'P8',
      () => `${id} is of the workstream ${workstreamId}`,
    );
    stage.expect(!stage.isClosing, 'P1', () => `${id} was spawned into what is being closed`);
  }

  #ended(person: Person, { outcome }: Extract<SubagentChunk, { type: 'ended' }>): void {
    const stage = this.#stage;
    const { id } = person;
    person.outcome = outcome;
    person.endedAt = stage.environment.clock.now();
    person.told = JSON.stringify(outcome);
    this.#outlived(person);
    const { status, error, toolLedger, usage, steps } = outcome;
    stage.count(`ended: ${status}`);
    if (error) stage.count(`failed: ${error.code}`);
    stage.expect(error?.code !== 'INTERNAL', 'P1', () => `${id} failed: ${error?.message}`);
    if (status === 'cancelled' || status === 'lost') {
      const isOrphan = stage.ancestorsOf(id).some((above) => !stage.isLive(above));
      stage.expect(
        person.blamed.size > 0 || isOrphan,
        'P5',
        () => `${id} was cancelled by nobody: ${error?.message}`,
      );
    }
    // A later cancellation changes nothing.
    stage.expect(
      !stage.service.cancel(id, { subagentId: null }),
      'P1',
      () => `${id} could be cancelled again`,
    );
    stage.expect(
      usage.totalTokens <= CALL_TOKENS * Math.max(steps, 1) * 3,
      'P1',
      () => `${id} used ${usage.totalTokens}`,
    );
    const ids = toolLedger.map(({ callId, step }) => `${step}:${callId}`);
    stage.expect(
      new Set(ids).size === ids.length,
      'P1',
      () => `a call of ${id} is in its ledger twice`,
    );
    for (const run of stage.runs) {
      if (run.personId !== id) continue;
      const entry = toolLedger.find(({ callId }) => callId === run.callId);
      // A call that was cut off may have been carried out.
      const isKnown = status === 'completed' && run.state === 'returned';
      const known = isKnown ? ['ok', 'error'] : ['ok', 'error', 'in_flight'];
      const did = known.includes(entry?.status ?? '');
      stage.expect(
        did,
        'P1',
        () => `${id} ran ${run.tool} (${run.callId}); the ledger says ${entry?.status}`,
      );
      if (entry?.status !== 'ok') continue;
      stage.expect(
        run.state === 'returned' && JSON.stringify(run.output) === JSON.stringify(entry.output),
        'P1',
        () =>
          `${run.tool} of ${id} ${run.state} ${JSON.stringify(run.output)}; the ledger says ${JSON.stringify(entry.output)}`,
      );
    }
    for (const entry of toolLedger) {
      const isRun = stage.runs.some(
        ({ callId, personId }) => callId === entry.callId && personId === id,
      );
      const isRuntimes = RUNTIMES_OWN.has(entry.toolName);
      if (entry.status === 'ok' && !isRuntimes)
        stage.expect(
          isRun,
          'P1',
          () => `the ledger of ${id} tells of ${entry.toolName}, which did not run`,
        );
      if (entry.status === 'not_run' || entry.status === 'denied')
        stage.expect(
          !isRun,
          'P1',
          () => `the ledger of ${id} says ${entry.status} of ${entry.toolName}, which ran`,
        );
    }
  }

  /** Checks that no subagent is working for one that has ended. */
  #outlived({ id, by, endedAt, outcome }: Person): void {
    const stage = this.#stage;
    const parent = by === null ? undefined : stage.people.get(by);
    if (!parent?.outcome || !stage.isPrompt) return;
    const isLater = endedAt > parent.endedAt;
    stage.expect(
      !isLater || outcome?.status === 'cancelled' || outcome?.status === 'lost',
      'P1',
      () => `${id} was ${outcome?.status} ${endedAt - parent.endedAt} ms after ${by} had ended`,
    );
  }

  /** Counts the slots that were granted and released, independently of the supervisor. */
  #watchSlots(): void {
    const supervisor = this.#supervisor;
    const { requestSlot, releaseSlot, ended } = supervisor;
    const holders = this.#holders;
    supervisor.requestSlot = (session, id, resumed, grant) =>
      requestSlot.call(supervisor, session, id, resumed, () => {
        holders.add(id);
        const { story, live } = this.#stage;
        this.#stage.expect(
          holders.size <= story.limits.running,
          'P7',
          () => `${[...holders].join()} hold slots at once, of ${live.length}`,
        );
        grant();
      });
    supervisor.releaseSlot = (session, id) => {
      holders.delete(id);
      releaseSlot.call(supervisor, session, id);
    };
    supervisor.ended = (session, id) => {
      holders.delete(id);
      ended.call(supervisor, session, id);
    };
  }

  /** Watches the budgets of a scope when they admit calls, because no method returns the budgets. */
  #watchBudgets(): () => void {
    const { admit } = Budgets.prototype;
    const seen = this.#budgets;
    Budgets.prototype.admit = function (this: Budgets, ...args) {
      seen.add(this);
      return admit.apply(this, args);
    };
    return () => {
      Budgets.prototype.admit = admit;
    };
  }

  #checkBudgets(): void {
    const stage = this.#stage;
    // The last call of a subagent that has used up its budget may exceed the grant.
    const beyond = stage.lastCalls;
    for (const budgets of this.#budgets) {
      const reports = [budgets.report, ...stage.live.map(({ id }) => budgets.of(id)?.report ?? {})];
      for (const report of reports)
        for (const [resource, { granted, spent, reserved }] of Object.entries(report)) {
          const more = { tokens: CALL_TOKENS, steps: 1 }[resource] ?? 0;
          stage.expect(
            spent + reserved <= granted + more * beyond,
            'P7',
            () => `${spent} ${resource} are spent and ${reserved} reserved, of ${granted}`,
          );
        }
    }
  }
}
