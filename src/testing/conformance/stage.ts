// The stage that a transport's author supplies for the suite: the transport, and control over the model behind it. All
// time comes from one simulated environment.
//
// The model behind the transport behaves like the provider's models: it responds without a request if they do, forgets
// what they forget, and transcribes as late as they do. The suite's `respond` decides its words.

import type { Transport } from '../../voice/connection/transport.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';

/** The cause of a response. */
export interface ConformanceTurn {
  /** The user spoke; a tool result arrived; a message arrived that the model must speak about; or none of these. */
  readonly cause: 'utterance' | 'result' | 'message' | 'nothing';
  /** The words, the result (as JSON if it is not text) or the message. Empty if unknown. */
  readonly text: string;
  /** Instructions for this response only, if the protocol has them; otherwise null. */
  readonly instructions: string | null;
  /** Everything that this connection's model remembers when its turn starts, in order. */
  readonly memory: readonly ConformanceMemory[];
}

/** One action of the model. Its steps run one after another. */
export type ConformanceStep =
  /** Speaks for 60 ms per character. */
  | { readonly say: string }
  /** Calls a tool. A delegating model only reports that an action is needed. */
  | { readonly call: string; readonly arguments: Readonly<Record<string, unknown>> }
  /** Thinks for this time, in milliseconds, before continuing. */
  | { readonly waitMs: number };

/** Decides the model's actions; called when its turn starts. */
export type ConformanceResponder = (turn: ConformanceTurn) => readonly ConformanceStep[];

/** When the user's transcript arrives; `prompt`: as the provider normally sends it. */
export type ConformanceTranscript =
  | 'prompt'
  /** Like `prompt`, with the last transcript repeated. */
  | 'duplicated'
  /** The delay after the user has finished, in milliseconds. */
  | { readonly lateMs: number };

/** A fault of the provider. */
export type ConformanceFault =
  /** The transcript arrives late or twice (`ConformanceTranscript`). */
  | 'late_transcripts'
  | 'duplicated_transcripts'
  /** The connection reaches its limit: the provider ends it, with its usual notice. */
  | 'expiry'
  /**
   * The server ends the connection with an error and without notice (1011), and no longer accepts its resumption handle.
   */
  | 'server_error'
  /** The model stays silent while this fault is active. */
  | 'silence'
  /** Each turn of the model fails while this fault is active: the provider reports that the quota is exhausted. */
  | 'failure'
  /** The user's speech does not end while this fault is active: a television is audible in the background. */
  | 'television'
  /** Some audio and words of a response arrive after its interruption while this fault is active. */
  | 'deltas_after_cancel'
  /** Each call is announced twice while this fault is active. */
  | 'duplicated_calls'
  /** The model cancels the open calls. */
  | 'cancelled_calls';

/** An item in the model's memory. */
export interface ConformanceMemory {
  readonly kind: 'system' | 'user' | 'assistant' | 'call' | 'result';
  /** The message; a call's name and arguments; a result's output. */
  readonly text: string;
}

/** A model's reply, during and after its generation. */
export interface ConformanceReply {
  /** The reply's words. */
  readonly text: string;
  /** The duration of the sent audio, in milliseconds. */
  readonly audioMs: number;
  /** How the reply ended, or `in_progress`. */
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
}

/** One connection from the model's point of view. */
export interface ConformanceModel {
  readonly isOpen: boolean;
  readonly user: {
    /**
     * The model hears the user for `durationMs` from now; resolves when the speech has ended. During this time the
     * suite sends audio as loud as a voice, otherwise silence.
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
  /** Breaks the network connection without notice. */
  drop(): void;
  /** Causes a fault that the setup `shows`. `on` switches persistent faults. */
  strike(fault: ConformanceFault, on?: boolean): void;
}

/** A transport and the models behind it. */
export interface ConformanceStage {
  /** The transport under test. */
  readonly transport: Transport;
  /** All connections so far, in order, including ended ones. */
  readonly models: readonly ConformanceModel[];
  /** Releases all resources. */
  close?(): void | Promise<void>;
}

/** The tools that the suite provides to a stage. */
export interface ConformanceWorld {
  /** Time and randomness, for both the transport's context and the server behind it. */
  readonly environment: SimulatedEnvironment;
  readonly respond: ConformanceResponder;
}

/** Creates a stage for each case. */
export interface ConformanceSetup {
  /** Used in test titles: the transport, and the model if it matters. */
  readonly name: string;
  /**
   * The faults that the stage can simulate; a case that needs another fault is skipped. Omit faults that are impossible
   * with this provider.
   */
  readonly shows: readonly ConformanceFault[];
  /** Opens a stage: a transport and the model behind it. */
  open(world: ConformanceWorld): ConformanceStage | Promise<ConformanceStage>;
}
