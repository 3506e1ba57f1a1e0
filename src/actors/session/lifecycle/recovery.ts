// Restores a session from its journal, in another process or after a crash.
//
//   read ─▶ restore the snapshot, refold the rest ─▶ what is due ─▶ session.recovered ─▶ session.start
//
// Owns:     the order in which the parts of a session come back.
// Does not: fold (units), or decide what is due of each kind (its effects).
//
// Invariants
//   RECOVERY-1. No effect of an old entry is carried out again as such. The state determines what is due:
//       deadlines with their old time, interrupted work, unreported ends.
//   RECOVERY-2. The state of things that no longer exist (a client, a connection, a voice) ends first
//       (`session.recovered`), and the journal records that: questions are put again under their old ids, and
//       unheard deliveries are due again. A session that was put away idle is the exception
//       (`session.woken`): its clients are still attached.
//   RECOVERY-3. Messages between units that the crash may have lost are sent again; a unit that has applied
//       one ignores it.
//   RECOVERY-4. An entry that cannot be applied is set aside (runtime/set-aside.ts), and so is a snapshot:
//       then the entries before it are folded, if the journal has them.

import { messageOf } from '../../../values/errors.ts';
import { restoredUnits } from '../../subagents/restoration.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import type { EventFor } from '../../contracts/session-protocol.ts';
import { setAsideIn, UnfoldableEntry } from '../../runtime/set-aside.ts';
import type { RecoveryReport, SessionEvent, SetAsideEntry } from '../../contracts/session-views.ts';
import { forgetWhatIsOver } from './fold-session.ts';
import { isGreeting } from '../../conversation/prompts.ts';
import type { HostedSession } from './hosted-session.ts';
import { isOfTelling } from '../lead/text-lead.ts';
import type { SessionEffects } from '../effects/session-effects.ts';
import { SessionHistory } from './session-history.ts';
import { openedWith, OPENING_ACTOR } from '../unit/session-entries.ts';
import type { Recovery } from '../lead/lead-agents.ts';

/**
 * Opens the session: as a new one, or from its journal. Returns the recovered state; null: the session is
 * new, also if the former session with its id was closed.
 * @throws {OffstageError} for a journal that does not fit; {ConfigurationError} `UNKNOWN_AGENT` if the former
 * lead agent does not exist any more.
 */
export function recover(
  core: HostedSession,
  effects: SessionEffects,
  entries: readonly JournalEntry[],
): Recovery | null {
  const { unit, delegation, services } = core;
  const history = putBack(core, entries, true);
  const { snapshot } = history;
  if (history.hasUnreadable) core.snapshots.keepAll();
  services.refold(history, snapshot?.services);
  if (history.isNew) {
    unit.begin();
    unit.unit.open({ actor: OPENING_ACTOR, event: openedWith(unit.inputs) });
    return null;
  }
  core.agents.checkLeader();
  if (history.isAsleep) core.upkeep.wasEnded();
  const known = snapshot?.delegation;
  const subagents = restoredUnits(history.units, known?.subagents);
  const restored = delegation.restore(subagents, [core.ofCalls, core.ofLead], {
    gone: known?.gone ?? [],
    histories: known?.histories ?? {},
    awakeMs: history.awakeMs,
  });
  // A running tool is examined separately: it may have had an effect (P6).
  const due = unit.underWay.filter(({ effect }) => effect.name !== 'execute');
  unit.unit.resume(due);
  effects.replyAgain();
  const { lastAt } = history;
  const goesOn: EventFor<'session'> = history.isAsleep
    ? { type: 'session.woken' }
    : { type: 'session.recovered', lastAt };
  unit.unit.open({ actor: 'session', event: goesOn });
  const { items } = core.records.conversation;
  const tookOver = items.findLastIndex(({ role }) => role === 'transfer');
  const recovery = {
    // An attached client got the reply before the session was put away, or will not get it.
    owesReply:
      !(history.isAsleep && unit.session.getSnapshot().value.client === 'attached') &&
      owesReply(core),
    // The result of a transfer tool is the answer to its call, not words of the new agent.
    hasGreeted: items.slice(tookOver + 1).some(({ role }) => role !== 'tool_result'),
    hasEntered: core.records.hasEntered || tookOver >= 0,
    takesOverFrom: core.records.takesOverFrom,
  };
  for (const subagent of delegation.views)
    core.projection.emit({ type: 'subagent.changed', subagent });
  effects.resume(history.isAsleep);
  const { live, untold, lost } = restored;
  const goOn = [...live, ...untold, ...lost.map(({ record }) => record)];
  core.ofLead.goesOnFor(new Set(goOn.map(({ id }) => id)));
  delegation.resume(restored);
  withdrawQuestionsOfNobody(core);
  core.journal.found(history.folded);
  const report: SessionEvent & RecoveryReport = {
    type: 'session.recovered',
    entries: history.folded,
    resumed: restored.live.map((record) => record.id),
    lost: restored.lost.map(({ record, reason }) => ({ subagentId: record.id, reason })),
    setAside: core.setAside,
    downMs: core.host.environment.clock.now() - lastAt,
  };
  core.projection.emit(report);
  return recovery;
}

/** The unit and the records of a session, as the journal has them. */
type OwnParts = Pick<HostedSession, 'id' | 'host' | 'unit' | 'records'>;

/**
 * Sets the unit and the records to the state of the journal (RECOVERY-4). Returns the history. `isFresh`: both
 * are in their first state. Their actors stay, because observers may follow them already.
 */
function putBack(
  { id, host, unit, records }: OwnParts,
  entries: readonly JournalEntry[],
  isFresh = false,
) {
  let isClean = isFresh;
  const aside = setAsideIn(entries.filter((entry) => entry.unit === id));
  for (;;) {
    const history = new SessionHistory(entries, id, aside);
    const { snapshot, snapshotEntry, unfit } = history;
    const [first] = unfit;
    if (first && host.onUnfoldable === 'lose') throw first;
    const begin = (): void => {
      if (!isClean) {
        unit.reset();
        records.reset();
      }
      isClean = false;
      if (!snapshot) {
        unit.unit.setSequence(history.before(id));
        return;
      }
      unit.restore(snapshot.unit, snapshot.inputs, history.before(id));
      records.restore(snapshot.books);
    };
    const reason = snapshotEntry && failure(begin);
    if (snapshotEntry && reason !== null) {
      const { seq, event } = snapshotEntry;
      const entry = { scope: id, unit: id, seq, event: event.type, reason };
      if (host.onUnfoldable === 'lose')
        throw new UnfoldableEntry(entry, null, 'The session is lost');
      aside.add(seq);
      unit.unit.setAside(new UnfoldableEntry(entry, null));
      continue;
    }
    if (!snapshotEntry) begin();
    if (!history.isNew) unit.refold(history.of(id), begin);
    for (const one of unfit) unit.unit.setAside(one);
    return history;
  }
}

/** Returns the message of the error that `begin` throws; null: it throws none. */
function failure(begin: () => void): string | null {
  try {
    begin();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** Resets a running session to the state of the journal: an entry was applied in part, and is set aside. */
export async function goBack(
  core: OwnParts & Pick<HostedSession, 'journal'>,
  { event }: SetAsideEntry,
): Promise<void> {
  // A caller of `close` waits for its end, which would not come.
  if (event === 'session.close') throw new Error('Its end was set aside');
  const entries = await core.journal.read({ scope: core.id });
  if (core.unit.unit.disposed) return;
  putBack(core, entries);
  // Its effects were carried out here.
  forgetWhatIsOver(core.records, core.unit);
}

/**
 * Withdraws questions of askers that ended in a process that could not write the end of their questions down.
 */
function withdrawQuestionsOfNobody(core: HostedSession): void {
  for (const { requestId, subagentId } of core.records.questions.values()) {
    const asker = core.delegation.get(subagentId);
    if (asker?.outcome === null) continue;
    const reason = 'its subagent has ended';
    core.receive(`question:${requestId}`, { type: 'question.withdraw', reason });
  }
}

/**
 * Tells whether the last words of the user, a result of a tool that was called for them, or the greeting of
 * the current agent are still unanswered by the lead agent. The outbox is responsible for the results of
 * subagents.
 */
function owesReply({
  records,
  agents,
  unit,
}: Pick<HostedSession, 'records' | 'agents' | 'unit'>): boolean {
  const { items } = records.conversation;
  const asked = items.findLastIndex((item) => {
    // A call in the telling of a due delivery is read when that is told again.
    if (item.role === 'tool_result')
      return (
        unit.calls.stateOf(item.callId)?.value !== 'settled' &&
        !isOfTelling({ records, unit }, item.callId)
      );
    return item.id === records.utteranceId || isGreeting(item, agents.current);
  });
  return asked >= 0 && !items.slice(asked + 1).some(({ role }) => role === 'assistant');
}
