// The lead agent of a voice session: a voice model behind a transport. It is the only
// one that asks the model to speak, so two responses never collide.
//
// Owns:     what is responded to next.
// Does not: decide when an offer may be said (outbox) or who an utterance is for
//           (session), run tools, hold connections (line), responses, audio (speech) or
//           the user's speech (listening).
//
// Invariants
//   F1. One response at a time (responses). What asks for another one meanwhile is answered
//       by the next.
//   F2. Nothing is asked of the model while the user has the floor (listening).
//   F3. The user's voice stops ours at once; what the model remembers is what was heard.
//   F5. Interrupting the voice cancels no subagent, unless it wants that (`onBargeIn`).

import { Subject, type Observable } from 'rxjs';
import type { Lead, Offer, Utterance } from '../actors/session/lead.ts';
import { overheardNote, OWED_REPLY_NOTE } from '../actors/session/prompts.ts';
import type { LeadSession } from '../actors/session/session-parts.ts';
import type { Failure } from '../machines/index.ts';
import { Attempt } from './attempt.ts';
import { frameDurationMs, type AudioFrame } from './audio-frame.ts';
import { Line, type LineClosed } from './line.ts';
import { configurationOf, lossOf, transferNote, type ReconnectDelays } from './line-words.ts';
import { Listening } from './listening.ts';
import type { Played } from './playout.ts';
import { replay } from './replay.ts';
import { Responses } from './responses.ts';
import { Speech } from './speech.ts';
import { offerInstructions } from './speech-prompts.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportEvent,
} from './transport.ts';
import { VoiceTranscript } from './voice-transcript.ts';

export interface VoiceLeadOptions extends ReconnectDelays {
  readonly transport: Transport;
  /** So much of an item's audio must have been played for it to count as heard. */
  readonly heardFraction: number;
  /** The client reports what it had played within this time after it was told to stop. */
  readonly clearReportMs: number;
  /** A response that shows no sign of life for so long has failed. */
  readonly responseTimeoutMs: number;
  /** A transcript may come so long after the utterance. */
  readonly settleTimeoutMs: number;
  /** So much of the user's sound is kept while the lead agent changes; the newest. */
  readonly transferAudioMs: number;
}

export class VoiceLead implements Lead {
  readonly #core: LeadSession;
  readonly #options: VoiceLeadOptions;
  readonly #audioOut = new Subject<AudioFrame>();
  readonly #speech: Speech;
  readonly #transcript: VoiceTranscript;
  readonly #line: Line;
  readonly #responses: Responses;
  readonly #listening: Listening;
  /** Calls of the model that it gets an answer to at once. */
  readonly #awaited = new Set<string>();
  #wantsReply = false;
  /** A reply was cut off for something urgent: it is given afterwards. */
  #owesReply = false;
  #hasConnected = false;
  #transferId = '';
  /** Whoever leads has not said its greeting yet. */
  #owesGreeting = false;

  constructor(core: LeadSession, options: VoiceLeadOptions) {
    this.#core = core;
    this.#options = options;
    this.#transcript = new VoiceTranscript(core);
    this.#listening = new Listening(
      core,
      this.#transcript,
      {
        brokeIn: () => this.#bargeIn(),
        meantNothing: (utteranceId) => this.#forgetItem(utteranceId),
        settled: () => this.#next(),
      },
      options.settleTimeoutMs,
    );
    const tell = (type: string): void => core.receive('session', { type });
    this.#speech = new Speech(
      {
        started: () => tell('playout.started'),
        drained: () => tell('playout.drained'),
        begun: (attempt) => this.#toOutbox('delivery.playing', attempt),
        heard: ({ offer: { generation } }) =>
          core.receive('outbox', { type: 'delivery.heard', generation, grade: 'played' }),
        interrupted: (attempt) => this.#toOutbox('delivery.interrupted', attempt),
        clear: () => core.projection.emit({ type: 'playout.clear' }),
        cut: (item) => this.#truncate(item),
        settled: () => this.#next(),
      },
      core.host.environment,
      options.clearReportMs,
    );
    this.#responses = new Responses(
      {
        send: (command) => this.#line.send(command),
        requested: () => tell('response.requested'),
        ended: (said, status) => this.#responded(said, status),
        settled: () => this.#next(),
        interrupted: (attempt) => this.#toOutbox('delivery.interrupted', attempt),
        failed: (attempt) => this.#toOutbox('delivery.failed', attempt),
        report: (error) => core.reportError(error, 'transport'),
      },
      this.#speech,
      core.host.environment,
      options.transport.capabilities,
      options.responseTimeoutMs,
    );
    this.#line = new Line(
      options.transport,
      core.host,
      {
        ready: () => this.#ready(),
        lost: (event) => this.#lost(event),
        happened: (event) => this.#happened(event),
        spoke: (frame) => this.#modelSpoke(frame),
        replaced: () => this.#replaced(),
        transferred: (error) => this.#transferred(error),
      },
      options.transferAudioMs,
    );
  }

  get audioOut(): Observable<AudioFrame> {
    return this.#audioOut.asObservable();
  }

  connect(): void {
    this.#listening.reset();
    this.#line.dial(this.#configurationOf(this.#core.leads.agent.name));
  }

  hangUp(): void {
    this.#line.hangUp();
  }

  disconnect(): void {
    // What was said last gets no reply any more, also when the cut below is settled.
    this.#wantsReply = false;
    this.#responses.stopWatching();
    this.#listening.reset();
    this.#speech.stopWaiting();
    this.#line.hangUp();
    this.#audioOut.complete();
  }

  transfer(transferId: string, to: string): void {
    this.#transferId = transferId;
    this.#line.transfer(this.#configurationOf(to));
  }

  transferEnded(error: Failure | null): void {
    const { agent } = this.#core.leads;
    const kept = this.#line.endTransfer(error, () => this.#configurationOf(agent.name));
    for (const frame of kept) this.userSpoke(frame);
    // A new connection has been told of it with everything else.
    const isNew = !this.#options.transport.capabilities.updatesSession;
    const note = transferNote(this.#core.books.conversation.get(this.#transferId));
    if (note && !error && !isNew) this.#send(note);
    this.#next();
  }

  greet(): void {
    this.#owesGreeting = this.#core.leads.agent.greeting !== undefined;
    if (this.#core.unit.session.getSnapshot().matches({ client: 'attached' })) this.clientCame();
  }

  configure(): void {
    const { agent } = this.#core.leads;
    if (this.#line.configure(this.#configurationOf(agent.name))) return;
    const { inForce } = this.#core.books.directives;
    const lines = inForce.map(({ key, value }) => `${key}: ${value}`);
    this.note(`[SYSTEM: Directives from now on: ${lines.join('; ') || 'none'}]`);
  }

  /** Sound of the user, at the transport's rate. */
  userSpoke(frame: AudioFrame): void {
    if (this.#line.sendAudio(frame)) this.#listening.sent(frameDurationMs(frame));
  }

  /** The client's word on what it played. */
  played(itemId: string, playedMs: number): void {
    this.#speech.played(itemId, playedMs);
  }

  offer(offer: Offer): void {
    const attempt = new Attempt(offer, this.#options.heardFraction);
    if (offer.answersCallId !== null)
      this.#send({ type: 'tool.answer', callId: offer.answersCallId, output: offer.prompt });
    else this.#tellOnce(offer);
    // Where the journal takes its time, somebody may have begun to speak meanwhile.
    if (this.#responses.isUnderWay || this.#listening.hasFloor) {
      this.#toOutbox('delivery.interrupted', attempt);
      return;
    }
    this.#responses.say(attempt, offerInstructions(offer));
  }

  /** What was offered before is in the model's conversation already. */
  #tellOnce({ deliveryId, prompt: text }: Offer): void {
    const itemId = `${deliveryId}.note`;
    if (this.#core.books.conversation.get(itemId)) return;
    this.#transcript.note(text, itemId);
    this.#send({ type: 'message.add', itemId, role: 'system', text });
  }

  interrupt(): void {
    this.#owesReply ||= this.#responses.isReply;
    this.#responses.stop();
    // While only a tool works there is a pause.
    if (!this.#responses.isUnderWay) this.#core.receive('session', { type: 'response.ended' });
  }

  abandon(generation: number): void {
    if (this.#speech.attempt?.offer.generation !== generation) return;
    this.#speech.giveUp();
    this.#responses.stop();
  }

  answerTool(callId: string, output: unknown, respond: boolean): void {
    this.#send({
      type: 'tool.answer',
      callId,
      output: typeof output === 'string' ? output : JSON.stringify(output ?? null),
    });
    this.#awaited.delete(callId);
    if (respond) this.#wantsReply = true;
    this.#next();
  }

  deferTool(callId: string): void {
    this.#awaited.delete(callId);
    this.#next();
  }

  note(text: string): void {
    const itemId = this.#transcript.note(text);
    this.#send({ type: 'message.add', itemId, role: 'system', text });
  }

  heardUser({ id, text, typed }: Utterance): void {
    if (typed) {
      this.#send({ type: 'message.add', itemId: id, role: 'user', text });
      this.#responses.stop();
    }
    this.#wantsReply = true;
    this.#owesReply = false;
    this.#core.receive('session', { type: 'response.requested' });
    this.#listening.understood(id);
    this.#next();
  }

  overheard({ id, text, typed }: Utterance, subagentName: string): void {
    if (!typed) this.#forgetItem(id);
    this.note(overheardNote(text, subagentName));
    this.#listening.understood(id);
    this.#next();
  }

  /** Somebody is there. The first one is greeted; before that nobody would hear it. */
  clientCame(): void {
    const { greeting } = this.#core.leads.agent;
    if (greeting === undefined || !this.#owesGreeting) return;
    this.#owesGreeting = false;
    this.note(`[SYSTEM: ${greeting}]`);
    this.#wantsReply = true;
    this.#next();
  }

  /** The client is gone: what it has not played nobody will hear. */
  clientLeft(): void {
    this.#listening.giveUpWaiting();
    this.#speech.stopWaiting();
    this.#speech.giveUp();
    this.#responses.stop();
    this.#speech.stopWaiting();
  }

  #happened(event: TransportEvent): void {
    const core = this.#core;
    switch (event.type) {
      case 'utterance.started':
      case 'utterance.ended':
      case 'utterance.transcribed':
      case 'utterance.untranscribed':
        this.#listening.happened(event);
        break;
      case 'response.started':
        this.#responses.started(event.responseId, event.responseKey);
        break;
      case 'response.ended':
        this.#responses.ended(event);
        break;
      case 'assistant.transcribed':
        this.#transcript.modelSaid(event);
        break;
      case 'tool.called':
        // One that is known is the same message again: it has its answer, or will have it.
        if (core.books.calls.has(event.callId) || core.books.conversation.get(event.callId)) break;
        this.#awaited.add(event.callId);
        core.tell('calls', {
          type: 'tool.called',
          callId: event.callId,
          name: event.name,
          arguments: event.arguments,
          requestId: core.books.requestId,
        });
        break;
      case 'transport.error':
        core.reportError(new Error(`${event.code}: ${event.message}`), 'transport');
        if (event.responseKey !== null) this.#responses.refused(event.responseKey, event.code);
        break;
      case 'tool.cancelled':
        this.#awaited.delete(event.callId);
        core.receive(`call:${event.callId}`, { type: 'call.cancel' });
        this.#next();
        break;
      // The line deals with these.
      case 'transport.ready':
      case 'transport.closed':
      case 'session.configured':
      case 'session.refused':
        break;
    }
  }

  #configurationOf(agentName: string): TransportConfiguration {
    return configurationOf(this.#core.leads, agentName);
  }

  #ready(): void {
    if (this.#hasConnected) this.#tellAll();
    this.#hasConnected = true;
    this.#core.receive('session', { type: 'transport.ready' });
    this.#next();
  }

  /** A connection that is new knows nothing. */
  #tellAll(): void {
    for (const command of replay(this.#core.books.conversation.toReplay())) this.#send(command);
  }

  /** The other agent is on a line of its own. */
  #replaced(): void {
    this.#forgetLine();
    this.#core.receive('session', { type: 'utterance.settled' });
    this.#tellAll();
  }

  #transferred(error: Failure | null): void {
    const transferId = this.#transferId;
    this.#core.receive('session', { type: 'transfer.ended', transferId, error });
  }

  /** What was in the making on a connection that is not in use any more comes to nothing. */
  #forgetLine(): void {
    this.#speech.completedAll();
    // The words that were still to be answered are part of what the next connection is told.
    this.#wantsReply = this.#responses.lost() || this.#wantsReply;
    this.#listening.reset();
  }

  #lost(event: LineClosed): void {
    const { host, unit } = this.#core;
    const { failures } = unit.session.getSnapshot().context;
    this.#forgetLine();
    this.#awaited.clear();
    const { transport } = this.#options;
    const chance = host.environment.random.next();
    const loss = lossOf(event, transport.name, this.#options, failures, chance);
    this.#core.receive('session', loss);
  }

  /** The model shall not answer it, nor believe that it was meant. */
  #forgetItem(itemId: string): void {
    if (this.#options.transport.capabilities.deletesItems)
      this.#send({ type: 'item.delete', itemId });
  }

  #responded(said: Attempt | null, status: string): void {
    if (!this.#owesReply || !said || status !== 'completed') return;
    this.#owesReply = false;
    this.note(OWED_REPLY_NOTE);
    this.#wantsReply = true;
  }

  #modelSpoke(frame: AudioFrame): void {
    if (!this.#responses.wants(frame)) return;
    this.#speech.sent(frame);
    this.#audioOut.next(frame);
  }

  #bargeIn(): void {
    const isSpeaking = this.#responses.isUnderWay || !this.#speech.isSilent;
    if (!isSpeaking) return;
    for (const subagent of this.#core.delegation.live)
      if (subagent.definition.onBargeIn === 'cancel') subagent.cancel('the user broke in');
    this.#responses.stop();
  }

  /** The model shall remember what was heard, not what was made. */
  #truncate(cut: Played): void {
    const { itemId, playedMs } = cut;
    if (this.#options.transport.capabilities.truncatesAudio)
      this.#send({ type: 'playout.truncate', itemId, playedMs });
    this.#transcript.cut(cut);
  }

  /** Asks for the reply that is wanted, if nothing is in its way. */
  #next(): void {
    const isBusy = this.#responses.isUnderWay || this.#listening.hasFloor;
    if (isBusy || !this.#line.isUp || this.#line.isHandingOver) return;
    if (this.#awaited.size > 0) return;
    if (this.#wantsReply) {
      this.#wantsReply = false;
      this.#responses.reply();
    } else this.#core.receive('session', { type: 'response.ended' });
  }

  #toOutbox(type: string, { offer }: Attempt): void {
    this.#core.receive('outbox', { type, generation: offer.generation });
  }

  #send(command: TransportCommand): void {
    this.#line.send(command);
  }
}
