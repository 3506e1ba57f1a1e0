// What the author of a transport supplies to have it checked: the transport, and the
// control of whatever is behind it. All time is the time of one simulated environment.
//
// The model behind the transport is the one that the wire has, not one that helps: it
// answers by itself if the wire's models do, forgets what they forget, and brings words as
// late as they do. What it says is worked out by the `mind` that the suite lends.

import type { Transport } from '../../voice/connection/transport.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';

/** What makes the model act. */
export interface ConformanceTurn {
  /** The user spoke; a tool result came; a message came that is to be spoken of; or neither. */
  readonly cause: 'utterance' | 'result' | 'message' | 'nothing';
  /** The words, the result (JSON where it is no text) or the message. Empty where nothing is known. */
  readonly text: string;
  /** Instructions for this response alone, where the wire has such; else null. */
  readonly instructions: string | null;
}

/** One thing that the model does; steps follow one another. */
export type ConformanceStep =
  /** Speaks, 60 ms for each character. */
  | { readonly say: string }
  /** Calls a tool. A model that delegates says only that something is to be done. */
  | { readonly call: string; readonly arguments: Readonly<Record<string, unknown>> }
  /** Thinks for so long, in milliseconds, before it goes on. */
  | { readonly waitMs: number };

/** Works out what the model does; asked when its turn begins. */
export type ConformanceMind = (turn: ConformanceTurn) => readonly ConformanceStep[];

/** When the words of the user arrive, beside `prompt`: as they come on this wire on a good day. */
export type ConformanceTranscript =
  | 'prompt'
  /** As `prompt`, and the last ones a second time. */
  | 'duplicated'
  /** So long after the user has ended, in milliseconds. */
  | { readonly lateMs: number };

/** What goes wrong on a bad day. */
export type ConformanceFault =
  /** The words of the user come late, or twice (`ConformanceTranscript`). */
  | 'late_transcripts'
  | 'duplicated_transcripts'
  /** The connection is at its limit: it ends as the wire ends it, with the notice that the wire gives. */
  | 'expiry'
  /**
   * The server ends the connection with an error and without notice (1011); what it gave to go on
   * with it does not take any more.
   */
  | 'server_error'
  /** The model says nothing at all, while this is on. */
  | 'silence'
  /** What the user says does not end, while this is on: a television goes on behind it. */
  | 'television'
  /** Some sound and words of a response arrive after it was broken off, while this is on. */
  | 'deltas_after_cancel'
  /** Each call is announced twice, while this is on. */
  | 'duplicated_calls'
  /** The model takes back the calls that are open. */
  | 'cancelled_calls';

/** Something that the model remembers. */
export interface ConformanceMemory {
  readonly kind: 'system' | 'user' | 'assistant' | 'call' | 'result';
  /** The message; the name and arguments of a call; the output of a result. */
  readonly text: string;
}

/** Something that the model said, while it is made and after. */
export interface ConformanceReply {
  readonly text: string;
  /** Sound that was sent, in milliseconds. */
  readonly audioMs: number;
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed';
}

/** One connection, from the inside. */
export interface ConformanceModel {
  readonly isOpen: boolean;
  readonly user: {
    /**
     * The model hears the user from now on, for `durationMs`; resolves when they have ended. The suite
     * sends sound as loud as a voice meanwhile, and silence else.
     */
    says(
      text: string,
      speech: { readonly durationMs: number; readonly transcript: ConformanceTranscript },
    ): Promise<void>;
  };
  /** What the model said, in order. */
  readonly replies: readonly ConformanceReply[];
  /** What it remembers, in order. */
  readonly memory: readonly ConformanceMemory[];
  /** The network is gone, without a word. */
  drop(): void;
  /** One of those that the setup `shows`. `on`: for those that last. */
  strike(fault: ConformanceFault, on?: boolean): void;
}

/** A transport, and the models that it talks to. */
export interface ConformanceStage {
  readonly transport: Transport;
  /** The connections that were made, in order; those that ended included. */
  readonly models: readonly ConformanceModel[];
  /** Nothing is needed any more. */
  close?(): void | Promise<void>;
}

/** What the suite lends to a stage. */
export interface ConformanceWorld {
  /** For the transport's context and the server behind it alike. */
  readonly environment: SimulatedEnvironment;
  readonly mind: ConformanceMind;
}

/** How a stage is set; once for each case. */
export interface ConformanceSetup {
  /** For the titles of tests: the transport, and the model if that matters. */
  readonly name: string;
  /**
   * Faults that the stage can show; a case that needs another one is skipped and says so. What the
   * wire cannot suffer is left out.
   */
  readonly shows: readonly ConformanceFault[];
  open(world: ConformanceWorld): ConformanceStage | Promise<ConformanceStage>;
}
