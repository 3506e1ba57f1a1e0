// The entry `offstage/mcp`: offers subagents as tools and tasks of the Model Context Protocol, and uses the tools of
// other servers as subagents.

export { mcpRelay, type McpRelayOptions } from './mcp-relay.ts';
export type { McpPrompt } from './mcp-relay-session.ts';
export { mcpServer, type McpServer, type McpStdio } from './mcp-server.ts';
export { type McpAuthorizeRequest, type McpServerOptions } from './options.ts';
