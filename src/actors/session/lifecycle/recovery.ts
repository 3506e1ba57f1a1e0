// A session goes on from its journal, in another process or after a crash.
//
//   read ─▶ restore the snapshot, refold the rest ─▶ what is due, from the state ─▶ session.recovered ─▶ session.start
//
// Owns:     the order in which the parts of a session come back.
// Does not: fold (units), or decide what is due of each kind (its effects).
//
// Invariants
//   RECOVERY-1. No effect of an old entry is carried out again as such. What is due follows from the
//        state: deadlines with their old time, work that was under way, ends that were not told.
//   RECOVERY-2. What somebody did that is no more (a client, a connection, a voice) is over first
//        (`session.recovered`), and is in the journal as such: questions are put again under
//        their old ids, and what was not heard is due again. Not so where it was put away idle
//        (`session.woken`): whoever was there still is.
//   RECOVERY-3. Messages between units that the crash may have lost are sent again; who had them
//        ignores them.
//   RECOVERY-4. An entry that cannot be taken in is set aside (runtime/set-aside.ts), a snapshot as well: then what
//        it follows from is folded, if that is there.

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
import { openedWith, OPENING_ACTOR } from '../unit/session-inputs.ts';
import type { Recovery } from '../lead/transfer.ts';

/**
 * Opens the session: as a new one, or from what the journal has. Returns what was found; null: it
 * is new, also where the session that had its id before was closed.
 * @throws {OffstageError} for a journal that does not fit; {ConfigurationError} `UNKNOWN_AGENT` where
 * the agent that led is gone.
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
  core.leads.checkLeader();
  if (history.isAsleep) core.upkeep.wasEnded();
  const known = snapshot?.delegation;
  const subagents = restoredUnits(history.units, known?.subagents);
  const restored = delegation.restore(subagents, [core.ofCalls, core.ofLead], {
    gone: known?.gone ?? [],
    histories: known?.histories ?? {},
    awakeMs: history.awakeMs,
  });
  // A tool that runs is looked at by itself: it may have done something (P6).
  const due = unit.underWay.filter(({ effect }) => effect.name !== 'execute');
  unit.unit.resume(due);
  effects.replyAgain();
  const { lastAt } = history;
  const goesOn: EventFor<'session'> = history.isAsleep
    ? { type: 'session.woken' }
    : { type: 'session.recovered', lastAt };
  unit.unit.open({ actor: 'session', event: goesOn });
  const { items } = core.books.conversation;
  const tookOver = items.findLastIndex(({ role }) => role === 'transfer');
  const recovery = {
    // Whoever is there had it before it was put away, or will not get it.
    owesReply:
      !(history.isAsleep && unit.session.getSnapshot().value.client === 'attached') &&
      owesReply(core),
    // A transfer by a tool is what that is answered with.
    hasGreeted: items.slice(tookOver + 1).some(({ role }) => role !== 'tool_result'),
    hasEntered: core.books.hasEntered || tookOver >= 0,
    takesOverFrom: core.books.takesOverFrom,
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

/** The unit and the books of a session, as the journal has them. */
type OwnParts = Pick<HostedSession, 'id' | 'host' | 'unit' | 'books'>;

/**
 * Puts the unit and the books to where the journal has them (RECOVERY-4). Returns what the journal has.
 * `isFresh`: nothing has happened to them yet. Their actors, which somebody may follow already, stay.
 */
function putBack(
  { id, host, unit, books }: OwnParts,
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
        books.reset();
      }
      isClean = false;
      if (!snapshot) {
        unit.unit.skip(history.before(id));
        return;
      }
      unit.restore(snapshot.unit, snapshot.inputs, history.before(id));
      books.restore(snapshot.books);
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

/** Why this throws; null: it does not. */
function failure(begin: () => void): string | null {
  try {
    begin();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** A running session goes back to what the journal says of it: an entry was taken in by half, and is set aside. */
export async function goBack(
  core: OwnParts & Pick<HostedSession, 'journal'>,
  { event }: SetAsideEntry,
): Promise<void> {
  // Whoever closes it waits for its end, which would not come.
  if (event === 'session.close') throw new Error('Its end was set aside');
  const entries = await core.journal.read({ scope: core.id });
  if (core.unit.unit.disposed) return;
  putBack(core, entries);
  // Its effects were carried out here.
  forgetWhatIsOver(core.books, core.unit);
}

/** Whoever asked has ended, in a process that could not write the end of its question down any more. */
function withdrawQuestionsOfNobody(core: HostedSession): void {
  for (const { requestId, subagentId } of core.books.questions.values()) {
    const asker = core.delegation.get(subagentId);
    if (asker?.outcome === null) continue;
    const reason = 'its subagent has ended';
    core.receive(`question:${requestId}`, { type: 'question.withdraw', reason });
  }
}

/**
 * Has the user, a tool that was called for them, or the greeting of whoever leads, said something
 * last that the lead agent has not answered? What a subagent came to is the outbox's affair.
 */
function owesReply({
  books,
  leads,
  unit,
}: Pick<HostedSession, 'books' | 'leads' | 'unit'>): boolean {
  const { items } = books.conversation;
  const asked = items.findLastIndex((item) => {
    // What was called in the telling of something that is due is read when it is told again.
    if (item.role === 'tool_result')
      return (
        unit.calls.stateOf(item.callId)?.value !== 'settled' &&
        !isOfTelling({ books, unit }, item.callId)
      );
    return item.id === books.requestId || isGreeting(item, leads.agent);
  });
  return asked >= 0 && !items.slice(asked + 1).some(({ role }) => role === 'assistant');
}
