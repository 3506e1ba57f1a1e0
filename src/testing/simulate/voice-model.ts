// An in-memory voice model in simulated time. It hears the user, speaks as fast as real models, remembers the
// conversation, can be cancelled and truncated, and loses its connections. It implements the transport port directly,
// without a protocol. For tests with protocols, use the voice server.
//
// Owns:     one connection, and the model's memory on it.
// Does not: decide what it says (`respond` does).

import { Subject } from 'rxjs';
import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportConnection,
  TransportEvent,
} from '../../voice/connection/transport.ts';
import type {
  ConformanceMemory,
  ConformanceModel,
  ConformanceReply,
  ConformanceStep,
  ConformanceTranscript,
  ConformanceTurn,
  ConformanceWorld,
} from '../conformance/stage.ts';
import { KNOWN } from './promises/check.ts';

const READY_MS = 30;
const THINKING_MS = 150;
const TRANSCRIBING_MS = 120;
const CHAR_MS = 60;
/** A speech detector needs some more audio after an utterance before it recognises the end. */
const DEAF_AFTER_MS = 1000;
const LISTENS_EVERY_MS = 500;
/** With a television on, the audio continues immediately after the utterance. */
const NOISE_AFTER_MS = 200;
/** The duration of a chunk of audio, and the time between two chunks. */
const CHUNK_MS = 600;
const CHUNK_EVERY_MS = 150;

const CAUSES = {
  system: 'message',
  user: 'utterance',
  result: 'result',
  call: 'nothing',
  assistant: 'nothing',
} as const satisfies Record<ConformanceMemory['kind'], ConformanceTurn['cause']>;

type Item = { -readonly [Key in keyof ConformanceMemory]: ConformanceMemory[Key] } & {
  readonly id: string;
};
type Reply = { -readonly [Key in keyof ConformanceReply]: ConformanceReply[Key] };

/** Returns the id under which the model remembers the text of a command, or null if the command contains no text. */
function idOf(command: TransportCommand): string | null {
  if (command.type === 'message.add') return command.itemId;
  if (command.type === 'tool.recall') return command.callId;
  return command.type === 'tool.answer' ? `${command.callId} answered` : null;
}

interface Response {
  readonly responseId: string;
  readonly responseKey: string | null;
  readonly steps: ConformanceStep[];
  readonly audio: { readonly itemId: string; durationMs: number }[];
  readonly remembers: boolean;
}

/** The user's speech, or noise. */
interface Utterance {
  readonly utteranceId: string;
  readonly text: string;
  readonly transcript: ConformanceTranscript;
  readonly ended: () => void;
}

export interface VoiceModelPorts extends ConformanceWorld {
  readonly capabilities: TransportCapabilities;
  nextId(prefix: string): string;
}

export class VoiceModel implements ConformanceModel, TransportConnection {
  readonly events = new Subject<TransportEvent>();
  readonly audio = new Subject<AudioFrame>();
  readonly replies: Reply[] = [];
  readonly memory: Item[];
  readonly user = {
    says: (
      text: string,
      speech: { readonly durationMs: number; readonly transcript: ConformanceTranscript },
    ) => this.#hear(text, speech.durationMs, speech.transcript),
  };
  isOpen = true;
  readonly #ports: VoiceModelPorts;
  readonly #timers = new Set<() => void>();
  #response: Response | null = null;
  #said: Reply | null = null;
  #isSilent = false;
  #utterance: Utterance | null = null;
  /** Whether the microphone always picks up some audio. */
  #isNoisy = false;
  #soundAt = 0;
  /** The duration of the user's audio so far. */
  #soundMs = 0;

  constructor(ports: VoiceModelPorts, remembered: readonly Item[], ready: TransportEvent) {
    this.#ports = ports;
    this.memory = [...remembered];
    this.#after(READY_MS, () => {
      this.#tell(ready);
      if (ports.capabilities.resumes)
        this.#tell({ type: 'transport.resumable', resume: { memory: this.memory } });
    });
  }

  sendAudio(frame: AudioFrame): void {
    this.#soundMs += frameDurationMs(frame);
    this.#soundAt = this.#ports.environment.clock.now();
  }

  send(command: TransportCommand): void {
    if (!this.isOpen) return;
    const id = idOf(command);
    if (id !== null && this.memory.some((item) => item.id === id)) {
      const message = `It knows ${id} already`;
      this.#tell({ type: 'transport.error', code: KNOWN, message, responseKey: null, raw: null });
      return;
    }
    switch (command.type) {
      case 'session.configure':
        this.#after(0, () => this.#tell({ type: 'session.configured' }));
        break;
      case 'message.add':
        this.#remember(command.isNote ? 'system' : command.role, command.text, command.itemId);
        break;
      case 'item.delete':
        this.#forget(command.itemId);
        break;
      case 'tool.recall':
        this.#remember('call', `${command.name} ${command.arguments}`, command.callId);
        break;
      case 'tool.answer':
        this.#remember('result', command.output, `${command.callId} answered`);
        if (this.#answersByItself && command.silent !== true)
          this.#turnSoon(() => this.#turnOf('result', command.output));
        break;
      case 'response.request': {
        const { responseKey, instructions = null, outOfBand = false } = command;
        this.#turnSoon(() => this.#turnAsked(instructions), responseKey, !outOfBand);
        break;
      }
      case 'response.cancel':
        this.#finish('cancelled');
        break;
      case 'utterance.end':
        if (this.#utterance?.utteranceId === command.utteranceId) this.#heard(this.#utterance);
        break;
      case 'playout.truncate':
        this.#truncate(command.itemId, command.playedMs);
        break;
      case 'response.withdraw':
      case 'question.expect':
      case 'image.add':
      case 'delegation.accept':
      case 'delegation.answer':
        break;
    }
  }

  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.#stop();
    // As with a real provider, the connection ends only after the caller has finished closing it.
    await Promise.resolve();
    this.#end({ type: 'transport.closed', code: 1000, reason: 'hung up', retryable: false });
  }

  drop(): void {
    if (!this.isOpen) return;
    this.#stop();
    this.#end({ type: 'transport.closed', code: 1006, reason: 'lost', retryable: true });
  }

  strike(fault: string, on = true): void {
    if (fault === 'silence') this.#isSilent = on;
    else if (fault === 'television') this.#isNoisy = on;
    else if (fault === 'expiry') {
      this.#tell({ type: 'transport.expiring', inMs: 5000 });
      this.#after(5000, () => this.drop());
    }
  }

  get #answersByItself(): boolean {
    return this.#ports.capabilities.responds === 'by_itself';
  }

  #hear(text: string, durationMs: number, transcript: ConformanceTranscript): Promise<void> {
    // A new utterance ends the previous one.
    if (this.#utterance) this.#heard(this.#utterance);
    const utteranceId = this.#ports.nextId('user');
    return new Promise((resolve) => {
      const utterance = { utteranceId, text, transcript, ended: resolve };
      this.#utterance = utterance;
      this.#tell({ type: 'utterance.started', utteranceId, audioStartMs: this.#soundMs });
      if (this.#answersByItself) this.#finish('cancelled');
      this.#after(durationMs, () => this.#listenOn(utterance));
    });
  }

  /** Ends the utterance after it has been followed by silence. */
  #listenOn(utterance: Utterance): void {
    if (this.#utterance !== utterance) return;
    const isDeaf = this.#ports.environment.clock.now() - this.#soundAt >= DEAF_AFTER_MS;
    if (isDeaf || this.#isNoisy) this.#after(LISTENS_EVERY_MS, () => this.#listenOn(utterance));
    else this.#heard(utterance);
  }

  #heard({ utteranceId, text, transcript, ended }: Utterance): void {
    this.#utterance = null;
    this.#tell({ type: 'utterance.ended', utteranceId });
    this.#remember('user', text, utteranceId);
    ended();
    const lateMs = typeof transcript === 'object' ? transcript.lateMs : TRANSCRIBING_MS;
    this.#after(lateMs, () => {
      const words = { type: 'utterance.transcribed', utteranceId, text, final: true } as const;
      this.#tell(words);
      if (transcript === 'duplicated') this.#tell(words);
    });
    if (this.#answersByItself) this.#turnSoon(() => this.#turnOf('utterance', text));
    if (this.#isNoisy)
      this.#after(NOISE_AFTER_MS, () => {
        if (this.#isNoisy && !this.#utterance) void this.#hear('', 0, 'prompt');
      });
  }

  /** Returns a turn that was requested, in which the model speaks about the latest message. */
  #turnAsked(instructions: string | null): ConformanceTurn {
    const last = this.memory.at(-1);
    const cause = CAUSES[last?.kind ?? 'assistant'];
    return this.#turnOf(cause, cause === 'nothing' ? '' : (last?.text ?? ''), instructions);
  }

  /** Returns a turn with this connection's own memory, because a session has two connections while it rotates them. */
  #turnOf(
    cause: ConformanceTurn['cause'],
    text: string,
    instructions: string | null = null,
  ): ConformanceTurn {
    return { cause, text, instructions, memory: [...this.memory] };
  }

  #turnSoon(
    turn: () => ConformanceTurn,
    responseKey: string | null = null,
    remembers = true,
  ): void {
    this.#after(THINKING_MS, () => {
      if (this.#isSilent) return;
      // The model gives only one response at a time. If a request arrives during a response, it is handled afterwards.
      // A model that speaks without a request does not interrupt the user.
      const isPolite = this.#answersByItself && this.#utterance !== null;
      if (this.#response || isPolite) this.#turnSoon(turn, responseKey, remembers);
      else this.#respond(turn(), responseKey, remembers);
    });
  }

  #respond(turn: ConformanceTurn, responseKey: string | null, remembers: boolean): void {
    const responseId = this.#ports.nextId('resp');
    const response = {
      responseId,
      responseKey,
      steps: [...this.#ports.respond(turn)],
      audio: [],
      remembers,
    };
    this.#response = response;
    this.#tell({ type: 'response.started', responseId, responseKey });
    // The listener for the event may have cancelled the response.
    if (this.#response === response) this.#next();
  }

  #next(): void {
    const response = this.#response;
    if (!response) return;
    const step = response.steps.shift();
    if (!step) this.#finish('completed');
    else if ('say' in step) this.#say(response, step.say);
    else if ('waitMs' in step) this.#after(step.waitMs, () => this.#next());
    else {
      const { responseId } = response;
      const callId = this.#ports.nextId('call');
      const json = JSON.stringify(step.arguments);
      this.#remember('call', `${step.call} ${json}`, callId);
      if (this.#ports.capabilities.toolCalls === 'delegation')
        this.#tell({ type: 'delegation.created', delegationId: callId });
      else
        this.#tell({
          type: 'tool.called',
          responseId,
          callId,
          name: step.call,
          arguments: json,
        });
      this.#next();
    }
  }

  #say({ responseId, audio, remembers }: Response, text: string): void {
    const itemId = this.#ports.nextId('item');
    const made = { itemId, durationMs: 0 };
    audio.push(made);
    const reply: Reply = { text, audioMs: 0, status: 'in_progress' };
    this.replies.push(reply);
    this.#said = reply;
    if (remembers) this.#remember('assistant', text, itemId);
    this.#tell({ type: 'assistant.transcribed', itemId, responseId, text, final: true });
    const wholeMs = text.length * CHAR_MS;
    const more = (): void => {
      const ms = Math.min(CHUNK_MS, wholeMs - made.durationMs);
      made.durationMs += ms;
      reply.audioMs += ms;
      const { outputSampleRateHz: sampleRateHz } = this.#ports.capabilities;
      const samples = new Int16Array((sampleRateHz * ms) / 1000);
      this.audio.next({ samples, sampleRateHz, itemId, responseId });
      this.#after(CHUNK_EVERY_MS, () => {
        if (this.#response?.responseId !== responseId) return;
        if (made.durationMs < wholeMs) more();
        else {
          reply.status = 'completed';
          this.#said = null;
          this.#next();
        }
      });
    };
    more();
  }

  #finish(status: 'completed' | 'cancelled'): void {
    const response = this.#response;
    if (!response) return;
    this.#response = null;
    if (this.#said) this.#said.status = status;
    this.#said = null;
    const { responseId, responseKey, audio } = response;
    this.#tell({ type: 'response.ended', responseId, responseKey, status, reason: null, audio });
  }

  #truncate(itemId: string, playedMs: number): void {
    const item = this.memory.find(({ id }) => id === itemId);
    if (item) item.text = item.text.slice(0, Math.floor(playedMs / CHAR_MS));
  }

  #remember(kind: Item['kind'], text: string, id: string): void {
    this.memory.push({ kind, text, id });
  }

  #forget(itemId: string): void {
    const at = this.memory.findIndex(({ id }) => id === itemId);
    if (at >= 0) this.memory.splice(at, 1);
  }

  #tell(event: TransportEvent): void {
    if (this.isOpen) this.events.next(event);
  }

  #stop(): void {
    this.isOpen = false;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #end(event: TransportEvent): void {
    this.events.next(event);
    this.events.complete();
    this.audio.complete();
  }

  #after(ms: number, task: () => void): void {
    const cancel = this.#ports.environment.scheduler.schedule(() => {
      this.#timers.delete(cancel);
      task();
    }, ms);
    this.#timers.add(cancel);
  }
}
