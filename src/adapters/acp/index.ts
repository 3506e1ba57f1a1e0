// offstage/acp: the Agent Client Protocol, both ways: agents of others as subagents, and a session of ours as an agent.

export { acpAgent, type AcpAgent, type AcpSessionRequest } from './acp-agent.ts';
export type { SessionForEditor } from './served-session.ts';
export { acpRelay, type AcpRelayOptions } from './acp-relay.ts';
