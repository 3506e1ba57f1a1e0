// The port to a voice model. An adapter implements it for its protocol and declares the protocol's abilities in
// `capabilities`; a session branches on capabilities, never on a provider's name. The session (outbox and turns)
// decides when to speak; a transport never does.
//
// An adapter's duties, with any provider
//   - Each user utterance has a start, an end and its words (or a report that it has none), in this order, even if the
//     adapter must infer them.
//   - Each response has a start and an end, and its audio has the response's id, even if the protocol has no responses.
//   - A response has a `responseKey` only if it certainly belongs to that request: an uncertain response counts as not
//     heard, and the session requests it again.

import type { Observable } from 'rxjs';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { Voice } from '../speech/voice.ts';

/** A transport's delay in detecting speech, in milliseconds: the accuracy of an utterance's start. */
export const ONSET_MS = 300;

/** A transport's abilities. The session emulates missing ones. */
export interface TransportCapabilities {
  /** The sample rate of user audio that the transport accepts; the session resamples. */
  readonly inputSampleRateHz: number;
  /** The sample rate of the model's audio. */
  readonly outputSampleRateHz: number;
  /**
   * `audio`: the model speaks. `text`: the model writes, in `assistant.transcribed`, without audio; a session then
   * needs `withVoice(transport, …)`.
   */
  readonly output: 'audio' | 'text';
  /**
   * `reported`: the server reports when the user starts and stops speaking. `inferred`: the adapter infers both from
   * transcripts and similar events. It may report the start late, but `audioStartMs` is as accurate as possible: model
   * speech that starts after that time answers the utterance, and the utterance does not interrupt it.
   */
  readonly utterances: 'reported' | 'inferred';
  /**
   * `utterance.end` can end an utterance that is still being spoken: the server transcribes the audio so far. Without
   * this ability, the session uses the words known so far as the whole utterance.
   */
  readonly endsUtterances: boolean;
  /**
   * `when_asked`: the model speaks only after a `response.request`. `by_itself`: the model also responds to words and
   * results that it receives, in responses whose key is null.
   */
  readonly responds: 'when_asked' | 'by_itself';
  /** A requested response returns the session's `responseKey`, so that playback can be attributed. */
  readonly correlatesResponses: boolean;
  /** A response in progress can be cancelled. */
  readonly cancelsResponses: boolean;
  /** Audio that was generated but not played can be removed from the model's memory. */
  readonly truncatesAudio: boolean;
  /** An item can be removed from the model's conversation. */
  readonly deletesItems: boolean;
  /** The model can speak without leaving a trace in its conversation: `outOfBand`. */
  readonly speaksOutOfBand: boolean;
  /**
   * The model's audio arrives at playback pace, in step with its words, so that the words are known while they are
   * played. @defaultValue false
   */
  readonly speaksInRealTime?: boolean;
  /** A system message can be added without the model responding to it. */
  readonly silentContext: boolean;
  /**
   * The protocol has a role for system messages within a conversation. Only the server knows whether a text model
   * behind it accepts them (`systemAs` of `localVoice`). @defaultValue true
   */
  readonly takesSystemMessages?: boolean;
  /**
   * `named`: the model calls tools by name, with arguments. `delegation`: the model only reports that a task is to be
   * done (`delegation.created`), and the session derives the calls.
   */
  readonly toolCalls: 'named' | 'delegation';
  /** A tool call may stay unanswered while the conversation continues. */
  readonly defersToolResults: boolean;
  /**
   * The provider itself schedules when a tool result is spoken: silently, when idle, at once. Each `tool.answer` is
   * then `silent`, and the session requests the speech. A model that responds `by_itself` without this ability speaks
   * about each answer that is not silent; the session requests speech only if the model stays silent.
   */
  readonly schedulesToolResults: boolean;
  /** `session.configure` can change instructions and tools; without this ability, a change needs a new connection. */
  readonly updatesSession: boolean;
  /** A new connection can resume where an earlier one ended, with `TransportContext.resume`. */
  readonly resumes: boolean;
  /** `question.expect` helps the server to detect the end of an answer. @defaultValue false */
  readonly takesOpenQuestion?: boolean;
  /** `image.add` can show pictures to the model. */
  readonly acceptsImages: boolean;
  /** The maximum lifetime of a connection, in milliseconds; null if unknown. */
  readonly maxConnectionMs: number | null;
}

/** The question that the user may be answering, which helps a transport to detect the end of the answer. */
export interface ExpectedAnswer {
  readonly kind: 'choice' | 'free_text' | 'approval';
  /** The options of a `choice`; other kinds have none. */
  readonly options: readonly {
    readonly id: string;
    readonly label: string;
    readonly description?: string;
  }[];
  /** The question's text. */
  readonly question?: string;
  /** The name of the tool that an `approval` concerns. */
  readonly action?: string;
}

/** A function that the lead model may call, as sent to the provider. */
export interface TransportTool {
  /** The function's name for the model. */
  readonly name: string;
  /** Tells the model what the function does. */
  readonly description: string;
  /** The JSON Schema (draft 7) of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The model's behaviour from now on. */
export interface TransportConfiguration {
  /** The lead agent's system prompt. */
  readonly instructions: string;
  /** The tools that the model may call. */
  readonly tools: readonly TransportTool[];
}

/** A session's commands to a transport. A transport executes them in order; no command returns a promise. */
export type TransportCommand =
  /**
   * Requires `updatesSession`. Answered by `session.configured` or `session.refused`, in command order; applies to
   * responses requested afterwards.
   */
  | { readonly type: 'session.configure'; readonly configuration: TransportConfiguration }
  /** Adds a message to the model's conversation without requesting a response. */
  | {
      readonly type: 'message.add';
      readonly itemId: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /** For the role `user`: the runtime wrote or quoted the text; the user did not say it. */
      readonly isNote?: true;
      /** The item that precedes the message, if the provider supports this; otherwise the message is added at the end. */
      readonly afterItemId?: string;
    }
  /** Shows the model a picture without requesting a response. Requires `acceptsImages`. */
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
   * must not speak about the answer unprompted, as far as the provider can prevent that.
   */
  | {
      readonly type: 'tool.answer';
      readonly callId: string;
      readonly output: string;
      readonly silent?: boolean;
      /**
       * The same answer as a note, for a provider that does not know the call because it was made on another connection.
       */
      readonly told?: string;
    }
  /**
   * Restores an earlier tool call after a reconnect, so that the model knows that it made the call. If the call was
   * answered, a `tool.answer` follows.
   */
  | {
      readonly type: 'tool.recall';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
      /** The same call as a note, for a provider that cannot restore calls. */
      readonly told?: string;
    }
  /**
   * Requests that the model speak. The session has at most one pending request; `response.started` and `response.ended`
   * return its `responseKey`.
   */
  | {
      readonly type: 'response.request';
      readonly responseKey: string;
      /** Instructions for this response only, written by the runtime, in addition to the conversation. */
      readonly instructions?: string;
      /**
       * The quoted content that the instructions refer to. It is already in the conversation; a provider that handles
       * requests in isolation repeats it, never with the system role.
       */
      readonly about?: string;
      /**
       * Identifies the content to say: a request that repeats a failed one has the same value. It is for providers that
       * may still speak a failed request.
       */
      readonly subject?: string;
      /** An earlier request for the same content failed, so the adapter uses the strongest means available. */
      readonly insist?: boolean;
      /** The model should not remember the response (such as a filler), if the provider can exclude it. */
      readonly outOfBand?: boolean;
    }
  /** Cancels the current response; `response.ended` with status `cancelled` follows. */
  | { readonly type: 'response.cancel' }
  /**
   * Withdraws a request that the transport still holds: the transport does not send it, and reports `response.ended`
   * with status `cancelled`. A request that was already sent, and current speech, are not affected.
   */
  | { readonly type: 'response.withdraw'; readonly responseKey: string }
  /**
   * Requires `endsUtterances`. Ends the user's current utterance, because it is too long or its audio has stopped. The
   * transport responds with `utterance.ended` and the words, as if the user had fallen silent.
   */
  | { readonly type: 'utterance.end'; readonly utteranceId: string }
  /**
   * Requires `takesOpenQuestion`. Names the question that the user may be answering in the current utterance; null if
   * there is none. Affects only how soon the transport reports the end of the utterance.
   */
  | { readonly type: 'question.expect'; readonly question: ExpectedAnswer | null }
  /** The user heard only the first `playedMs` of this item. */
  | { readonly type: 'playout.truncate'; readonly itemId: string; readonly playedMs: number }
  /**
   * Names the calls that the delegation stands for; each of their `tool.answer` commands belongs to the delegation.
   * Without calls the delegation is done, and the model should say nothing.
   */
  | {
      readonly type: 'delegation.accept';
      readonly delegationId: string;
      readonly callIds: readonly string[];
    }
  /** The delegation stands for no call, and the model should say this text. */
  | { readonly type: 'delegation.answer'; readonly delegationId: string; readonly text: string };

/** A transport's events. `raw` contains the provider's message. */
export type TransportEvent =
  /**
   * The connection is open and the model configured; the transport has queued earlier commands. `resumed`: the model
   * remembers everything that the connection of `TransportContext.resume` received; the transport resends whatever its
   * server had not received, and the session sends the messages added since. `told`: the model knows
   * `TransportContext.history` as of the transport's request for it.
   */
  | { readonly type: 'transport.ready'; readonly resumed?: boolean; readonly told?: boolean }
  /** The provider will end this connection in `inMs`; the session opens a new one before that. */
  | { readonly type: 'transport.expiring'; readonly inMs: number }
  /**
   * A later connection can resume this one with this value, which replaces the previous value. Null: the connection can
   * no longer be resumed. A session that rotates closes this connection before it opens the next.
   */
  | { readonly type: 'transport.resumable'; readonly resume: unknown }
  /** The model has accepted the configuration of the oldest unanswered `session.configure`. */
  | { readonly type: 'session.configured' }
  /**
   * The model refused the configuration of the oldest unanswered `session.configure`; the previous one remains in force.
   */
  | { readonly type: 'session.refused'; readonly code: string; readonly message: string }
  /** The connection is closed. No event follows. */
  | {
      readonly type: 'transport.closed';
      readonly code: number | null;
      readonly reason: string;
      readonly retryable: boolean;
    }
  /** The user started to speak. `audioStartMs` counts from the connection's first audio. */
  | {
      readonly type: 'utterance.started';
      readonly utteranceId: string;
      readonly audioStartMs: number;
    }
  | { readonly type: 'utterance.ended'; readonly utteranceId: string }
  /** A partial or final transcript of the user's speech; `utteranceId` is also the conversation item's id. */
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
      /** `nothing_said`: the model was asked to speak but did not start in time. */
      readonly reason: string | null;
      readonly audio: readonly { readonly itemId: string; readonly durationMs: number }[];
    }
  /** The transcript of the model's speech: partials append to earlier ones, the final one is the whole text. */
  | {
      readonly type: 'assistant.transcribed';
      readonly itemId: string;
      readonly responseId: string;
      readonly text: string;
      readonly final: boolean;
    }
  /** The model thinks or works outside a response. `working` lasts until the model reports `idle`. */
  | { readonly type: 'model.changed'; readonly status: 'working' | 'idle' }
  /** The model wants a task done; requires `toolCalls: 'delegation'`. */
  | { readonly type: 'delegation.created'; readonly delegationId: string }
  /** The connection's usage since its previous report; null for a count that the provider does not report. */
  | {
      readonly type: 'usage.reported';
      readonly inputTokens: number | null;
      readonly outputTokens: number | null;
      /** The input tokens that the provider read from its cache. @defaultValue unknown, as for the counts below */
      readonly cachedInputTokens?: number;
      /** The input and output tokens that are audio. */
      readonly audioInputTokens?: number;
      readonly audioOutputTokens?: number;
      readonly raw: unknown;
    }
  /** The remaining rate limit that the provider reports. */
  | { readonly type: 'limits.reported'; readonly limits: readonly TransportLimit[] }
  /** The model no longer wants this call's result. */
  | { readonly type: 'tool.cancelled'; readonly callId: string }
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      /** JSON text as the model wrote it, not validated. */
      readonly arguments: string;
      readonly responseId: string;
    }
  /**
   * The provider refused a command or sent an invalid message; the connection continues. `responseKey` names the
   * refused request; null otherwise.
   */
  | {
      readonly type: 'transport.error';
      readonly code: string;
      readonly message: string;
      readonly responseKey: string | null;
      readonly raw: unknown;
    };

/** One of the provider's rate limits. */
export interface TransportLimit {
  /** A name such as `requests` or `tokens`. */
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** The time until the limit is fully available again, in milliseconds. */
  readonly resetInMs: number;
}

/** One connection to a voice model. */
export interface TransportConnection {
  /** Hot; starts with the events since `connect`, and completes after `transport.closed`. Allows one subscriber. */
  readonly events: Observable<TransportEvent>;
  /** The model's audio, which is generated faster than it plays. Hot; allows one subscriber. */
  readonly audio: Observable<AudioFrame>;
  /**
   * Sends the user's audio at `capabilities.inputSampleRateHz`. Until the connection is ready, audio is queued, and the
   * oldest is dropped.
   */
  sendAudio(frame: AudioFrame): void;
  /** Sends a command to the model. */
  send(command: TransportCommand): void;
  /** Closes the connection; resolves after `transport.closed`. Safe to call twice. */
  close(): Promise<void>;
}

/** A factory of connections to a voice model. An adapter creates it; it does not keep its connections. */
export interface Transport {
  /** The name for logs, the inspector, and the runtime's `price`. */
  readonly name: string;
  /** The provider's name for the model, for the runtime's `price`. @defaultValue `name` */
  readonly modelId?: string;
  /** The abilities of the protocol and its model. */
  readonly capabilities: TransportCapabilities;
  /** The code that leads a voice session over this transport: `spokenLead` of `offstage/transport`. */
  readonly lead: { readonly leadsBy: 'voice' };
  /** The voice that speaks for the model, if any; fillers can use the same voice. */
  readonly voice?: Voice;
  /** Opens a connection. Never throws: a failure is reported as `transport.closed`. */
  connect(configuration: TransportConfiguration, context: TransportContext): TransportConnection;
}

/** The context that the session passes to a transport. */
export interface TransportContext {
  /** Time, ids and randomness. */
  readonly environment: Environment;
  /**
   * The latest value of `transport.resumable`, if the transport `resumes`. A transport that cannot use the value starts
   * a fresh session.
   */
  readonly resume?: unknown;
  /**
   * Returns the conversation so far, oldest first, as commands for a new model. A transport whose protocol accepts
   * history only in its first message calls this at most once, and then reports `told`. All others receive the history
   * after `transport.ready`.
   */
  readonly history?: () => readonly TransportCommand[];
  /** Writes the session's notes, for components that also add messages. @defaultValue without marks */
  readonly notes?: NoteWriter;
}
