// The entry `offstage/claude`: Uses Claude Code as a subagent through its Agent SDK.

export { claudeRelay, type ClaudeRelayOptions } from './claude-relay.ts';
export type { ClaudeQuery } from './mapping.ts';
