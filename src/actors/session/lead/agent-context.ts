// What the hooks of a lead agent may do with the session that it leads.

import type { ConversationTurn } from '../../conversation/turns.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import type { SetDirective } from '../../contracts/directives.ts';

/** The session, as the hooks of a lead agent see it. Stays usable until the session has ended; then nothing happens. */
export interface AgentContext {
  readonly sessionId: string;
  readonly agentName: string;
  /**
   * The model shall know this, and not speak to it.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for what is no text.
   */
  injectSystemMessage(text: string): void;
  /** The last turns of the conversation, oldest first: words only. @defaultValue 10 turns */
  getRecentTurns(count?: number): readonly ConversationTurn[];
  /** The newest facts that are remembered of the user; none without a memory. @defaultValue 10 facts */
  getMemoryFacts(limit?: number): Promise<readonly MemoryFact[]>;
  /**
   * Another agent shall lead, as soon as no other transfer is under way. What becomes of it
   * is told by the events `transfer.completed` and `transfer.failed`.
   */
  requestTransfer(agentName: string): void;
  /** See `ToolContext.setDirective`. */
  readonly setDirective: SetDirective;
  /** Sends JSON to the clients: the event `client.json` of `session.events`. */
  sendJsonToClient(data: unknown): void;
}
