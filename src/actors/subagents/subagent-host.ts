// The host of all subagents of a scope: provides instances, slots, addressees of questions, and observers.
// One host for all, so that ten thousand subagents need no object of their own.
//
// Owns:     nothing; it passes each report of a subagent on to the responsible part.
// Does not: decide what follows from an end (subagent-tree.ts).

import type { JSONValue, ModelMessage } from 'ai';
import type { MemoryOwner } from '../ports/working-memory.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import { prepareInstance, type Briefing, type PreparedInstance } from '../subagent/instance.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type {
  PreparedBefore,
  ReturnedValue,
  SubagentHandle,
  SubagentPorts,
} from '../subagent/subagent-ports.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import type { Budget } from '../admission/budget.ts';
import type { SubagentRecord } from './subagent-registry.ts';
import { NoteMarks } from '../notes/note-marks.ts';
import { requestMessage } from './parent-words.ts';
import type { Parts } from './parts.ts';
import type { SpawnRequest, SubagentService } from '../contracts/service-types.ts';
import { pendingOf, reportOf, viewOf } from './views.ts';
import type { AskedInput, CallInDoubt, StepReport, StreamedChunk } from '../contracts/task.ts';

/** The tools as their author defined them. */
type Tools = Readonly<Record<string, unknown>>;

type Ended = (record: SubagentRecord, outcome: Outcome, disposed: Promise<void>) => void;

export class SubagentHost implements SubagentPorts {
  readonly path: string;
  readonly #parts: Parts;
  readonly #service: SubagentService;
  readonly #ended: Ended;

  constructor(parts: Parts, service: SubagentService, ended: Ended) {
    this.path = parts.id;
    this.#parts = parts;
    this.#service = service;
    this.#ended = ended;
  }

  async prepare(
    face: SubagentHandle,
    signal: AbortSignal,
    again?: PreparedBefore,
  ): Promise<PreparedInstance> {
    const { instances } = this.#parts;
    const record = this.#recordOf(face.id);
    const { ports } = record.admission;
    const messages = record.opening;
    record.opening = undefined;
    const isOfEarlierVersion = again !== undefined && again.marks === undefined;
    const notes = isOfEarlierVersion ? null : this.#notesOf(record, again?.marks);
    return prepareInstance(
      ports.host,
      instances.definitionOf(record),
      ports.model,
      signal,
      notes,
      (own) => this.#brief(record, own, messages, notes, again !== undefined),
    );
  }

  keepLarge({ id }: SubagentHandle, tools: Tools, returned: ReturnedValue): Promise<JSONValue> {
    const { outcomes } = this.#recordOf(id).admission.ports;
    return (
      outcomes?.keepLarge(this.#memoryOf(id), tools, returned) ?? Promise.resolve(returned.value)
    );
  }

  settle(face: SubagentHandle, tools: Tools, outcome: Outcome): Outcome | Promise<Outcome> {
    const { parentId, admission, progress } = this.#recordOf(face.id);
    const { outcomes } = admission.ports;
    if (!outcomes) return outcome;
    const parent = parentId === null ? undefined : this.#parts.registry.get(parentId);
    const readerTools = parent?.admission.definition.tools ?? admission.ports.tools();
    const owner = this.#memoryOf(face.id);
    const { startedAt } = admission;
    return outcomes.settle(face, { owner, startedAt, tools, readerTools, progress }, outcome);
  }

  /**
   * Requests a slot, after the lock of the instance: a subagent that waits for another run of its instance
   * asks later.
   */
  requestSlot(
    id: string,
    resumed: boolean,
    grant: (history?: readonly ModelMessage[]) => void,
  ): void {
    const { id: scope, supervisor, instances } = this.#parts;
    if (resumed) {
      supervisor.requestSlot(scope, id, true, grant);
      return;
    }
    const record = this.#recordOf(id);
    instances.lock(record, (history) =>
      supervisor.requestSlot(scope, id, false, () => grant(history)),
    );
    if (instances.isLocked(record)) supervisor.waitsElsewhere(scope, id);
  }

  budgetOf({ id }: SubagentHandle): Budget | null {
    return this.#parts.budgets.of(id);
  }

  releaseSlot(id: string): void {
    this.#parts.supervisor.releaseSlot(this.path, id);
  }

  ask(question: AskedQuestion): void {
    const record = this.#recordOf(question.subagentId);
    // A configuration without `answerableBy` takes the value of its nearest ancestor that has one.
    const answerableBy = question.answerableBy ?? this.#answerableBy(record);
    record.admission.ports.ask(
      answerableBy === undefined ? question : { ...question, answerableBy },
    );
  }

  withdraw(requestId: string, { id }: SubagentHandle): void {
    this.#recordOf(id).admission.ports.withdraw(requestId);
  }

  requestInput(asked: AskedInput): void {
    const { requests, awaiting, chunks, messages, registry } = this.#parts;
    const record = this.#recordOf(asked.subagentId);
    const { parentId, admission } = record;
    const isHandled = parentId === null && admission.ports.handlesInput === true;
    // The events that follow from the request are written down as well.
    const isKnown = record.asked?.requestId === asked.requestId;
    const request = requests.open(record, asked, isHandled);
    const pending = pendingOf(request);
    chunks.emit(record, { type: 'input.requested', request: pending });
    // A reader of the stream may have answered the request already, or ended the asker.
    if (record.request !== request || awaiting.asked(record) || isKnown) return;
    const view = viewOf(record);
    if (parentId === null) {
      admission.ports.inputRequested(view, pending);
      return;
    }
    const parent = registry.get(parentId);
    if (!parent?.isLive) return;
    // A request that is put again after a crash has the same message id: the parent reads it once.
    const messageId = messages.idOf(parent, asked.requestId);
    void messages
      .send(parent, messageId, requestMessage(view, pending), 'steer')
      .then(({ applied }) => {
        if (applied) request.isTold = true;
      });
  }

  withdrawInput(_requestId: string, { id }: SubagentHandle): void {
    this.#parts.requests.withdraw(this.#recordOf(id));
  }

  deniedAbove(face: SubagentHandle, toolName: string, input: unknown): boolean {
    const { registry } = this.#parts;
    return this.#recordOf(face.id).admission.lineage.some((id) =>
      registry.get(id)?.subagent?.hasDenied(toolName, input),
    );
  }

  callerOf({ id }: SubagentHandle) {
    const { parentId, depth, admission } = this.#recordOf(id);
    const requester = admission.requestedBy;
    return { sessionId: this.path, parentId, depth, requester, service: this.#service };
  }

  messageApplied({ id }: SubagentHandle, messageIds: readonly string[], step: number): void {
    const { messages, chunks } = this.#parts;
    messages.settle(messageIds, { applied: true, step });
    for (const messageId of messageIds)
      chunks.emit(this.#recordOf(id), { type: 'message.applied', messageId, step });
  }

  messageTaken(messageId: string): void {
    this.#parts.messages.taken(messageId);
  }

  messageRefused({ id }: SubagentHandle, messageIds: readonly string[], reason: string): void {
    const { messages, chunks } = this.#parts;
    messages.settle(messageIds, { applied: false, reason });
    for (const messageId of messageIds)
      chunks.emit(this.#recordOf(id), { type: 'message.refused', messageId, reason });
  }

  activity({ id }: SubagentHandle): void {
    const { health, chunks, now } = this.#parts;
    const record = this.#recordOf(id);
    if (!health.seen(record, now())) return;
    chunks.emit(record, { type: 'recovered' });
    record.admission.ports.changed(viewOf(record));
  }

  streamed({ id }: SubagentHandle, chunk: StreamedChunk): void {
    this.#parts.chunks.emit(this.#recordOf(id), { type: 'streamed', chunk });
  }

  changed({ id, progress }: SubagentHandle): void {
    const record = this.#recordOf(id);
    if (progress !== null) record.said = null;
    record.admission.ports.changed(viewOf(record));
  }

  stepped({ id }: SubagentHandle, report: StepReport): void {
    const record = this.#recordOf(id);
    record.admission.ports.stepped(viewOf(record), report);
  }

  goesOn({ id }: SubagentHandle): boolean {
    return this.#recordOf(id).admission.ports.goesOn !== false;
  }

  inDoubt({ id }: SubagentHandle, call: CallInDoubt): void {
    const record = this.#recordOf(id);
    record.admission.ports.inDoubt?.(viewOf(record), call);
  }

  ended({ id }: SubagentHandle, outcome: Outcome, disposed: Promise<void>): void {
    this.#ended(this.#recordOf(id), outcome, disposed);
  }

  async #brief(
    { id, parentId, admission }: SubagentRecord,
    own: SubagentDefinition,
    messages: SpawnRequest['messages'],
    notes: NoteMarks | null,
    isAgain: boolean,
  ): Promise<Briefing> {
    const { ports, task, lineage, request } = admission;
    const parent = parentId === null ? undefined : this.#parts.registry.get(parentId);
    const marks = parent?.subagent?.marks;
    const ofParent = marks === undefined ? undefined : new NoteMarks(marks);
    const written = parentId === null ? ports.notes : ofParent;
    // The conversation of a fork was written for the agent that spawned it.
    const forked = messages && notes && written ? notes.rewritten(messages, written) : messages;
    const briefing = await ports.brief(own, task, forked, notes);
    // Its first messages are in the journal.
    if (isAgain || !notes || own.lineage !== true || !ports.outcomes) return briefing;
    const seen = this.#parts.registry.allSeenBy({ subagentId: parentId });
    return ports.outcomes.withLineage(briefing, {
      subagentId: id,
      task,
      giver: { sessionId: this.path, path: lineage },
      tools: own.tools ?? {},
      request,
      ended: seen.filter(({ isLive }) => !isLive).map(reportOf),
      notes,
    });
  }

  /** Returns the marks of a run. Runs that share an instance share them: each reads the history of the others. */
  #notesOf(record: SubagentRecord, known: string | undefined): NoteMarks {
    const { instances } = this.#parts;
    const { ids } = record.admission.ports.host.environment;
    const marks = known ?? instances.marksOf(record) ?? ids.next('mark');
    instances.marked(record, marks);
    return new NoteMarks(marks);
  }

  #memoryOf(id: string): MemoryOwner {
    return { sessionId: this.path, path: [...this.#recordOf(id).admission.lineage, id] };
  }

  #answerableBy({ admission }: SubagentRecord): readonly string[] | undefined {
    const above = admission.lineage.toReversed().map((id) => this.#recordOf(id)?.admission);
    return [admission, ...above].find((one) => one?.definition.answerableBy)?.definition
      .answerableBy;
  }

  /** Returns the record of a subagent. A subagent that reports is live, so its record exists. */
  #recordOf(id: string): SubagentRecord {
    return this.#parts.registry.get(id) as SubagentRecord;
  }
}
