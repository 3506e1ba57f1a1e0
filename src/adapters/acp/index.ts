// offstage/acp: agents that speak the Agent Client Protocol, as subagents.

export { acpRelay, type AcpRelayOptions } from './acp-relay.ts';
