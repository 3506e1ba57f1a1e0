// The port to a voice model. An adapter implements it once for its wire and says
// in `capabilities` what that wire can do; a session branches on capabilities and
// never on the name of a provider. When something may be said is decided by the
// session (outbox and response queue), never by a transport.
//
// Duties of an adapter, whatever its wire is like
//   - Each utterance of the user has a beginning, an end and its words (or the word that there
//     are none), in this order, also where they must be inferred.
//   - Each response has a beginning and an end, and its sound is tagged with it, also where
//     the wire knows of no responses.
//   - A response carries a `responseKey` only where it is certain that it answers that
//     request: what is not certain counts as not heard, and is said again.

import type { Observable } from 'rxjs';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { Voice } from '../speech/voice.ts';

/** What a wire can do. What it cannot, the session emulates. */
export interface TransportCapabilities {
  /** Sound of the user, as the wire wants it; the session resamples. */
  readonly inputSampleRateHz: number;
  /** Sound of the model, as the wire sends it. */
  readonly outputSampleRateHz: number;
  /**
   * `audio`: the model speaks. `text`: it writes, in `assistant.transcribed`, and there is no sound;
   * a session needs `withVoice(transport, …)` then.
   */
  readonly output: 'audio' | 'text';
  /**
   * `reported`: the wire says when the user begins and ends to speak. `inferred`: the adapter
   * concludes it from transcripts and the like; the beginning may come late, but its
   * `audioStartMs` is as near to the truth as can be: what the model began to say after it
   * answers the utterance, and is not broken off by it.
   */
  readonly utterances: 'reported' | 'inferred';
  /**
   * An utterance that goes on can be ended by `utterance.end`: what was said until then is
   * transcribed. Without it an utterance that is too long is dropped.
   */
  readonly endsUtterances: boolean;
  /**
   * `when_asked`: the model speaks only at a `response.request`. `by_itself`: it also answers what
   * it hears and the results it gets, in responses with the key null.
   */
  readonly responds: 'when_asked' | 'by_itself';
  /** A response that we ask for carries our `responseKey` back, so that hearing can be attributed. */
  readonly correlatesResponses: boolean;
  /** A response in the making can be cancelled. */
  readonly cancelsResponses: boolean;
  /** What was generated but not played can be taken out of the model's memory. */
  readonly truncatesAudio: boolean;
  /** An item can be taken out of the model's conversation. */
  readonly deletesItems: boolean;
  /** The model can say something that leaves nothing in its conversation: `outOfBand`. */
  readonly speaksOutOfBand: boolean;
  /** A system message can be added without the model answering it. */
  readonly silentContext: boolean;
  /** The wire has a role for messages of the system in mid-conversation. @defaultValue true */
  readonly takesSystemMessages?: boolean;
  /**
   * `named`: the model calls tools by name with arguments. `delegation`: it only says that something
   * is to be done (`delegation.created`), and the session works out which calls that means.
   */
  readonly toolCalls: 'named' | 'delegation';
  /** A tool call may stay unanswered while the conversation goes on. */
  readonly defersToolResults: boolean;
  /**
   * The wire itself knows when a tool result is to be spoken: silently, when idle, at once. Each
   * `tool.answer` is `silent` then, and the session asks for what is to be said. A wire that
   * responds `by_itself` without it speaks to each answer that is not, and is asked only if it
   * stays silent.
   */
  readonly schedulesToolResults: boolean;
  /** Instructions and tools can be changed by `session.configure`; else it takes a new connection. */
  readonly updatesSession: boolean;
  /** A new connection can go on where another ended, by `TransportContext.resume`. */
  readonly resumes: boolean;
  /** The model can be shown pictures by `image.add`. */
  readonly acceptsImages: boolean;
  /** So long a connection lasts at most, in milliseconds; null: no limit is known. */
  readonly maxConnectionMs: number | null;
}

/** A function that the lead model may call, as the wire sends it. */
export interface TransportTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema (draft 7) of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** How the model shall behave from now on. */
export interface TransportConfiguration {
  readonly instructions: string;
  readonly tools: readonly TransportTool[];
}

/** What a session tells a transport. Each is sent in order; none is answered by a promise. */
export type TransportCommand =
  /**
   * Needs `updatesSession`. Answered by `session.configured` or `session.refused`, in the order
   * of the commands; holds for responses that are requested after it.
   */
  | { readonly type: 'session.configure'; readonly configuration: TransportConfiguration }
  /** Adds a message to the model's conversation; no answer is asked for. */
  | {
      readonly type: 'message.add';
      readonly itemId: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /** Of the role `user`: the text is the runtime's, or quoted by it, and no words of the user. */
      readonly isNote?: true;
      /** Directly behind this item, where the wire can; else at the end. */
      readonly afterItemId?: string;
    }
  /** Shows the model a picture. Needs `acceptsImages`; no answer is asked for. */
  | {
      readonly type: 'image.add';
      readonly itemId: string;
      /** Such as `image/png`. */
      readonly mediaType: string;
      readonly data: Uint8Array;
    }
  | { readonly type: 'item.delete'; readonly itemId: string }
  /**
   * Answers a tool call; no response is asked for. `output` is what the model reads. `silent`: the
   * model shall not speak to it unasked, as far as the wire can keep it from that; else one that
   * answers results by itself may.
   */
  | {
      readonly type: 'tool.answer';
      readonly callId: string;
      readonly output: string;
      readonly silent?: boolean;
      /** The same as a note, for a wire on which the call is none: one of another connection. */
      readonly told?: string;
    }
  /**
   * Restores a past tool call after a reconnect (the model must know that it made it).
   * Followed by `tool.answer` if it was answered.
   */
  | {
      readonly type: 'tool.recall';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
      /** The same as a note, for a wire that has no calls to restore. */
      readonly told?: string;
    }
  /**
   * Asks the model to speak. At most one is under way at a time (the session sees to it);
   * `responseKey` comes back in `response.started` and `response.ended`.
   */
  | {
      readonly type: 'response.request';
      readonly responseKey: string;
      /** Instructions for this response only, in addition to the conversation: words of the runtime. */
      readonly instructions?: string;
      /**
       * What they are about, quoted: it is in the conversation already, and is repeated where the wire
       * takes a request by itself. Never with the role of the system.
       */
      readonly about?: string;
      /** A request for the same came to nothing before: by the strongest means that the wire has. */
      readonly insist?: boolean;
      /**
       * What is said is not to be remembered by the model, such as a word to fill a pause; where the
       * wire can keep it out.
       */
      readonly outOfBand?: boolean;
    }
  /** Stops the response in the making; answered by `response.ended` with status `cancelled`. */
  | { readonly type: 'response.cancel' }
  /**
   * Takes a request back that the transport still holds: it is not sent, and answered by
   * `response.ended` with status `cancelled`. Nothing happens to one that was sent already, and to
   * what the model says at the moment.
   */
  | { readonly type: 'response.withdraw'; readonly responseKey: string }
  /**
   * Needs `endsUtterances`. The utterance that the user is saying has gone on for too long, or no
   * sound of it comes any more: it ends here. Answered by `utterance.ended` and its words, as if the
   * user had fallen silent.
   */
  | { readonly type: 'utterance.end'; readonly utteranceId: string }
  /** The user heard only the first `playedMs` of this item. */
  | { readonly type: 'playout.truncate'; readonly itemId: string; readonly playedMs: number }
  /**
   * The delegation means these calls; each `tool.answer` of one of them belongs to it. Without
   * calls: it is dealt with, and nothing is to be said.
   */
  | {
      readonly type: 'delegation.accept';
      readonly delegationId: string;
      readonly callIds: readonly string[];
    }
  /** The delegation means no call: the model shall say this. */
  | { readonly type: 'delegation.answer'; readonly delegationId: string; readonly text: string };

/** What a transport tells a session. `raw` keeps what the wire said. */
export type TransportEvent =
  /**
   * The wire is up and the model configured; commands before this are queued by the transport.
   * `resumed`: the model remembers what the connection of `TransportContext.resume` was told until
   * it ended; what its server had not taken of that, the transport tells again. The session tells
   * what it has added since.
   * `told`: it knows `TransportContext.history`, as that was when it was asked for.
   */
  | { readonly type: 'transport.ready'; readonly resumed?: boolean; readonly told?: boolean }
  /** The wire ends this connection soon; a new one is opened before. */
  | { readonly type: 'transport.expiring'; readonly inMs: number }
  /**
   * With this a later connection can go on from where this one ends; replaces the one before. Null:
   * none can any more. A session that rotates closes this connection before it opens the other.
   */
  | { readonly type: 'transport.resumable'; readonly resume: unknown }
  /** The model is configured as the oldest unanswered `session.configure` said. */
  | { readonly type: 'session.configured' }
  /** It is not: what it was before still holds. */
  | { readonly type: 'session.refused'; readonly code: string; readonly message: string }
  /** The wire is gone. After this nothing follows. */
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
  /** Generation ended (playing may go on). `audio` lists what was made, in order. */
  | {
      readonly type: 'response.ended';
      readonly responseId: string;
      readonly responseKey: string | null;
      readonly status: 'completed' | 'cancelled' | 'failed' | 'incomplete';
      readonly reason: string | null;
      readonly audio: readonly { readonly itemId: string; readonly durationMs: number }[];
    }
  /** The transcript of what the model says: partials append to what came before, the final one is whole. */
  | {
      readonly type: 'assistant.transcribed';
      readonly itemId: string;
      readonly responseId: string;
      readonly text: string;
      readonly final: boolean;
    }
  /** The model thinks or works without a response: `working` until it says that it is idle. */
  | { readonly type: 'model.changed'; readonly status: 'working' | 'idle' }
  /** The model wants something done; needs `toolCalls: 'delegation'`. */
  | { readonly type: 'delegation.created'; readonly delegationId: string }
  /** What the connection used since it last said so; a count that the wire does not give is null. */
  | {
      readonly type: 'usage.reported';
      readonly inputTokens: number | null;
      readonly outputTokens: number | null;
      readonly raw: unknown;
    }
  /** How much may still be used, as the wire says it. */
  | { readonly type: 'limits.reported'; readonly limits: readonly TransportLimit[] }
  /** The model does not want the result of this call any more. */
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
   * The wire refused something or said what it should not; the connection goes on.
   * `responseKey` names the request that it refused, if it was one.
   */
  | {
      readonly type: 'transport.error';
      readonly code: string;
      readonly message: string;
      readonly responseKey: string | null;
      readonly raw: unknown;
    };

/** One limit of the provider. */
export interface TransportLimit {
  /** Such as `requests` or `tokens`. */
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** Until it is full again, in milliseconds. */
  readonly resetInMs: number;
}

/** One connection to a voice model. */
export interface TransportConnection {
  /** Hot; begins with what happened since `connect`, completes after `transport.closed`. One subscriber. */
  readonly events: Observable<TransportEvent>;
  /** Sound of the model, generated faster than it plays. Hot; one subscriber. */
  readonly audio: Observable<AudioFrame>;
  /** Sound of the user at `capabilities.inputSampleRateHz`. Dropped, oldest first, while the wire is not ready. */
  sendAudio(frame: AudioFrame): void;
  send(command: TransportCommand): void;
  /** Resolves when the wire is closed; `transport.closed` comes before. Safe to call twice. */
  close(): Promise<void>;
}

/** A way to reach a voice model. Constructed by an adapter; holds no connection of its own. */
export interface Transport {
  /** For logs and the inspector only. */
  readonly name: string;
  readonly capabilities: TransportCapabilities;
  /** Speaks for the model, where that is ours: then other words can be said in the same voice. */
  readonly voice?: Voice;
  /** Opens a connection. Never throws: what goes wrong arrives as `transport.closed`. */
  connect(configuration: TransportConfiguration, context: TransportContext): TransportConnection;
}

/** What the session lends to a transport. */
export interface TransportContext {
  readonly environment: Environment;
  /** What `transport.resumable` gave last, where `resumes`. A wire that cannot use it begins anew. */
  readonly resume?: unknown;
  /**
   * The conversation so far, oldest first, as the commands that would tell it to a model that
   * knows nothing. Asked for at most once, for a wire that takes it only with its first message; it
   * says so by `told`. Any other is told after `transport.ready`.
   */
  readonly history?: () => readonly TransportCommand[];
  /** Writes the notes of the session, for whoever tells the model something beside it. @defaultValue without marks */
  readonly notes?: NoteWriter;
}
