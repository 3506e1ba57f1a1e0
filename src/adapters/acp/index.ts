// The entry `offstage/acp`: the Agent Client Protocol: third-party agents as subagents, and an Offstage session as an agent.

export { acpAgent, type AcpAgent, type AcpSessionRequest } from './acp-agent.ts';
export type { SessionForEditor } from './served-session.ts';
export { acpRelay, type AcpRelayOptions } from './acp-relay.ts';
