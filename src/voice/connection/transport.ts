// The port to a voice model. An adapter implements it once for its wire and declares the abilities of that wire in
// `capabilities`; a session branches on capabilities and never on the name of a provider. The session (outbox and
// turns) decides when to speak, never a transport.
//
// Duties of an adapter, on any wire
//   - Each utterance of the user has a start, an end and its words (or the report that it has none), in this order,
//     even if the adapter must infer them.
//   - Each response has a start and an end, and its audio carries the id of the response, even if the wire knows no
//     responses.
//   - A response carries a `responseKey` only if it certainly answers that request: an uncertain response counts as not
//     heard, and the session requests it again.

import type { Observable } from 'rxjs';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { Voice } from '../speech/voice.ts';

/** The lag with which a transport detects speech, in milliseconds: the accuracy of the start of an utterance. */
export const ONSET_MS = 300;

/** The abilities of a transport. The session emulates the missing ones. */
export interface TransportCapabilities {
  /** Rate of the user's audio that the wire accepts; the session resamples. */
  readonly inputSampleRateHz: number;
  /** Rate of the model's audio that the wire sends. */
  readonly outputSampleRateHz: number;
  /**
   * `audio`: the model speaks. `text`: the model writes, in `assistant.transcribed`, without audio; a session then
   * needs `withVoice(transport, …)`.
   */
  readonly output: 'audio' | 'text';
  /**
   * `reported`: the wire reports when the user begins and ends to speak. `inferred`: the adapter infers both from
   * transcripts and similar events. It may report the start late, but `audioStartMs` is as accurate as possible: speech
   * that the model begins after that time answers the utterance and is not interrupted by it.
   */
  readonly utterances: 'reported' | 'inferred';
  /**
   * `utterance.end` can end an utterance that is still being spoken: the wire transcribes the audio up to then. Without
   * this ability the session takes the words known so far as the whole utterance.
   */
  readonly endsUtterances: boolean;
  /**
   * `when_asked`: the model speaks only after a `response.request`. `by_itself`: the model also answers the words and
   * the results that it receives, in responses with the key null.
   */
  readonly responds: 'when_asked' | 'by_itself';
  /** A requested response returns the session's `responseKey`, so that playback can be attributed. */
  readonly correlatesResponses: boolean;
  /** A response under way can be cancelled. */
  readonly cancelsResponses: boolean;
  /** Audio that was generated but not played can be removed from the model's memory. */
  readonly truncatesAudio: boolean;
  /** An item can be removed from the model's conversation. */
  readonly deletesItems: boolean;
  /** The model can speak without leaving a trace in its conversation: `outOfBand`. */
  readonly speaksOutOfBand: boolean;
  /**
   * The wire sends the model's audio at the pace at which it is heard, in step with its words, so that the words are
   * known while they sound. @defaultValue false
   */
  readonly speaksInRealTime?: boolean;
  /** A system message can be added without the model answering it. */
  readonly silentContext: boolean;
  /**
   * The wire has a role for system messages within a conversation. Only its server knows whether a text model behind it
   * takes them (`systemAs` of `localVoice`). @defaultValue true
   */
  readonly takesSystemMessages?: boolean;
  /**
   * `named`: the model calls tools by name with arguments. `delegation`: the model only reports that something is to be
   * done (`delegation.created`), and the session derives the calls.
   */
  readonly toolCalls: 'named' | 'delegation';
  /** A tool call may stay unanswered while the conversation continues. */
  readonly defersToolResults: boolean;
  /**
   * The wire itself schedules when a tool result is spoken: silently, when idle, at once. Each `tool.answer` is then
   * `silent`, and the session requests the speech. A model that responds `by_itself` without this ability speaks to
   * each answer that is not silent; the session requests speech only if the model stays silent.
   */
  readonly schedulesToolResults: boolean;
  /** `session.configure` can change instructions and tools; without this ability a change needs a new connection. */
  readonly updatesSession: boolean;
  /** A new connection can resume where an earlier one ended, with `TransportContext.resume`. */
  readonly resumes: boolean;
  /** `question.expect` helps the wire to hear the end of an answer. @defaultValue false */
  readonly takesOpenQuestion?: boolean;
  /** `image.add` can show pictures to the model. */
  readonly acceptsImages: boolean;
  /** Longest lifetime of a connection, in milliseconds; null if no limit is known. */
  readonly maxConnectionMs: number | null;
}

/** The question that the user may be answering; helps a transport to detect the end of the answer. */
export interface ExpectedAnswer {
  readonly kind: 'choice' | 'free_text' | 'approval';
  /** The options of a `choice`; the other kinds have none. */
  readonly options: readonly {
    readonly id: string;
    readonly label: string;
    readonly description?: string;
  }[];
  /** The text of the question. */
  readonly question?: string;
  /** The name of the tool that an `approval` is about. */
  readonly action?: string;
}

/** A function that the lead model may call, as the wire sends it. */
export interface TransportTool {
  /** The name by which the model calls it. */
  readonly name: string;
  /** Tells the model what the tool does. */
  readonly description: string;
  /** JSON Schema (draft 7) of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The behaviour of the model from now on. */
export interface TransportConfiguration {
  /** The system prompt of the lead agent. */
  readonly instructions: string;
  /** The tools that the model may call. */
  readonly tools: readonly TransportTool[];
}

/** The commands of a session to a transport. A transport carries them out in order; no command returns a promise. */
export type TransportCommand =
  /**
   * Needs `updatesSession`. Answered by `session.configured` or `session.refused`, in the order of the
   * commands; applies to responses that are requested after it.
   */
  | { readonly type: 'session.configure'; readonly configuration: TransportConfiguration }
  /** Adds a message to the model's conversation without asking for an answer. */
  | {
      readonly type: 'message.add';
      readonly itemId: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /** For the role `user`: the runtime wrote or quoted the text; the user did not say it. */
      readonly isNote?: true;
      /**
       * The item that the message follows, if the wire supports it; otherwise the message goes to the end.
       */
      readonly afterItemId?: string;
    }
  /** Shows the model a picture without asking for an answer. Needs `acceptsImages`. */
  | {
      readonly type: 'image.add';
      readonly itemId: string;
      /** A media type such as `image/png`. */
      readonly mediaType: string;
      readonly data: Uint8Array;
    }
  | { readonly type: 'item.delete'; readonly itemId: string }
  /**
   * Answers a tool call without requesting a response. `output` is the text that the model reads. `silent`: the model
   * must not speak to the answer unasked, as far as the wire can prevent that.
   */
  | {
      readonly type: 'tool.answer';
      readonly callId: string;
      readonly output: string;
      readonly silent?: boolean;
      /** The same answer as a note, for a wire that does not know the call because another connection made it. */
      readonly told?: string;
    }
  /**
   * Restores a past tool call after a reconnect, so that the model knows that it made the call. If the call was
   * answered, a `tool.answer` follows.
   */
  | {
      readonly type: 'tool.recall';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
      /** The same call as a note, for a wire that cannot restore calls. */
      readonly told?: string;
    }
  /**
   * Asks the model to speak. The session has at most one request under way; `response.started` and `response.ended`
   * return its `responseKey`.
   */
  | {
      readonly type: 'response.request';
      readonly responseKey: string;
      /** Instructions for this response only, in addition to the conversation: text of the runtime. */
      readonly instructions?: string;
      /**
       * The quoted content that the instructions are about. It is already in the conversation; a wire that treats a
       * request in isolation repeats it, never with the system role.
       */
      readonly about?: string;
      /**
       * Identifies the content to say: a request that repeats a failed one has the same value. For a wire on which a
       * failed request may still be spoken.
       */
      readonly subject?: string;
      /** An earlier request for the same content failed: the adapter uses the strongest means of the wire. */
      readonly insist?: boolean;
      /** The model is not to remember the response (a filler, for example), if the wire can exclude it. */
      readonly outOfBand?: boolean;
    }
  /** Cancels the response under way; answered by `response.ended` with status `cancelled`. */
  | { readonly type: 'response.cancel' }
  /**
   * Withdraws a request that the transport still holds: the transport does not send it and answers with
   * `response.ended` and status `cancelled`. A request that was already sent, and speech under way, are not affected.
   */
  | { readonly type: 'response.withdraw'; readonly responseKey: string }
  /**
   * Needs `endsUtterances`. Ends the utterance that the user is saying, because it is too long or its audio has
   * stopped. The transport answers with `utterance.ended` and the words, as if the user had fallen silent.
   */
  | { readonly type: 'utterance.end'; readonly utteranceId: string }
  /**
   * Needs `takesOpenQuestion`. Names the question that the user may be answering in the utterance that has begun; null
   * if there is none. Affects only how soon the transport reports the end of the utterance.
   */
  | { readonly type: 'question.expect'; readonly question: ExpectedAnswer | null }
  /** The user heard only the first `playedMs` of this item. */
  | { readonly type: 'playout.truncate'; readonly itemId: string; readonly playedMs: number }
  /**
   * Names the calls that the delegation means; each `tool.answer` of one of them belongs to the delegation. Without
   * calls the delegation is done, and the model is to say nothing.
   */
  | {
      readonly type: 'delegation.accept';
      readonly delegationId: string;
      readonly callIds: readonly string[];
    }
  /** The delegation means no call: the model is to say this text. */
  | { readonly type: 'delegation.answer'; readonly delegationId: string; readonly text: string };

/** The events of a transport. `raw` keeps the message of the wire. */
export type TransportEvent =
  /**
   * The wire is up and the model configured; the transport queues earlier commands. `resumed`: the model remembers
   * everything that the connection of `TransportContext.resume` received; the transport resends what its server had not
   * received, and the session sends the messages added since. `told`: the model knows `TransportContext.history` as it
   * was when the transport requested it.
   */
  | { readonly type: 'transport.ready'; readonly resumed?: boolean; readonly told?: boolean }
  /** The wire will end this connection in `inMs`; the session opens a new one before. */
  | { readonly type: 'transport.expiring'; readonly inMs: number }
  /**
   * A later connection can resume this one with this value, which replaces the previous value. Null: the connection
   * cannot be resumed any more. A session that rotates closes this connection before it opens the next.
   */
  | { readonly type: 'transport.resumable'; readonly resume: unknown }
  /** The model has the configuration of the oldest unanswered `session.configure`. */
  | { readonly type: 'session.configured' }
  /**
   * The model refused the configuration of the oldest unanswered `session.configure`; the previous one still applies.
   */
  | { readonly type: 'session.refused'; readonly code: string; readonly message: string }
  /** The wire is closed. No event follows. */
  | {
      readonly type: 'transport.closed';
      readonly code: number | null;
      readonly reason: string;
      readonly retryable: boolean;
    }
  /** The user began to speak. `audioStartMs` counts from the first audio of the connection. */
  | {
      readonly type: 'utterance.started';
      readonly utteranceId: string;
      readonly audioStartMs: number;
    }
  | { readonly type: 'utterance.ended'; readonly utteranceId: string }
  /** A partial or final transcript of the user; `utteranceId` is also the id of the conversation item. */
  | {
      readonly type: 'utterance.transcribed';
      readonly utteranceId: string;
      readonly text: string;
      readonly final: boolean;
    }
  /** The utterance could not be transcribed. */
  | {
      readonly type: 'utterance.untranscribed';
      readonly utteranceId: string;
      readonly reason: string;
    }
  | {
      readonly type: 'response.started';
      readonly responseId: string;
      readonly responseKey: string | null;
    }
  /** Generation ended (playback may continue). `audio` lists the generated audio in order. */
  | {
      readonly type: 'response.ended';
      readonly responseId: string;
      readonly responseKey: string | null;
      readonly status: 'completed' | 'cancelled' | 'failed' | 'incomplete';
      /** `nothing_said`: the model was asked to speak and did not begin in time. */
      readonly reason: string | null;
      readonly audio: readonly { readonly itemId: string; readonly durationMs: number }[];
    }
  /** The transcript of the model's speech: partials append to the earlier ones, the final one is whole. */
  | {
      readonly type: 'assistant.transcribed';
      readonly itemId: string;
      readonly responseId: string;
      readonly text: string;
      readonly final: boolean;
    }
  /** The model thinks or works without a response. `working` lasts until the model reports `idle`. */
  | { readonly type: 'model.changed'; readonly status: 'working' | 'idle' }
  /** The model wants a task done; needs `toolCalls: 'delegation'`. */
  | { readonly type: 'delegation.created'; readonly delegationId: string }
  /** The usage of the connection since its previous report; null for a count that the wire does not give. */
  | {
      readonly type: 'usage.reported';
      readonly inputTokens: number | null;
      readonly outputTokens: number | null;
      /** The part of the input that the provider read from its cache. @defaultValue unknown, as for the counts below */
      readonly cachedInputTokens?: number;
      /** The parts of the input and output that are audio. */
      readonly audioInputTokens?: number;
      readonly audioOutputTokens?: number;
      readonly raw: unknown;
    }
  /** The remaining allowance as the wire reports it. */
  | { readonly type: 'limits.reported'; readonly limits: readonly TransportLimit[] }
  /** The model no longer wants the result of this call. */
  | { readonly type: 'tool.cancelled'; readonly callId: string }
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      /** JSON text as the model wrote it; not validated. */
      readonly arguments: string;
      readonly responseId: string;
    }
  /**
   * The wire refused a command or sent an invalid message; the connection continues. `responseKey` names the request
   * that was refused; null for anything else.
   */
  | {
      readonly type: 'transport.error';
      readonly code: string;
      readonly message: string;
      readonly responseKey: string | null;
      readonly raw: unknown;
    };

/** One rate limit of the provider. */
export interface TransportLimit {
  /** A name such as `requests` or `tokens`. */
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** Time until the allowance is full again, in milliseconds. */
  readonly resetInMs: number;
}

/** One connection to a voice model. */
export interface TransportConnection {
  /** Hot; begins with the events since `connect`, completes after `transport.closed`. Takes one subscriber. */
  readonly events: Observable<TransportEvent>;
  /** The model's audio, generated faster than it plays. Hot; one subscriber. */
  readonly audio: Observable<AudioFrame>;
  /**
   * Sends the user's audio at `capabilities.inputSampleRateHz`. Until the wire is ready, audio is queued and the oldest
   * is dropped.
   */
  sendAudio(frame: AudioFrame): void;
  /** Sends a command to the model. */
  send(command: TransportCommand): void;
  /** Closes the wire; resolves after `transport.closed`. Safe to call twice. */
  close(): Promise<void>;
}

/** A factory of connections to a voice model. An adapter constructs it; the factory keeps no connection. */
export interface Transport {
  /** The name for logs, the inspector, and `price` of the runtime. */
  readonly name: string;
  /** The model as its provider names it, for `price` of the runtime. @defaultValue `name` */
  readonly modelId?: string;
  /** The abilities of the wire and of the model behind it. */
  readonly capabilities: TransportCapabilities;
  /** The lead of a session by voice over this transport: `spokenLead` of `offstage/transport`. */
  readonly lead: { readonly leadsBy: 'voice' };
  /** The voice of the session that speaks for the model, if there is one; fillers can use the same voice. */
  readonly voice?: Voice;
  /** Opens a connection. Never throws: a failure arrives as `transport.closed`. */
  connect(configuration: TransportConfiguration, context: TransportContext): TransportConnection;
}

/** The context that the session passes to a transport. */
export interface TransportContext {
  /** Time, ids and randomness. */
  readonly environment: Environment;
  /**
   * The last value of `transport.resumable`, if the transport `resumes`. A wire that cannot use the value begins anew.
   */
  readonly resume?: unknown;
  /**
   * Returns the conversation so far, oldest first, as the commands that tell it to a new model. A wire that accepts
   * history only with its first message calls this at most once and then reports `told`. Other wires receive the
   * history after `transport.ready`.
   */
  readonly history?: () => readonly TransportCommand[];
  /**
   * Writes the notes of the session, for components that also add messages. @defaultValue without marks
   */
  readonly notes?: NoteWriter;
}
