// The turn of a voice session, as its parts use it; `Turns` implements it.

import type { TurnChart } from '../../actors/session/lead/turn-chart.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';

/** A tool call of the voice model. */
export interface MadeCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** The response that contains the call, if the transport reports it. */
  readonly responseId?: string;
}

export interface Turn {
  /** The machine that holds the turn's state. */
  readonly chart: TurnChart;
  /** Whether the user speaks, or the last utterance's words are still unknown. */
  readonly userHasFloor: boolean;
  /** Whether a response that starts now may reply to words that are addressed to a subagent. */
  readonly isUndecided: boolean;
  /** Whether the model waits for a tool result or for the interpretation of a delegation. */
  readonly isToolAwaited: boolean;
  /** Whether a reply is owed or about to be given. */
  readonly isReplyAwaited: boolean;
  /** Whether no model is connected. */
  readonly isOffLine: boolean;
  /** Sends a command to the model. */
  send(command: TransportCommand): void;
  /** Passes a call to the session. */
  called(call: MadeCall): void;
  /** Handles a released event as if it had just arrived. */
  handle(event: TransportEvent): void;
  /** Stops the thinking sound because speech follows at once. */
  beforeSpeech(): void;
  /** Records that this response replies to the user. */
  replying(responseId: string): void;
  /** Handles the end of a requested response. `calledOff`: the session cancelled the response. */
  responded(says: 'reply' | 'offer', status: string, calledOff: boolean): void;
  /** Continues once an utterance or its words are settled, which may have freed the floor. */
  settled(): void;
  /** Handles the end of the speaker's audio. */
  drained(): void;
  /** Makes the next request if the model is free for one. */
  next(): void;
}
