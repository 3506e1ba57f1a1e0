// The stage that the author of a transport supplies for the suite: the transport, and the control of the model behind
// it. All time comes from one simulated environment.
//
// The model behind the transport behaves like the models of the wire: it answers without a request if they do,
// forgets what they forget, and transcribes as late as they do. The suite's `respond` decides its words.

import type { Transport } from '../../voice/connection/transport.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';

/** The cause of a response. */
export interface ConformanceTurn {
  /** The user spoke; a tool result came; a message came that the model must speak about; or none of these. */
  readonly cause: 'utterance' | 'result' | 'message' | 'nothing';
  /** The words, the result (as JSON if it is not text) or the message. Empty if it is not known. */
  readonly text: string;
  /** Instructions for this response alone, if the wire has them; else null. */
  readonly instructions: string | null;
  /** Everything that the model of this connection remembers when its turn begins, in order. */
  readonly memory: readonly ConformanceMemory[];
}

/** One action of the model. Its steps follow one another. */
export type ConformanceStep =
  /** Speaks, 60 ms for each character. */
  | { readonly say: string }
  /** Calls a tool. A model that delegates only says that an action is needed. */
  | { readonly call: string; readonly arguments: Readonly<Record<string, unknown>> }
  /** Thinks for this time, in milliseconds, before it continues. */
  | { readonly waitMs: number };

/** Decides the actions of the model; called when its turn begins. */
export type ConformanceResponder = (turn: ConformanceTurn) => readonly ConformanceStep[];

/** When the user's transcript arrives; `prompt`: as on a good day of this wire. */
export type ConformanceTranscript =
  | 'prompt'
  /** Like `prompt`, with the last transcript a second time. */
  | 'duplicated'
  /** The delay after the user has ended, in milliseconds. */
  | { readonly lateMs: number };

/** A fault on a bad day. */
export type ConformanceFault =
  /** The transcript arrives late, or twice (`ConformanceTranscript`). */
  | 'late_transcripts'
  | 'duplicated_transcripts'
  /** The connection is at its limit: the wire ends it, with the notice that it gives. */
  | 'expiry'
  /**
   * The server ends the connection with an error and without notice (1011), and no longer accepts its resumption
   * handle.
   */
  | 'server_error'
  /** The model stays silent while this fault is on. */
  | 'silence'
  /** Each turn of the model fails while this fault is on: the provider reports that the quota is spent. */
  | 'failure'
  /** The user's speech does not end while this fault is on: a television is audible behind it. */
  | 'television'
  /** Some audio and words of a response arrive after its interruption, while this fault is on. */
  | 'deltas_after_cancel'
  /** Each call is announced twice while this fault is on. */
  | 'duplicated_calls'
  /** The model cancels the open calls. */
  | 'cancelled_calls';

/** An item of the model's memory. */
export interface ConformanceMemory {
  readonly kind: 'system' | 'user' | 'assistant' | 'call' | 'result';
  /** The message; the name and arguments of a call; the output of a result. */
  readonly text: string;
}

/** A reply of the model, during and after its generation. */
export interface ConformanceReply {
  /** The words of the reply. */
  readonly text: string;
  /** The duration of the audio that was sent, in milliseconds. */
  readonly audioMs: number;
  /** The end of the reply, or `in_progress`. */
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
}

/** One connection, seen from the model. */
export interface ConformanceModel {
  readonly isOpen: boolean;
  readonly user: {
    /**
     * The model hears the user for `durationMs` from now; resolves when the speech has ended. Meanwhile the suite
     * sends audio as loud as a voice, and silence otherwise.
     */
    says(
      text: string,
      speech: { readonly durationMs: number; readonly transcript: ConformanceTranscript },
    ): Promise<void>;
  };
  /** The replies of the model, in order. */
  readonly replies: readonly ConformanceReply[];
  /** The memory of the model, in order. */
  readonly memory: readonly ConformanceMemory[];
  /** Breaks the network connection, without any notice. */
  drop(): void;
  /** Causes a fault that the setup `shows`. `on` switches lasting faults. */
  strike(fault: ConformanceFault, on?: boolean): void;
}

/** A transport, and the models behind it. */
export interface ConformanceStage {
  /** The transport under test. */
  readonly transport: Transport;
  /** All connections that were made, in order, including those that have ended. */
  readonly models: readonly ConformanceModel[];
  /** Releases all resources. */
  close?(): void | Promise<void>;
}

/** The means that the suite gives to a stage. */
export interface ConformanceWorld {
  /** Time and randomness, for the transport's context and the server behind it alike. */
  readonly environment: SimulatedEnvironment;
  readonly respond: ConformanceResponder;
}

/** Creates a stage for each case. */
export interface ConformanceSetup {
  /** For the titles of tests: the transport, and the model if that matters. */
  readonly name: string;
  /**
   * The faults that the stage can show; a case that needs another fault is skipped. Leave out faults that are
   * impossible on the wire.
   */
  readonly shows: readonly ConformanceFault[];
  /** Opens a stage: a transport and the model behind it. */
  open(world: ConformanceWorld): ConformanceStage | Promise<ConformanceStage>;
}
