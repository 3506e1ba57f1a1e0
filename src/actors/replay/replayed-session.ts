// One life of a session, folded again by the same unit and records that run live.
//
// Owns:     the unit and the records of that life, and their views.
// Does not: know subagents (units of their own), or carry out effects.
//
// Invariants
//   REPLAYED-SESSION-1. The replay depends on the entries alone: they contain the app's input.
//   REPLAYED-SESSION-2. An actor that is over is forgotten after the entry that ended it, as a live session
//        forgets it when its effects are carried out.

import { floorOf } from '../../machines/index.ts';
import type { ConversationItem } from '../conversation/items.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { SessionRecords } from '../session/state/session-records.ts';
import { inputsIn, type SessionInputs, SESSION_SHAPES } from '../session/unit/session-entries.ts';
import { misshapen } from '../runtime/event-shapes.ts';
import { SessionUnit } from '../session/unit/session-unit.ts';
import type { Waiting } from '../../machines/outbox-setup.ts';
import { journalCut } from '../ports/journal-error.ts';
import { isUnreadable, unreadable } from '../runtime/snapshot-forms.ts';
import { EntryByEntry, nothingFollows, replayHost, type TakenEntry } from './replay-host.ts';
import type { ReplayDelivery, ReplayItem, ReplayView } from './replay-view.ts';
import { questionView } from '../session/state/projection.ts';
import {
  SNAPSHOT,
  SNAPSHOT_FORMS,
  snapshotIn,
  foldSessionEvent,
  forgetWhatIsOver,
} from '../session/lifecycle/session-journal.ts';

/** For a session whose opening cannot be read: the inputs with which most sessions begin. */
const NOTHING_KNOWN: SessionInputs = {
  session: { maxReconnects: 5, settleTimeoutMs: 5000, closeGraceMs: 5000, detachGraceMs: null },
  outbox: {
    capacity: 200,
    quietMs: 300,
    offerTimeoutMs: 15_000,
    playTimeoutMs: 120_000,
    maxAttempts: 3,
  },
  canInterrupt: true,
};

export class ReplayedSession {
  readonly #unit: SessionUnit;
  readonly #entries: EntryByEntry;
  readonly #records: SessionRecords;
  /** Cached: most items of a conversation do not change with an entry. */
  readonly #shown = new WeakMap<ConversationItem, ReplayItem>();
  #transcript: { of: readonly ConversationItem[]; items: readonly ReplayItem[] } = {
    of: [],
    items: [],
  };

  /**
   * @param first The opening entry, or a snapshot to continue from.
   * @throws {JournalError} `JOURNAL_CUT` if it is neither; `JOURNAL_VERSION` for a snapshot that this version
   *   cannot read.
   */
  constructor(first: JournalEntry) {
    const isSnapshot = first.event.type === SNAPSHOT;
    const snapshot = misshapen(first.event, SESSION_SHAPES) ? null : snapshotIn(first);
    const inputs =
      snapshot?.inputs ??
      inputsIn([first]) ??
      (first.seq === 1 && !isSnapshot ? NOTHING_KNOWN : null);
    if (isUnreadable(first, SNAPSHOT_FORMS)) throw unreadable(first, SNAPSHOT_FORMS);
    if (!inputs) throw journalCut(first);
    const { agentName = '', limits, promptStyle } = inputs.books ?? {};
    const host = replayHost(first.at);
    this.#records = new SessionRecords(agentName, limits, promptStyle);
    this.#unit = new SessionUnit(
      host,
      { id: first.unit, ...inputs },
      {
        ...nothingFollows,
        fold: (received) => foldSessionEvent(this.#records, this.#unit, received),
      },
    );
    const begin = (): void => {
      this.#unit.reset();
      this.#records.reset();
      this.#unit.unit.setSequence(first.seq - 1);
      if (!snapshot) {
        this.#unit.begin();
        return;
      }
      this.#unit.restore(snapshot.unit, inputs, first.seq - 1);
      this.#records.restore(snapshot.books);
    };
    begin();
    this.#entries = new EntryByEntry(this.#unit.unit, begin, () => this.forgetWhatIsOver());
  }

  /** Folds the entry. `reason`: why a later entry sets it aside; null if none does. */
  take(entry: JournalEntry, reason: string | null): TakenEntry {
    return this.#entries.take(entry, reason);
  }

  get view(): Omit<ReplayView, 'at' | 'subagents'> {
    const { session } = this.#unit;
    const snapshot = session.getSnapshot();
    return {
      connection: snapshot.value.connection,
      client: snapshot.matches({ client: 'attached' }) ? 'attached' : 'detached',
      floor: floorOf(snapshot),
      agent: this.#records.agentName,
      owner: this.#unit.owner,
      questions: this.#questions,
      calls: this.#calls,
      outbox: this.#outbox,
      transcript: this.transcript,
    };
  }

  /**
   * REPLAYED-SESSION-2. Call it before the next entry. Returns the names of the facts that are over:
   * `question sub_1:1`.
   */
  forgetWhatIsOver(): readonly string[] {
    return forgetWhatIsOver(this.#records, this.#unit);
  }

  /** The transcript; the same array as long as its items have not changed. */
  get transcript(): ReplayView['transcript'] {
    const { items: of } = this.#records.conversation;
    if (this.#transcript.of !== of) {
      const items = of.map((item) => {
        const shown = this.#shown.get(item) ?? itemOf(item);
        this.#shown.set(item, shown);
        return shown;
      });
      this.#transcript = { of, items };
    }
    return this.#transcript.items;
  }

  /** The open batches of calls, with their states. */
  get batches(): readonly { readonly batchId: string; readonly state: string }[] {
    const { batches } = this.#unit;
    return batches.ids.map((batchId) => ({
      batchId,
      state: nameOf(batches.stateOf(batchId)?.value),
    }));
  }

  get #questions(): ReplayView['questions'] {
    return [...this.#records.questions.values()].flatMap((record) => {
      const state = this.#unit.questions.stateOf(record.requestId);
      return state ? [questionView(record, state)] : [];
    });
  }

  get #calls(): ReplayView['calls'] {
    return this.#unit.calls.ids.map((callId) => ({
      callId,
      name: this.#records.calls.get(callId)?.name ?? '',
      state: nameOf(this.#unit.calls.stateOf(callId)?.value),
      batchId: this.#unit.batchOf(callId),
    }));
  }

  get #outbox(): ReplayView['outbox'] {
    const snapshot = this.#unit.outbox.getSnapshot();
    const { current, pending, reserved } = snapshot.context;
    const isPlaying = snapshot.matches({ slot: { speaking: 'playing' } });
    return {
      current: current && this.#deliveryOf(current, isPlaying ? 'playing' : 'offered'),
      pending: pending.map((item) => this.#deliveryOf(item, item.resting ? 'resting' : 'pending')),
      reserved,
    };
  }

  #deliveryOf(
    { deliveryId, kind, priority, attempts }: Waiting,
    state: ReplayDelivery['state'],
  ): ReplayDelivery {
    const parts = this.#unit.batches.contextOf(deliveryId)?.parts ?? [deliveryId];
    const text = parts.map((id) => this.#records.delivery(id)?.text ?? '').join('\n');
    return { deliveryId, kind, priority, state, attempts, text };
  }
}

/** `{ gathering: 'idle' }` is `gathering.idle`. */
function nameOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([state, within]) => `${state}.${nameOf(within)}`)
    .join(' ');
}

function itemOf(item: ConversationItem): ReplayItem {
  const { id, role, at } = item;
  const interrupted = 'interrupted' in item && item.interrupted === true;
  return { id, role, text: wordsOf(item), at, interrupted };
}

function wordsOf(item: ConversationItem): string {
  if (item.role === 'tool_call') return `${item.toolName} ${JSON.stringify(item.args)}`;
  if (item.role === 'transfer') return `${item.from} → ${item.to}`;
  if (item.role !== 'tool_result') return item.text;
  const { output, toolName } = item;
  return `${toolName}: ${output.type === 'value' ? JSON.stringify(output.value) : output.message}`;
}
