// A session goes on from its journal, in another process or after a crash.
//
//   read ─▶ restore the snapshot, refold the rest ─▶ what is due, from the state ─▶ session.recovered ─▶ session.start
//
// Owns:     the order in which the parts of a session come back.
// Does not: fold (units), or decide what is due of each kind (its effects).
//
// Invariants
//   RC1. No effect of an old entry is carried out again as such. What is due follows from the
//        state: deadlines with their old time, work that was under way, ends that were not told.
//   RC2. What somebody did that is no more (a client, a connection, a voice) is over first
//        (`session.recovered`), and is in the journal as such: questions are put again under
//        their old ids, and what was not heard is due again. Not so where it was put away idle
//        (`session.woken`): whoever was there still is.
//   RC3. Messages between units that the crash may have lost are sent again; who had them
//        ignores them.

import { restoredUnits } from '../delegation/restoration.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import type { RecoveryReport, SessionEvent } from '../session-views.ts';
import { greetingNote } from './prompts.ts';
import type { SessionCore } from './session-core.ts';
import type { SessionEffects } from './session-effects.ts';
import { SessionHistory } from './session-history.ts';
import { openedWith } from './session-inputs.ts';

/** What the lead agent must know of a session that goes on. */
export interface Recovery {
  /** Something was said since whoever leads took over, or began: it has entered, and greeted. */
  readonly hasGreeted: boolean;
  /** The `onEnter` of the first agent is done, or another one has taken over from it. */
  readonly hasEntered: boolean;
  /** Whom the agent that leads took over from, where its `onEnter` was not done; null: it has entered. */
  readonly takesOverFrom: string | null;
  readonly owesReply: boolean;
}

/**
 * Opens the session: as a new one, or from what the journal has. Returns what was found; null: it
 * is new, also where the session that had its id before was closed.
 * @throws {OffstageError} for a journal that does not fit; {ConfigurationError} `UNKNOWN_AGENT` where
 * the agent that led is gone.
 */
export function recover(
  core: SessionCore,
  effects: SessionEffects,
  entries: readonly JournalEntry[],
): Recovery | null {
  const { unit, delegation, services, id } = core;
  const history = new SessionHistory(entries, id);
  const { snapshot } = history;
  if (history.hasUnreadable) core.snapshots.keepAll();
  services.refold(history, snapshot?.services);
  if (history.isNew) {
    unit.unit.skip(history.before(id));
    unit.begin();
    unit.unit.open({ actor: 'opening', event: openedWith(unit.inputs) });
    return null;
  }
  if (snapshot) {
    unit.restore(snapshot.unit, snapshot.inputs, history.before(id));
    core.books.restore(snapshot.books);
  } else unit.unit.skip(history.before(id));
  unit.refold(history.of(id));
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
  const goesOn: UnitEvent & object = history.isAsleep
    ? { type: 'session.woken' }
    : ({ type: 'session.recovered', lastAt } as UnitEvent);
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
  delegation.resume(restored);
  core.journal.found(history.folded);
  const report: SessionEvent & RecoveryReport = {
    type: 'session.recovered',
    entries: history.folded,
    resumed: restored.live.map((record) => record.id),
    lost: restored.lost.map(({ record, reason }) => ({ subagentId: record.id, reason })),
    downMs: core.host.environment.clock.now() - lastAt,
  };
  core.projection.emit(report);
  return recovery;
}

/**
 * Has the user, a tool that was called for them, or the greeting of whoever leads, said something
 * last that the lead agent has not answered? What a subagent came to is the outbox's affair.
 */
function owesReply({ books, leads, unit }: Pick<SessionCore, 'books' | 'leads' | 'unit'>): boolean {
  const { items } = books.conversation;
  const greeting = greetingNote(leads.agent);
  const asked = items.findLastIndex((item) => {
    if (item.role === 'tool_result') return unit.calls.stateOf(item.callId)?.value !== 'settled';
    return item.id === books.requestId || (item.role === 'system' && item.text === greeting);
  });
  return asked >= 0 && !items.slice(asked + 1).some(({ role }) => role === 'assistant');
}
