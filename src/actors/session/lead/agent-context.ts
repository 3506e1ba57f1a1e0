// The context of a lead agent's hooks: their access to the session.

import type { ConversationTurn } from '../../conversation/turns.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import type { SetDirective } from '../../contracts/directives.ts';

/**
 * The session as the hooks of a lead agent see it. Usable until the session has ended; later calls do
 * nothing.
 */
export interface AgentContext {
  readonly sessionId: string;
  readonly agentName: string;
  /**
   * Tells the model a fact that it does not respond to.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for a value that is no text.
   */
  injectSystemMessage(text: string): void;
  /** Returns the last turns of the conversation, oldest first: words only. @defaultValue 10 turns */
  getRecentTurns(count?: number): readonly ConversationTurn[];
  /** Returns the newest remembered facts of the user; none without a memory. @defaultValue 10 facts */
  getMemoryFacts(limit?: number): Promise<readonly MemoryFact[]>;
  /**
   * Requests a transfer to another agent, which begins when no other transfer is under way. The events
   * `transfer.completed` and `transfer.failed` report the result.
   */
  requestTransfer(agentName: string): void;
  /** Sets a directive; see `ToolContext.setDirective`. */
  readonly setDirective: SetDirective;
  /** Sends JSON to the clients: the event `client.json` of `session.events`. */
  sendJsonToClient(data: unknown): void;
}
