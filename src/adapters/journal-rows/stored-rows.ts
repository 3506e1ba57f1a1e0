// An entry of the journal as a row of a table, and back; long events are packed. A wake time as a row.
//
// STORED-ENTRY-1. A row that differs from the written one, or is no entry, is an error that names it.
// STORED-ENTRY-2. The same entry has the same checksum, packed or not.
// DICTIONARIES-1. A dictionary is never changed, because events packed with it could no longer be read. An
//     improvement is a further dictionary behind it, with a new layout of the tables, so that versions that lack
//     it do not open them.

import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { checkEntry, journalEntryOf } from '../../actors/ports/journal-entry.ts';
import { JournalError, journalCorrupt } from '../../actors/ports/journal-error.ts';
import type { JournalEntry } from '../../actors/ports/journal.ts';
import type { WakeTime } from '../../actors/ports/wake-times.ts';
import { messageOf } from '../../values/errors.ts';
import { isStorable } from '../../values/storable.ts';

/** The columns of `entries`, in the order in which they are written. */
export type Row = readonly [
  scope: string,
  unit: string,
  seq: number,
  at: number,
  actor: string,
  definitionVersion: number,
  /** JSON; empty if it is packed. */
  event: string,
  checksum: number,
  packed: Uint8Array | null,
];

/** @throws {JournalError} `INVALID_ENTRY` for names, or an event, that cannot be stored. */
export function rowOf(entry: JournalEntry): Row {
  const text = textOfEntry(entry);
  const { scope, unit, seq, at, actor, definitionVersion } = entry;
  const checksum = checksumOf([scope, unit, seq, at, actor, definitionVersion, text]);
  const bytes = packed(text);
  return [scope, unit, seq, at, actor, definitionVersion, bytes ? '' : text, checksum, bytes];
}

/**
 * Returns the event of an entry as JSON.
 * @throws {JournalError} `INVALID_ENTRY` for names, or an event, that cannot be stored.
 */
export function textOfEntry(entry: JournalEntry): string {
  checkEntry(entry);
  const { scope, unit, event } = entry;
  let text: string;
  try {
    text = JSON.stringify(event);
  } catch (error) {
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected the event \`${event.type}\` of ${unit} in ${scope} to be plain JSON: ${messageOf(error)}`,
      { retryable: false, cause: error },
    );
  }
  // At most three bytes per character: most texts need not be counted.
  if (text.length * 3 > MAX_EVENT_BYTES && Buffer.byteLength(text) > MAX_EVENT_BYTES)
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected the event \`${event.type}\` of ${unit} in ${scope} to have at most ${MAX_EVENT_BYTES} bytes as JSON`,
      { retryable: false },
    );
  return text;
}

/** A row as the database returns it, not checked yet. */
interface StoredRow {
  readonly [column: string]: unknown;
}

/** @throws {JournalError} `JOURNAL_CORRUPT` (STORED-ENTRY-1) */
export function entryOf(row: StoredRow, source: string): JournalEntry {
  const { scope, unit, seq, at, actor, definition_version: definitionVersion } = row;
  const name = `entry ${String(seq)} of ${String(unit)} in ${String(scope)}`;
  const text = textOf(row, source, name);
  if (checksumOf([scope, unit, seq, at, actor, definitionVersion, text]) !== row['checksum'])
    throw journalCorrupt(source, `${name} is not what was written`);
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch (error) {
    throw journalCorrupt(source, `${name} has an event that is no JSON`, error);
  }
  return journalEntryOf({ scope, unit, seq, at, actor, definitionVersion, event }, source);
}

function textOf({ event, packed: bytes }: StoredRow, source: string, name: string): string {
  if (bytes === null || bytes === undefined) return String(event);
  try {
    // There is no text beside packed bytes, unless the row was altered.
    return `${String(event)}${unpacked(bytes as Uint8Array)}`;
  } catch (error) {
    throw journalCorrupt(source, `${name} cannot be unpacked`, error);
  }
}

export function checksumOf(values: readonly unknown[]): number {
  return crc32(values.join('\n'));
}

/** The position before all wake times. */
export const BEFORE_ALL: WakeTime = { at: -Infinity, scope: '' };

/** @throws {JournalError} `INVALID_ENTRY` for a scope or a time that cannot be stored. */
export function checkWakeTime(scope: string, at: number | null): void {
  if (typeof scope !== 'string' || !isStorable(scope))
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected scope, unit and actor to be texts, got ${JSON.stringify(scope)}`,
      { retryable: false },
    );
  if (at !== null && Number.isNaN(at))
    throw new JournalError('INVALID_ENTRY', `Expected a time for ${scope}, got NaN`, {
      retryable: false,
    });
}

/** In characters: about what fits into a page of SQLite. */
const PACKED_FROM = 4000;
/**
 * Text of this length repeats itself: searching for the best match takes three times as long, for a tenth
 * less.
 */
const FAST_FROM = 64_000;

/** The limit of an event as JSON, in bytes: a small packed event must not fill the memory. */
const MAX_EVENT_BYTES = 256 * 1024 * 1024;

/**
 * Packs a long event: the number of a dictionary, and the output of `deflate` with it.
 *
 * Does not: pack short events. A session writes them all the time, and packing one takes longer than storing
 *           it.
 *
 * Returns the packed bytes; null: the event is stored as it is.
 */
export function packed(text: string): Uint8Array | null {
  if (text.length < PACKED_FROM) return null;
  const level = text.length < FAST_FROM ? 6 : 3;
  const bytes = deflateRawSync(text, { level, dictionary: DICTIONARIES.at(-1) });
  return Buffer.concat([Buffer.of(DICTIONARIES.length), bytes]);
}

/** @throws for bytes that were not packed. */
export function unpacked(bytes: Uint8Array): string {
  const [number = 0] = bytes;
  const dictionary = DICTIONARIES[number - 1];
  if (!dictionary)
    throw new Error(`Expected a dictionary from 1 to ${DICTIONARIES.length}, got ${number}`);
  return inflateRawSync(bytes.subarray(1), {
    dictionary,
    maxOutputLength: MAX_EVENT_BYTES,
  }).toString();
}

// The typical content of long events, for compression: the JSON of a session with a waiting subagent, without
// its words. An event that is packed with a dictionary refers to its content in a byte or two.
const WAITING_SESSION = [
  '{"type":"session.snapshot","versions":{"session":2,"subagent":3,"service":1},',
  '"inputs":{"session":{"maxReconnects":5,"connectTimeoutMs":30000,"transferTimeoutMs":30000,',
  '"settleTimeoutMs":5000,"closeGraceMs":5000,"detachGraceMs":null},"outbox":{"quietMs":300,',
  '"heardFraction":0.9,"offerTimeoutMs":15000,"playTimeoutMs":120000,"maxAttempts":3,',
  '"settleTimeoutMs":5000,"maxReconnects":5,"reconnectDelayMs":1000,',
  '"maxReconnectDelayMs":30000,"clearReportMs":300,"falseInterruptionMs":2000,',
  '"backchannelMs":1000,"responseTimeoutMs":30000,"replyTimeoutMs":5000,',
  '"connectTimeoutMs":30000,"transferTimeoutMs":30000,"keptAudioMs":10000,"capacity":200},',
  '"canInterrupt":true,"batches":{"interactiveCeilingMs":300000,"backgroundCeilingMs":600000,',
  '"atCeiling":"deliver","graceMs":5000},"books":{"agentName":"","limits":{"maxItems":500,',
  '"maxChars":200000,"maxItemChars":20000},"promptStyle":"notice"}},',
  '"unit":{"machines":{"session":{"value":{"connection":"active","client":"attached",',
  '"user":"silent","model":"idle","playout":"drained"},"context":{"maxReconnects":5,',
  '"connectTimeoutMs":30000,"transferTimeoutMs":30000,"settleTimeoutMs":5000,',
  '"closeGraceMs":5000,"detachGraceMs":null,"failures":0,"error":null,"transferId":null,',
  '"connectBy":17,"transferBy":0,"reconnectAt":0,"settleBy":17,"detachedUntil":0,"closeBy":0}},',
  '"interaction":{"value":"subagent_interaction","context":{"owner":"sub_2.q1","queue":[],',
  '"epoch":1}},"outbox":{"value":{"gate":"open","slot":"empty"},"context":{"capacity":200,',
  '"quietMs":300,"offerTimeoutMs":15000,"playTimeoutMs":120000,"maxAttempts":3,"pending":[],',
  '"current":null,"generation":2,"reserved":1,"quietSince":17,"dueAt":17,',
  '"interruptible":false}}},"questions":[{"id":"sub_2.q1","state":{"value":"open",',
  '"context":{"requestId":"sub_2.q1","epoch":1,"remainingMs":120000,"dueAt":17,"shownAt":null,',
  '"playingSince":17,"heard":true}},"isAwake":true}],"calls":[{"id":"call_2",',
  '"state":{"value":"delegated","context":{"callId":"call_2","timeoutMs":30000,"batchId":null,',
  '"dueAt":0,"acknowledged":true,"delivery":"when_idle"}}}],',
  '"batches":{"latest":{"requestId":"utt_1","batchId":"batch_call_1"},',
  '"members":[{"id":"batch_call_1","state":{"value":{"gathering":"idle"},',
  '"context":{"batchId":"batch_call_1","ceilingMs":300000,"atCeiling":"deliver","graceMs":5000,',
  '"isReplying":false,"working":["call_1"],"asking":["call_1"],"parts":[],"dueAt":0}}}]},',
  '"placed":[]},"books":{"agentName":"","requestId":"user_5","turns":4,"successor":null,',
  '"directives":[],"questions":[{"requestId":"sub_2.q1","subagentId":"sub_2","subagentName":"",',
  '"kind":"question","timeoutMs":120000,"question":"","options":[{"id":"","label":""}],',
  '"askedAt":17,"answer":null,"timesUnclear":0,"askedAgain":false,"readBack":false}],',
  '"calls":[{"callId":"call_2","name":"","agentName":"","arguments":"{}","input":{},',
  '"output":{"status":"still_in_progress","message":"On it.","important":"The work is NOT ',
  'complete. Tell the user what the message says, in your own words. Do NOT tell the user that ',
  'it is ready: you will be told when it is."},"request":"","subagentId":"sub_2",',
  '"outcome":null,"isAnswered":true,"endedAt":0,"delivery":"when_idle"}],',
  '"deliveries":[{"deliveryId":"sub_2.q1","kind":"question","priority":"high",',
  '"label":"SUBAGENT QUESTION","text":"","prompt":"[SUBAGENT QUESTION]: ","subagentId":"sub_2",',
  '"callId":null,"answersCall":false,"at":17}],"conversation":{"items":[{"id":"user_1","at":17,',
  '"role":"user","text":"","partial":false},{"id":"call_1","at":17,"role":"tool_call",',
  '"callId":"call_1","toolName":"","args":{},"chars":2},{"id":"call_1.result","at":17,',
  '"role":"tool_result","callId":"call_1","toolName":"","output":{"type":"value",',
  '"value":{"status":"still_in_progress","message":"On it.","important":"The work is NOT ',
  'complete. Tell the user what the message says, in your own words. Do NOT tell the user that ',
  'it is ready: you will be told when it is."}},"chars":213},{"id":"item_3","at":17,',
  '"role":"assistant","text":"","partial":false},{"id":"call_1.note","at":17,"role":"system",',
  '"text":"[SYSTEM: Background task completed successfully. Result: Please inform the user ',
  'about the result.]","partial":false},{"id":"item_4","at":17,"role":"assistant","text":"",',
  '"partial":false}],"summary":null,"evicted":0}},"services":{},',
  '"delegation":{"subagents":[{"rest":{"outcome":{"status":"completed","output":"","text":"",',
  '"steps":1,"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15},"toolLedger":[]},',
  '"endedAt":17,"deliveredAt":17,"step":1}},{"id":"sub_2","bornAt":17,',
  '"birth":{"type":"subagent.spawned","name":"","task":{"toolName":"","args":{},',
  '"description":""},"parentId":null,"worksFor":"calls","agentName":"","callId":"call_2",',
  '"workstreamId":null,"idempotencyKey":":call_2","request":"","maxDepth":3,"grant":null,',
  '"recipe":null,"messages":null,"limits":{"maxSteps":5,"timeoutMs":600000,',
  '"maxInputRetries":3}},"rest":{"seq":6,',
  '"life":{"snapshot":{"value":{"waiting_for_input":"asking"},"context":{"id":"sub_2",',
  '"maxSteps":5,"maxInputRetries":3,"step":2,"remainingMs":600000,"dueAt":17,',
  '"calls":[{"callId":"call_2","kind":"question","settled":false}],"asked":1,"missed":0,',
  '"unread":[],"reading":[],"exhausted":null,"isFinal":false,"ending":null}},',
  '"log":{"messages":[{"role":"user","content":""},{"role":"assistant",',
  '"content":[{"type":"tool-call","toolCallId":"call_1","toolName":"","input":{}}]},',
  '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call_1","toolName":"",',
  '"output":{"type":"json","value":{}}}]},{"role":"assistant","content":[{"type":"tool-call",',
  '"toolCallId":"call_2","toolName":"ask_user","input":{"question":"","options":[{"id":"",',
  '"label":""}]}}]}],"calls":[{"callId":"call_2","toolName":"ask_user","step":2,"calledAt":17,',
  '"result":null}],"ledger":[{"step":1,"callId":"call_1","toolName":"","input":{},',
  '"status":"ok","output":{},"calledAt":17,"settledAt":17}],"text":"",',
  '"usage":{"inputTokens":20,"outputTokens":10,"totalTokens":30},"unread":[],',
  '"completion":null},"isParked":true}}}],"gone":[],"histories":{}},"isAsleep":false,"at":17}',
];

/** The dictionaries in order; a packed event states the number of its own, from 1. */
export const DICTIONARIES: readonly Buffer[] = [Buffer.from(WAITING_SESSION.join(''))];
