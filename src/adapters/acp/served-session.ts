// One Offstage session in an editor: its turns, and the content and questions that the editor receives during them.
//
// A turn lasts until the session is idle, or until the only open question is one that was asked as text. The next
// prompt answers that question. A prompt during a turn ends that turn, because the user has changed the subject.
//
// Invariants
//   ACP-SERVED-1. Only an explicit choice by the user counts as an answer. If a request is cancelled or left
//       unanswered, the question remains open. A permission applies to one call only.
//   ACP-SERVED-2. The session does not send anything between turns. A result counts as heard once it has been sent to
//       the editor.

import type {
  CreateElicitationResponse,
  ElicitationSchema,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
} from '@agentclientprotocol/sdk';
import type { Subscription } from 'rxjs';
import type {
  QuestionView,
  SessionEvent,
  SubagentView,
} from '../../actors/contracts/session-views.ts';
import { APPROVE_LASTING, lastingWords, wholeWords } from '../../actors/contracts/session-views.ts';
import type { TextPart } from '../../actors/session/lead/text-output.ts';
import type { TextSession } from '../../actors/session/view/text-session.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { clip } from '../../values/clip.ts';

/** The part of a session that an editor uses; `TextSession` implements it. */
export type SessionForEditor = Pick<
  TextSession,
  | 'id'
  | 'start'
  | 'suspend'
  | 'sendText'
  | 'answer'
  | 'idle'
  | 'listen'
  | 'shown'
  | 'parts'
  | 'events'
  | 'store'
  | 'subagents'
>;

export interface EditorAbilities {
  /** Whether the editor shows forms (`elicitation/create`). If not, questions are asked as text. */
  readonly forms: boolean;
}

type Update = SessionNotification['update'];

/** One session's connection to the editor. */
interface Editor {
  readonly abilities: EditorAbilities;
  update(update: Update): Promise<void>;
  permission(
    request: Omit<RequestPermissionRequest, 'sessionId'>,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse>;
  form(
    request: {
      readonly mode: 'form';
      readonly message: string;
      readonly requestedSchema: ElicitationSchema;
    },
    signal: AbortSignal,
  ): Promise<CreateElicitationResponse>;
  report(error: unknown, where: string): void;
}

interface Turn {
  readonly ended: AbortController;
  /** A failure of the model. `hasWords`: whether the turn has produced text. */
  failure: string | null;
  hasWords: boolean;
}

const STATUS = {
  spawning: 'pending',
  ready: 'pending',
  running: 'in_progress',
  waiting_for_input: 'in_progress',
  waiting_for_children: 'in_progress',
  sleeping: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'failed',
} as const satisfies Record<SubagentView['state'], string>;

const OPEN: ReadonlySet<QuestionView['state']> = new Set(['presenting', 'open', 'parked']);
const ANSWER = 'answer';
const OWN_WORDS = 'answer_custom';
const MAX_TITLE = 200;

export class ServedSession {
  readonly #session: SessionForEditor;
  readonly #editor: Editor;
  readonly #subscriptions: Subscription[];
  #turn: Turn | null = null;
  /** Open requests to the editor, by question id. */
  readonly #asking = new Map<
    string,
    { readonly stop: AbortController; readonly done: Promise<void> }
  >();
  /** Questions that have been asked in this turn. */
  readonly #put = new Set<string>();
  /** Tool calls that the editor has received. */
  readonly #shown = new Set<string>();

  constructor(session: SessionForEditor, editor: Editor) {
    this.#session = session;
    this.#editor = editor;
    this.#subscriptions = [
      session.parts.subscribe((part) => this.#said(part)),
      session.events.subscribe((event) => this.#happened(event)),
    ];
  }

  get id(): string {
    return this.#session.id;
  }

  /** Runs a turn. Returns how the turn ended. */
  async prompt(
    text: string,
    traced: { readonly traceparent?: string } = {},
  ): Promise<'end_turn' | 'cancelled'> {
    this.#turn?.ended.abort('end_turn');
    // The next turn asks the remaining open questions again.
    this.#stopAsking();
    const turn: Turn = { ended: new AbortController(), failure: null, hasWords: false };
    const { signal } = turn.ended;
    this.#turn = turn;
    this.#put.clear();
    const stopListening = this.#session.listen();
    try {
      const waiting = this.#waiting();
      // Either the prompt answers a question that was asked as text, or the session asks the question again.
      for (const { requestId } of waiting) this.#put.add(requestId);
      await this.#session.sendText(text, traced);
      this.#putAgain(waiting);
      await this.#quiet(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stopListening();
      if (this.#turn === turn) {
        this.#stopAsking();
        this.#turn = null;
      }
    }
    if (signal.aborted) return signal.reason as 'end_turn' | 'cancelled';
    if (turn.failure !== null && !turn.hasWords) throw new Error(turn.failure);
    return 'end_turn';
  }

  /** Ends the turn and all of the session's work. */
  cancel(): void {
    this.#stopAsking();
    for (const { id, parentId, outcome } of this.#session.subagents.list())
      if (parentId === null && outcome === null) this.#session.subagents.cancel(id);
    this.#turn?.ended.abort('cancelled');
  }

  /** Shows the conversation so far. */
  async replay(): Promise<void> {
    const { transcript } = this.#session.store.getSnapshot().context;
    for (const { role, text, filler } of transcript)
      if (text !== '' && filler !== true)
        await this.#editor.update({
          sessionUpdate: role === 'user' ? 'user_message_chunk' : 'agent_message_chunk',
          content: { type: 'text', text },
        });
  }

  async leave(): Promise<void> {
    this.#turn?.ended.abort('cancelled');
    this.#turn = null;
    this.#stopAsking();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    await this.#session.suspend();
  }

  /** Waits until the session is idle and no request to the editor is open. */
  async #quiet(signal: AbortSignal): Promise<void> {
    do {
      await raceAbort(Promise.all([...this.#asking.values()].map(({ done }) => done)), signal);
      await this.#session.idle({ signal });
    } while (this.#asking.size > 0);
  }

  #stopAsking(): void {
    for (const { stop } of this.#asking.values()) stop.abort();
    this.#asking.clear();
  }

  #waiting(): readonly QuestionView[] {
    const { questions } = this.#session.store.getSnapshot().context;
    return questions.filter(({ state }) => OPEN.has(state));
  }

  /** Asks the questions from earlier turns or processes that the prompt did not answer. */
  #putAgain(before: readonly QuestionView[]): void {
    const known = new Set(before.map(({ requestId }) => requestId));
    for (const question of this.#waiting()) {
      if (!known.has(question.requestId) || !this.#isAsked(question)) continue;
      this.#put.delete(question.requestId);
      this.#questionChanged(question);
    }
  }

  /** Whether the question is sent as a request rather than as text. */
  #isAsked({ kind }: QuestionView): boolean {
    return kind === 'approval' || this.#editor.abilities.forms;
  }

  #said(part: TextPart): void {
    const turn = this.#turn;
    if (!turn) return;
    if (part.type === 'text.delta') {
      turn.hasWords = true;
      this.#words(part.text);
    } else if (part.type === 'text.done') {
      this.#words('\n\n');
      const { deliveryId, deliveryIds = [] } = part;
      const told = new Set(deliveryId === null ? deliveryIds : [deliveryId, ...deliveryIds]);
      // ACP-SERVED-2
      for (const id of told) this.#session.shown(id);
    } else if (part.type === 'delivery.card') {
      turn.hasWords = true;
      this.#words(`${part.label}: ${part.text}\n\n`);
      this.#session.shown(part.deliveryId);
    } else if (part.type === 'response.failed') turn.failure = part.message;
  }

  #words(text: string): void {
    this.#show({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  #show(update: Update): void {
    this.#editor
      .update(update)
      .catch((error: unknown) => this.#editor.report(error, 'session/update'));
  }

  #happened(event: SessionEvent): void {
    if (event.type === 'question.changed') this.#questionChanged(event.question);
    if (!this.#turn) return;
    if (event.type === 'subagent.changed') this.#subagentChanged(event.subagent);
    else if (event.type === 'subagent.progressed')
      this.#show({
        sessionUpdate: 'tool_call_update',
        toolCallId: event.subagentId,
        content: [{ type: 'content', content: { type: 'text', text: event.text } }],
      });
    else if (event.type === 'session.ended') this.#turn.ended.abort('cancelled');
  }

  #subagentChanged({ id, name, task, state, outcome }: SubagentView): void {
    const status = STATUS[state];
    const title = clip(`${name}: ${task.replaceAll(/\s+/g, ' ')}`, MAX_TITLE);
    const text = outcome === null ? '' : outcome.text || (outcome.error?.message ?? '');
    const content =
      text === ''
        ? {}
        : { content: [{ type: 'content' as const, content: { type: 'text' as const, text } }] };
    if (this.#shown.has(id))
      this.#show({ sessionUpdate: 'tool_call_update', toolCallId: id, status, ...content });
    else {
      this.#shown.add(id);
      this.#show({
        sessionUpdate: 'tool_call',
        toolCallId: id,
        title,
        kind: 'think',
        status,
        ...content,
      });
    }
    const entries = this.#session.subagents
      .list()
      .filter(({ parentId }) => parentId === null)
      .map((one) => ({
        content: clip(one.task, MAX_TITLE),
        priority: 'medium' as const,
        status: PLAN[STATUS[one.state]],
      }));
    this.#show({ sessionUpdate: 'plan', entries });
  }

  #questionChanged(question: QuestionView): void {
    const { requestId, state } = question;
    if (!OPEN.has(state)) {
      this.#asking.get(requestId)?.stop.abort();
      this.#asking.delete(requestId);
      return;
    }
    if (!this.#turn || this.#put.has(requestId)) return;
    this.#put.add(requestId);
    if (!this.#isAsked(question)) {
      const options = question.options.map(({ label }) => `- ${label}\n`).join('');
      this.#turn.hasWords = true;
      this.#words(`${question.question}\n${options}\n`);
      return;
    }
    const stop = new AbortController();
    const asked = question.kind === 'approval' ? this.#permission : this.#form;
    // Some editors do not respond to a request that has been cancelled.
    const done = raceAbort(asked.call(this, question, stop.signal), stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) this.#editor.report(error, `question ${requestId}`);
      })
      .finally(() => {
        if (this.#asking.get(requestId)?.stop === stop) this.#asking.delete(requestId);
      });
    this.#asking.set(requestId, { stop, done });
  }

  async #permission(question: QuestionView, signal: AbortSignal): Promise<void> {
    const { requestId, action, options } = question;
    const lasting = options.find(({ id }) => id === APPROVE_LASTING);
    const text = wholeWords(question);
    const { outcome } = await this.#editor.permission(
      {
        toolCall: {
          toolCallId: requestId,
          title: clip(question.question, MAX_TITLE),
          kind: 'other',
          status: 'pending',
          rawInput: action ?? {},
          ...(text.length > MAX_TITLE && {
            content: [{ type: 'content' as const, content: { type: 'text' as const, text } }],
          }),
        },
        options: [
          { optionId: 'allow', name: 'Approve', kind: 'allow_once' },
          { optionId: 'reject', name: 'Decline', kind: 'reject_once' },
          ...(lasting || question.mayDiffer !== false
            ? [
                {
                  optionId: APPROVE_LASTING,
                  name: lasting?.description ?? `Approve ${lastingWords(question, 'session')}`,
                  kind: 'allow_always' as const,
                },
              ]
            : []),
        ],
      },
      signal,
    );
    // ACP-SERVED-1
    if (signal.aborted || outcome.outcome !== 'selected') return;
    if (outcome.optionId === APPROVE_LASTING)
      await this.#session.answer(
        requestId,
        lasting ? { optionId: APPROVE_LASTING } : { approved: true, lasts: 'session' },
      );
    if (outcome.optionId !== 'allow' && outcome.optionId !== 'reject') return;
    await this.#session.answer(requestId, { approved: outcome.optionId === 'allow' });
  }

  async #form({ requestId, question, options }: QuestionView, signal: AbortSignal): Promise<void> {
    const choices = options.map(({ id, label, description }) => ({
      const: id,
      title: label,
      ...(description === undefined ? {} : { description }),
    }));
    const given = await this.#editor.form(
      {
        mode: 'form',
        message: question,
        requestedSchema: {
          type: 'object',
          properties:
            choices.length === 0
              ? { [ANSWER]: { type: 'string', title: 'Answer' } }
              : {
                  [ANSWER]: { type: 'string', title: 'Answer', oneOf: choices },
                  [OWN_WORDS]: { type: 'string', title: 'Other' },
                },
          required: choices.length === 0 ? [ANSWER] : [],
        },
      },
      signal,
    );
    // ACP-SERVED-1
    if (signal.aborted || given.action !== 'accept') return;
    const content =
      (given as { readonly content?: Readonly<Record<string, unknown>> }).content ?? {};
    const { [ANSWER]: chosen, [OWN_WORDS]: words } = content;
    if (typeof words === 'string' && words.trim() !== '')
      await this.#session.answer(requestId, { text: words });
    else if (typeof chosen === 'string' && chosen.trim() !== '')
      await this.#session.answer(
        requestId,
        choices.length === 0 ? { text: chosen } : { optionId: chosen },
      );
  }
}

const PLAN = {
  pending: 'pending',
  in_progress: 'in_progress',
  completed: 'completed',
  // A call that has failed is no longer planned.
  failed: 'completed',
} as const;
