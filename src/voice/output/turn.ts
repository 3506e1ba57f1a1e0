// The turn of a voice session, as used by the session's other parts. `Turns` implements it.

import type { TurnChart } from '../../actors/session/lead/turn-chart.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';

/** A tool call of the voice model. */
export interface MadeCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  /** The response that contains the call, if the transport reports this. */
  readonly responseId?: string;
}

export interface Turn {
  /** The machine that holds the state of the turn. */
  readonly chart: TurnChart;
  /** Whether the user is speaking, or has stopped but the words of the utterance have not arrived yet. */
  readonly userHasFloor: boolean;
  /** Whether a response that starts now may be a reply to words that are addressed to a subagent. */
  readonly isUndecided: boolean;
  /** Whether the model is waiting for a tool result or for a delegation to be interpreted. */
  readonly isToolAwaited: boolean;
  /** Whether a reply is owed or is about to be given. */
  readonly isReplyAwaited: boolean;
  /** Whether there is no connected model. */
  readonly isOffLine: boolean;
  /** Sends a command to the model. */
  send(command: TransportCommand): void;
  /** Passes a call to the session. */
  called(call: MadeCall): void;
  /** Handles a released event as if it had just arrived. */
  handle(event: TransportEvent): void;
  /** Stops the thinking sound because speech is about to start. */
  beforeSpeech(): void;
  /** Records that this response is a reply to the user. */
  replying(responseId: string): void;
  /** Handles the end of a requested response. `calledOff`: the session has cancelled the response. */
  responded(says: 'reply' | 'offer', status: string, calledOff: boolean): void;
  /** Called when an utterance or its words have been settled. The floor may now be free. */
  settled(): void;
  /** Called when the speaker's audio has ended. */
  drained(): void;
  /** Makes the next request if the model can accept one. */
  next(): void;
}
