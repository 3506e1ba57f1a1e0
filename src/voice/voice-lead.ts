// The lead agent of a voice session: a voice model behind a transport. No other component asks the model to
// speak, so two responses never collide.
//
// Owns:     the connection, and the model's identity on it: its agent, its greeting, the instructions that it
//           received.
// Does not: decide who speaks next (turns), when an offer may be said (outbox) or to whom an utterance is
//           addressed (session), or run tools.

import type { Observable } from 'rxjs';
import type { LeadDriver, Offer } from '../actors/session/lead/lead-driver.ts';
import type { Prompt } from '../actors/notes/note.ts';
import type { NoteMarks } from '../actors/notes/note-marks.ts';
import { directivesNote, greetingNote } from '../actors/conversation/prompts.ts';
import type { LeadSession } from '../actors/session/lead/lead-session.ts';
import type { ShownImage } from '../actors/session/questions/shown-image.ts';
import type { Failure } from '../machines/index.ts';
import { ConfigurationError } from '../values/errors.ts';
import { frameDurationMs, type AudioFrame } from './audio/audio-frame.ts';
import { Line } from './connection/line.ts';
import {
  configurationOf,
  handoverNote,
  lossOf,
  type ReconnectDelays,
} from './connection/line-words.ts';
import type { LineClosed } from './connection/link.ts';
import { Meter } from './connection/meter.ts';
import { replay } from './output/replay.ts';
import { shownNote } from './output/speech-prompts.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
} from './connection/transport.ts';
import { Turns, type TurnsOptions } from './turns/turns.ts';
import type { Utterance } from '../actors/contracts/records.ts';

/** A client that will attach has done so by then. */
const UNATTENDED_MS = 10_000;

export interface VoiceLeadOptions extends ReconnectDelays, Omit<TurnsOptions, 'capabilities'> {
  readonly transport: Transport;
  /** The length of the user's sound that is kept while no model can hear it; the newest is kept. */
  readonly keptAudioMs: number;
  readonly connectTimeoutMs: number;
}

export class VoiceLead implements LeadDriver {
  readonly #core: LeadSession;
  readonly #options: VoiceLeadOptions;
  readonly #line: Line;
  readonly #turns: Turns;
  readonly #meter: Meter;
  #transferId = '';
  /** The current lead agent has not said its greeting yet. */
  #owesGreeting = false;
  /** The process ended before a question of the user was answered. */
  #owesReply = false;
  /** A client has attached, in this process. */
  #hasAttached = false;
  #hasLooked = false;
  /** Ends the look-out for clients; null: there is none, or no longer. */
  #stopLooking: (() => void) | null = null;

  constructor(core: LeadSession, options: VoiceLeadOptions) {
    const { transport } = options;
    this.#core = core;
    this.#options = options;
    this.#meter = new Meter(core);
    this.#turns = new Turns(
      core,
      { ...options, capabilities: transport.capabilities },
      {
        send: (command) => this.#line.send(command),
        isOffLine: () => !this.#line.isUp || this.#line.isHandingOver,
        rested: () => this.#line.rested(),
      },
    );
    const { keptAudioMs, connectTimeoutMs } = options;
    const { reconnectDelayMs: baseDelayMs, maxReconnectDelayMs: maxDelayMs } = options;
    this.#line = new Line(
      withNotes(transport, core.notes),
      core.host,
      {
        configuration: () => this.#configurationOf(core.agents.current.name),
        history: () => this.#history(),
        told: () => this.#history().filter((command) => !this.#turns.memory.isWaiting(command)),
        isAtRest: () => this.#turns.isAtRest,
        ready: (untold) => this.#ready(untold),
        lost: (event) => this.#lost(event),
        renewing: () => this.#renewing(),
        happened: (event) => {
          if (!this.#meter.handle(event)) this.#turns.happened(event);
        },
        spoke: (frame) => this.#turns.spoke(frame),
        replaced: (untold) => this.#replaced(untold),
        transferred: (error) => this.#transferred(error),
      },
      { keptAudioMs, connectTimeoutMs, backoff: { baseDelayMs, maxDelayMs } },
    );
  }

  get audioOut(): Observable<AudioFrame> {
    return this.#turns.voice.audioOut;
  }

  connect(): void {
    this.#turns.listening.reset();
    this.#line.dial(this.#configurationOf(this.#core.agents.current.name));
  }

  hangUp(): void {
    this.#line.hangUp();
  }

  disconnect(): void {
    this.#stopLooking?.();
    this.#turns.stop();
    this.#line.close();
  }

  transfer(transferId: string, to: string): void {
    this.#transferId = transferId;
    this.#line.transfer(this.#configurationOf(to));
  }

  transferEnded(error: Failure | null): void {
    const { current: agent } = this.#core.agents;
    this.#line.endTransfer(error, () => this.#configurationOf(agent.name));
    this.#giveSound();
    // A new connection receives the session settings together with the conversation.
    const isNew = !this.#options.transport.capabilities.updatesSession;
    const told = handoverNote(this.#core.records.conversation.get(this.#transferId));
    if (told && !error && !isNew) this.#turns.memory.tell(told.itemId, told.note);
    this.#turns.next();
  }

  resume(owes: boolean): void {
    this.#owesReply = owes;
    if (this.#core.unit.session.getSnapshot().matches({ client: 'attached' })) this.clientCame();
  }

  greet(): void {
    this.#owesGreeting = this.#core.agents.current.greeting !== undefined;
    if (this.#core.unit.session.getSnapshot().matches({ client: 'attached' })) this.clientCame();
  }

  configure(): void {
    const { current: agent } = this.#core.agents;
    if (this.#line.configure(this.#configurationOf(agent.name))) return;
    const { inForce } = this.#core.records.directives;
    this.note(directivesNote(inForce));
  }

  /** Shows a picture to the model. Returns false if no model is connected. */
  showImage({ mediaType, data }: ShownImage): boolean {
    if (!this.#line.isUp) return false;
    const itemId = this.#core.host.environment.ids.next('img');
    this.#line.send({ type: 'image.add', itemId, mediaType, data });
    this.#turns.memory.noteShown(itemId, shownNote(mediaType));
    return true;
  }

  /** Handles sound of the user, at the transport's rate. */
  userSpoke(frame: AudioFrame): void {
    const { listening } = this.#turns;
    const isSent = this.#line.sendAudio(frame, !listening.hasFloor);
    listening.sound(frameDurationMs(frame), isSent);
  }

  /** Handles a client report of played sound. */
  played(itemId: string, playedMs: number): void {
    this.#turns.voice.played(itemId, playedMs);
  }

  offer(offer: Offer): void {
    this.#turns.offer(offer);
  }

  interrupt(): void {
    this.#turns.interrupt();
  }

  abandon(generation: number): void {
    this.#turns.voice.abandon(generation);
  }

  answerTool(callId: string, output: unknown, respond: boolean, noteId?: string): void {
    this.#turns.answerTool(callId, output, respond, noteId);
  }

  deferTool(callId: string): void {
    this.#turns.deferTool(callId);
  }

  note(prompt: Prompt): void {
    this.#turns.memory.note(prompt);
  }

  heardUser(utterance: Utterance): void {
    this.#turns.heardUser(utterance);
  }

  overheard(utterance: Utterance, subagentName: string, isAnswer: boolean): void {
    this.#turns.overheard(utterance, subagentName, isAnswer);
  }

  /**
   * Handles the arrival of a client. The first one is greeted; before that no one would hear the greeting.
   */
  clientCame(): void {
    this.#hasAttached = true;
    this.#stopLooking?.();
    const greeting = this.#owesGreeting ? greetingNote(this.#core.agents.current) : undefined;
    if (greeting === undefined && !this.#owesReply) return;
    if (greeting !== undefined) this.note(greeting);
    this.#owesGreeting = false;
    this.#owesReply = false;
    this.#turns.askToSpeak();
  }

  /** Handles the loss of the client: the sound that it has not played will not be heard. */
  clientLeft(): void {
    this.#turns.clientLeft();
  }

  #configurationOf(agentName: string): TransportConfiguration {
    return configurationOf(this.#core.agents, agentName);
  }

  #ready(untold: readonly TransportCommand[]): void {
    this.#tell(untold);
    this.#core.receive('session', { type: 'transport.ready' });
    this.#giveSound();
    this.#turns.next();
    this.#lookForClients();
  }

  /**
   * Reports once that something is due and that no client has ever attached: nothing is told before one does, and
   * an app that forgot `attach()` would only hear silence.
   */
  #lookForClients(): void {
    if (this.#hasAttached || this.#hasLooked) return;
    this.#hasLooked = true;
    const { host, projection, unit } = this.#core;
    let isLate = false;
    const look = (): void => {
      const { pending } = unit.outbox.getSnapshot().context;
      const isDue = this.#owesGreeting || this.#owesReply || pending.length > 0;
      if (!isLate || !isDue) return;
      this.#stopLooking?.();
      const message =
        `Something is due, and no client has attached for ${UNATTENDED_MS / 1000} s: nothing is told before one does. ` +
        'Call session.attach() when a client listens, and the function that it returns when the client leaves.';
      this.#core.reportError(new ConfigurationError('NOBODY_ATTACHED', message), 'voice output');
    };
    const late = (): void => {
      isLate = true;
      look();
    };
    const { scheduler } = host.environment;
    const cancel = scheduler.schedule(late, UNATTENDED_MS, { isBackground: true });
    const changes = projection.events.subscribe(({ type }) => {
      if (type === 'delivery.changed') look();
    });
    this.#stopLooking = () => {
      this.#stopLooking = null;
      cancel();
      changes.unsubscribe();
    };
  }

  /** Returns the commands that tell the conversation to a model that knows nothing. */
  #history(): readonly TransportCommand[] {
    const { records, notes } = this.#core;
    return replay(records.conversation.toReplay(), this.#options.transport.capabilities, notes);
  }

  #tell(untold: readonly TransportCommand[]): void {
    this.#turns.memory.retold();
    for (const command of untold) this.#line.send(command);
  }

  /** Sends the kept sound of the user to the current model. */
  #giveSound(): void {
    for (const frame of this.#line.takeSound()) this.userSpoke(frame);
  }

  /** Switches to another connection: for another agent, or because the previous one was about to end. */
  #replaced(untold: readonly TransportCommand[]): void {
    this.#left();
    // The untold messages go first: offers that follow must come after them.
    this.#tell(untold);
    this.#core.receive('session', { type: 'transport.replaced' });
    this.#giveSound();
    this.#turns.next();
  }

  /** Handles the planned close of the connection in use, before the session continues on another one. */
  #renewing(): void {
    this.#left();
    this.#core.receive('session', { type: 'transport.renewing' });
  }

  /** Handles the loss of a model. Words that it was told and did not understand are sent again. */
  #left(): void {
    const hearsAgain = this.#line.hearAgain(this.#turns.unheardMs);
    this.#turns.lineLost(hearsAgain);
  }

  #transferred(error: Failure | null): void {
    const transferId = this.#transferId;
    this.#core.receive('session', { type: 'transfer.ended', transferId, error });
  }

  #lost(event: LineClosed): void {
    const { host, unit } = this.#core;
    const { failures } = unit.session.getSnapshot().context;
    this.#left();
    this.#turns.callsLost();
    const { transport } = this.#options;
    const chance = host.environment.random.next();
    const loss = lossOf(event, transport.name, this.#options, failures, chance);
    this.#core.receive('session', loss);
  }
}

/** Wraps a transport so that its connections mark notes as this session does. */
function withNotes(transport: Transport, notes: NoteMarks): Transport {
  const { name, capabilities } = transport;
  return {
    name,
    capabilities,
    connect: (configuration, context) => transport.connect(configuration, { ...context, notes }),
  };
}
