// The port to a voice model. An adapter implements it for its protocol and declares in `capabilities` what the protocol
// supports. A session checks these capabilities and never a provider's name. The session (outbox and turns) decides
// when to speak. A transport never does.
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

/**
 * The time that a transport takes to detect speech, in milliseconds. The start of an utterance is not known more
 * accurately.
 */
export const ONSET_MS = 300;

/** A transport's abilities. The session emulates capabilities that are missing. */
export interface TransportCapabilities {
  /** The sample rate of user audio that the transport accepts; the session resamples the audio to it. */
  readonly inputSampleRateHz: number;
  /** The sample rate of the model's audio. */
  readonly outputSampleRateHz: number;
  /**
   * `audio`: the model speaks. `text`: the model writes in `assistant.transcribed` and produces no audio; a session
   * then needs `withVoice(transport, …)`.
   */
  readonly output: 'audio' | 'text';
  /**
   * `reported`: the server reports when the user starts and stops speaking. `inferred`: the adapter infers both from
   * transcripts and similar events. It may report the start late, but `audioStartMs` is as accurate as possible: if the
   * model starts to speak after that time, its speech answers the utterance and is not interrupted by it.
   */
  readonly utterances: 'reported' | 'inferred';
  /**
   * `utterance.end` can end an utterance that is still being spoken; the server then transcribes the audio received so
   * far. Without this capability, the session treats the words known so far as the whole utterance.
   */
  readonly endsUtterances: boolean;
  /**
   * `when_asked`: the model speaks only after a `response.request`. `by_itself`: the model also responds on its own to
   * words and results that it receives; the key of such responses is null.
   */
  readonly responds: 'when_asked' | 'by_itself';
  /** A requested response carries the session's `responseKey`, so that playback can be attributed to it. */
  readonly correlatesResponses: boolean;
  /** A response in progress can be cancelled. */
  readonly cancelsResponses: boolean;
  /** Audio that has been generated but not played can be removed from the model's memory. */
  readonly truncatesAudio: boolean;
  /** An item can be removed from the model's conversation. */
  readonly deletesItems: boolean;
  /** The model can speak without this leaving a trace in its conversation: `outOfBand`. */
  readonly speaksOutOfBand: boolean;
  /**
   * The model's audio arrives at playback speed, in step with its words, so that the words are known while they are
   * being played. @defaultValue false
   */
  readonly speaksInRealTime?: boolean;
  /** A system message can be added without a response from the model. */
  readonly silentContext: boolean;
  /**
   * The protocol has a role for system messages within a conversation. Only the server knows whether a text model
   * behind it accepts such messages (`systemAs` of `localVoice`). @defaultValue true
   */
  readonly takesSystemMessages?: boolean;
  /**
   * `named`: the model calls tools by name, with arguments. `delegation`: the model only reports that a task is to be
   * done (`delegation.created`), and the session works out the calls.
   */
  readonly toolCalls: 'named' | 'delegation';
  /** A tool call may remain unanswered while the conversation continues. */
  readonly defersToolResults: boolean;
  /**
   * The provider itself schedules when a tool result is spoken: not at all, when idle, or immediately. Each
   * `tool.answer` is then `silent`, and the session requests the speech. A model that responds `by_itself` without this
   * capability speaks about each answer that is not silent; the session requests speech only if the model stays silent.
   */
  readonly schedulesToolResults: boolean;
  /** `session.configure` can change instructions and tools; otherwise, a change requires a new connection. */
  readonly updatesSession: boolean;
  /** A new connection can resume where an earlier one ended, by means of `TransportContext.resume`. */
  readonly resumes: boolean;
  /** `question.expect` helps the server to detect the end of an answer. @defaultValue false */
  readonly takesOpenQuestion?: boolean;
  /** `image.add` can show pictures to the model. */
  readonly acceptsImages: boolean;
  /** The maximum lifetime of a connection, in milliseconds; null if unknown. */
  readonly maxConnectionMs: number | null;
}

/** The question that the user may be answering. It helps a transport to detect the end of the answer. */
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

/** A function that the lead agent's model may call, as sent to the provider. */
export interface TransportTool {
  /** The name of the function for the model. */
  readonly name: string;
  /** Explains to the model what the function does. */
  readonly description: string;
  /** The JSON Schema (draft 7) of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The instructions and tools that apply to the model from now on. */
export interface TransportConfiguration {
  /** The lead agent's system prompt. */
  readonly instructions: string;
  /** The tools that the model may call. */
  readonly tools: readonly TransportTool[];
}

/**
 * The commands that a session sends to a transport. A transport executes them in order, without returning promises.
 */
export type TransportCommand =
  /**
   * Requires `updatesSession`. Answered by `session.configured` or `session.refused`, in the order of the commands.
   * Applies to responses that are requested afterwards.
   */
  | { readonly type: 'session.configure'; readonly configuration: TransportConfiguration }
  /** Adds a message to the model's conversation without requesting a response. */
  | {
      readonly type: 'message.add';
      readonly itemId: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /** For the role `user`: the runtime wrote or quoted the text, and the user did not say it. */
      readonly isNote?: true;
      /**
       * The item that precedes the message, if the provider supports this. Otherwise, the message is added at the end.
       */
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
   * must not speak about the answer unless asked, as far as the provider can prevent this.
   */
  | {
      readonly type: 'tool.answer';
      readonly callId: string;
      readonly output: string;
      readonly silent?: boolean;
      /**
       * The same answer as a note, for a provider that lacks the call because the call was made on another connection.
       */
      readonly told?: string;
    }
  /**
   * Restores an earlier tool call after a reconnect, so that the model knows that it made the call. If the call has
   * been answered, a `tool.answer` follows.
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
      /** Instructions for this response only, which the runtime has written in addition to the conversation. */
      readonly instructions?: string;
      /**
       * The quoted content to which the instructions refer, which is already in the conversation. A provider that
       * handles each request in isolation repeats the content, but never with the system role.
       */
      readonly about?: string;
      /**
       * Identifies the content to be spoken. A repetition of a failed request has the same value. It is for providers
       * that may still speak a failed request.
       */
      readonly subject?: string;
      /** An earlier request for the same content has failed, so the adapter uses its most reliable method. */
      readonly insist?: boolean;
      /** Keeps the response (such as a filler) out of the model's memory, if the provider supports this. */
      readonly outOfBand?: boolean;
    }
  /** Cancels the current response; `response.ended` with status `cancelled` follows. */
  | { readonly type: 'response.cancel' }
  /**
   * Withdraws a request that the transport is still holding: the transport does not send it, and reports
   * `response.ended` with status `cancelled`. It affects neither a request that has already been sent nor current
   * speech.
   */
  | { readonly type: 'response.withdraw'; readonly responseKey: string }
  /**
   * Requires `endsUtterances`. Ends the user's current utterance because it is too long or its audio has stopped. The
   * transport responds with `utterance.ended` and the words, as if the user had stopped speaking.
   */
  | { readonly type: 'utterance.end'; readonly utteranceId: string }
  /**
   * Requires `takesOpenQuestion`. Identifies the question that the user may be answering now; null if there is none.
   * This affects only how soon the transport reports the end of an utterance.
   */
  | { readonly type: 'question.expect'; readonly question: ExpectedAnswer | null }
  /** The user heard only the first `playedMs` of this item. */
  | { readonly type: 'playout.truncate'; readonly itemId: string; readonly playedMs: number }
  /**
   * Lists the calls that the delegation stands for; each of their `tool.answer` commands belongs to the delegation. If
   * there are no calls, the delegation is complete, and the model should say nothing.
   */
  | {
      readonly type: 'delegation.accept';
      readonly delegationId: string;
      readonly callIds: readonly string[];
    }
  /** The delegation requires no call, and the model should say this text. */
  | { readonly type: 'delegation.answer'; readonly delegationId: string; readonly text: string };

/** A transport's events. `raw` contains the provider's message. */
export type TransportEvent =
  /**
   * The connection is open and the model is configured. The transport has queued any earlier commands. `resumed`: the
   * model remembers everything that the connection of `TransportContext.resume` received. The transport resends
   * whatever its server had not received, and the session sends the messages that were added since. `told`: the model
   * has received `TransportContext.history` as it was when the transport requested it.
   */
  | { readonly type: 'transport.ready'; readonly resumed?: boolean; readonly told?: boolean }
  /** The provider will end this connection in `inMs`. The session opens a new one before then. */
  | { readonly type: 'transport.expiring'; readonly inMs: number }
  /**
   * A later connection can resume this one with this value, which replaces the previous value. Null: the connection can
   * no longer be resumed. A session that rotates closes this connection before it opens the next.
   */
  | { readonly type: 'transport.resumable'; readonly resume: unknown }
  /** The model has accepted the configuration from the oldest unanswered `session.configure`. */
  | { readonly type: 'session.configured' }
  /**
   * The model refused the configuration from the oldest unanswered `session.configure`, so the previous configuration
   * remains in effect.
   */
  | { readonly type: 'session.refused'; readonly code: string; readonly message: string }
  /** The connection is closed. No event follows. */
  | {
      readonly type: 'transport.closed';
      readonly code: number | null;
      readonly reason: string;
      readonly retryable: boolean;
    }
  /** The user has started to speak. `audioStartMs` is measured from the connection's first audio. */
  | {
      readonly type: 'utterance.started';
      readonly utteranceId: string;
      readonly audioStartMs: number;
    }
  | { readonly type: 'utterance.ended'; readonly utteranceId: string }
  /** A partial or final transcript of the user's speech; `utteranceId` is also the id of the conversation item. */
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
  /** Generation has ended, but playback may continue. `audio` lists the generated audio in order. */
  | {
      readonly type: 'response.ended';
      readonly responseId: string;
      readonly responseKey: string | null;
      readonly status: 'completed' | 'cancelled' | 'failed' | 'incomplete';
      /** `nothing_said`: the model was asked to speak but did not start in time. */
      readonly reason: string | null;
      readonly audio: readonly { readonly itemId: string; readonly durationMs: number }[];
    }
  /** The transcript of the model's speech. Partials are appended, and the final one is the whole text. */
  | {
      readonly type: 'assistant.transcribed';
      readonly itemId: string;
      readonly responseId: string;
      readonly text: string;
      readonly final: boolean;
    }
  /** The model is thinking or working outside a response. `working` applies until the model reports `idle`. */
  | { readonly type: 'model.changed'; readonly status: 'working' | 'idle' }
  /** The model wants a task to be done; requires `toolCalls: 'delegation'`. */
  | { readonly type: 'delegation.created'; readonly delegationId: string }
  /** The connection's usage since its previous report; null for a count that the provider does not report. */
  | {
      readonly type: 'usage.reported';
      readonly inputTokens: number | null;
      readonly outputTokens: number | null;
      /** The input tokens that the provider read from its cache. @defaultValue unknown, like the counts below */
      readonly cachedInputTokens?: number;
      /** The input and output tokens that are audio. */
      readonly audioInputTokens?: number;
      readonly audioOutputTokens?: number;
      readonly raw: unknown;
    }
  /** The provider's remaining rate limits. */
  | { readonly type: 'limits.reported'; readonly limits: readonly TransportLimit[] }
  /** The model no longer needs the result of this call. */
  | { readonly type: 'tool.cancelled'; readonly callId: string }
  | {
      readonly type: 'tool.called';
      readonly callId: string;
      readonly name: string;
      /** JSON text as written by the model, not validated. */
      readonly arguments: string;
      readonly responseId: string;
    }
  /**
   * The provider has refused a command or sent an invalid message. The connection continues. `responseKey` identifies
   * the refused request; null if no request was refused.
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
  /** Hot. Starts with the events since `connect` and completes after `transport.closed`. Allows one subscriber. */
  readonly events: Observable<TransportEvent>;
  /** The model's audio, which is generated faster than it is played. Hot; allows one subscriber. */
  readonly audio: Observable<AudioFrame>;
  /**
   * Sends the user's audio at `capabilities.inputSampleRateHz`. Audio is queued until the connection is ready. If the
   * queue is full, the oldest audio is dropped.
   */
  sendAudio(frame: AudioFrame): void;
  /** Sends a command to the model. */
  send(command: TransportCommand): void;
  /** Closes the connection; resolves after `transport.closed`. Safe to call twice. */
  close(): Promise<void>;
}

/** A factory of connections to a voice model. An adapter creates it; it does not track its connections. */
export interface Transport {
  /** The name of the transport in logs, in the inspector and for the runtime's `price`. */
  readonly name: string;
  /** The provider's name for the model, used for the runtime's `price`. @defaultValue `name` */
  readonly modelId?: string;
  /** The capabilities of the protocol and its model. */
  readonly capabilities: TransportCapabilities;
  /** The code that leads a voice session over this transport: `spokenLead` of `offstage/transport`. */
  readonly lead: { readonly leadsBy: 'voice' };
  /** The voice that speaks for the model, if there is one. Fillers can use the same voice. */
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
   * Returns the conversation so far as commands for a new model, oldest first. A transport whose protocol accepts
   * history only in its first message calls this at most once, and then reports `told`. All other transports receive
   * the history after `transport.ready`.
   */
  readonly history?: () => readonly TransportCommand[];
  /** Writes the session's notes, for components that add messages themselves. @defaultValue without marks */
  readonly notes?: NoteWriter;
}
