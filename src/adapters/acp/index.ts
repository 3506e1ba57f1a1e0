// The entry `offstage/acp`: external agents that speak the Agent Client Protocol as subagents, and an Offstage session
// as such an agent.

export { acpAgent, type AcpAgent, type AcpSessionRequest } from './acp-agent.ts';
export type { SessionForEditor } from './served-session.ts';
export { acpRelay, type AcpRelayOptions } from './acp-relay.ts';
