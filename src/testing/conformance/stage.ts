// The stage that the author of a transport supplies for the suite: the transport, and control over the model behind it.
// All time comes from one simulated environment.
//
// The model behind the transport behaves like the provider's models. It responds without a request if they do, forgets
// what they forget, and transcribes as late as they do. The suite's `respond` decides what the model says.

import type { Transport } from '../../voice/connection/transport.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';

/** Why the model responds. */
export interface ConformanceTurn {
  /** The user has spoken; a tool result or a message to speak about has arrived; or none of these. */
  readonly cause: 'utterance' | 'result' | 'message' | 'nothing';
  /** The user's text, the result (as JSON if it is not text), or the message. Empty if unknown. */
  readonly text: string;
  /** Instructions for this response only; null if the protocol does not support them. */
  readonly instructions: string | null;
  /** Everything that this connection's model remembers when its turn starts, in order. */
  readonly memory: readonly ConformanceMemory[];
}

/** One action that the model takes. The steps of an action run one after another. */
export type ConformanceStep =
  /** Speaks for 60 ms per character of the text. */
  | { readonly say: string }
  /** Calls a tool. A model that delegates only reports that an action is needed. */
  | { readonly call: string; readonly arguments: Readonly<Record<string, unknown>> }
  /** Thinks for this time before it continues, in milliseconds. */
  | { readonly waitMs: number };

/** Decides what the model does. Called when its turn starts. */
export type ConformanceResponder = (turn: ConformanceTurn) => readonly ConformanceStep[];

/** When the user's transcript arrives; `prompt`: at the time when the provider normally sends it. */
export type ConformanceTranscript =
  | 'prompt'
  /** Like `prompt`, but the last transcript is repeated. */
  | 'duplicated'
  /** The delay after the user has stopped speaking, in milliseconds. */
  | { readonly lateMs: number };

/** A fault that the provider has. */
export type ConformanceFault =
  /** The transcript arrives late or twice (`ConformanceTranscript`). */
  | 'late_transcripts'
  | 'duplicated_transcripts'
  /** The connection reaches its limit: the provider ends it with its usual notice. */
  | 'expiry'
  /**
   * The server ends the connection without notice, with an error (1011), and no longer accepts the resumption handle.
   */
  | 'server_error'
  /** The model stays silent while this fault is active. */
  | 'silence'
  /** Every turn of the model fails while this fault is active: the provider reports that the quota is exhausted. */
  | 'failure'
  /** The user's speech does not end while this fault is active, because a television can be heard in the background. */
  | 'television'
  /** While this fault is active, some of a response's audio and text arrives after the response was interrupted. */
  | 'deltas_after_cancel'
  /** Each call is announced twice while this fault is active. */
  | 'duplicated_calls'
  /** The model cancels the open calls. */
  | 'cancelled_calls';

/** An item in the model's memory. */
export interface ConformanceMemory {
  /** The author of the message, or whether the item is a tool call or its result. */
  readonly kind: 'system' | 'user' | 'assistant' | 'call' | 'result';
  /** The text of the message, the name and arguments of a call, or the output of a result. */
  readonly text: string;
}

/** A reply of the model, during and after its generation. */
export interface ConformanceReply {
  /** The text of the reply. */
  readonly text: string;
  /** The duration of the audio that was sent, in milliseconds. */
  readonly audioMs: number;
  /** How the reply ended, or `in_progress`. */
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
}

/** A connection as the model sees it. */
export interface ConformanceModel {
  /** Whether the transport is still connected to this model. */
  readonly isOpen: boolean;
  /** The person whom the model hears on this connection. */
  readonly user: {
    /**
     * The model hears the user for `durationMs` from now. Resolves when the speech has ended. During this time, the
     * suite sends audio as loud as a voice; otherwise it sends silence.
     */
    says(
      text: string,
      speech: { readonly durationMs: number; readonly transcript: ConformanceTranscript },
    ): Promise<void>;
  };
  /** The model's replies, in order. */
  readonly replies: readonly ConformanceReply[];
  /** The model's memory, in order. */
  readonly memory: readonly ConformanceMemory[];
  /** Breaks the network connection without warning. */
  drop(): void;
  /** Causes one of the faults that the setup `shows`. `on` turns a persistent fault on or off. */
  strike(fault: ConformanceFault, on?: boolean): void;
}

/** A transport, and the models behind it. */
export interface ConformanceStage {
  /** The transport under test. */
  readonly transport: Transport;
  /** All connections so far, in order, including those that have ended. */
  readonly models: readonly ConformanceModel[];
  /** Releases all resources. */
  close?(): void | Promise<void>;
}

/** The tools that the suite provides to a stage. */
export interface ConformanceWorld {
  /** The source of time and randomness, both for the transport's context and for the server behind it. */
  readonly environment: SimulatedEnvironment;
  /** Decides the actions of the stage's models, at the start of each turn. */
  readonly respond: ConformanceResponder;
}

/** Creates a stage for each case. */
export interface ConformanceSetup {
  /** The name in test titles: the transport, and the model if it matters. */
  readonly name: string;
  /**
   * The faults that the stage can simulate. A case that needs another fault is skipped. Leave out faults that are
   * impossible with this provider.
   */
  readonly shows: readonly ConformanceFault[];
  /** Opens a stage: a transport and the model behind it. */
  open(world: ConformanceWorld): ConformanceStage | Promise<ConformanceStage>;
}
