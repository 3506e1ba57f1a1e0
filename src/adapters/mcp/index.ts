// offstage/mcp: our subagents as tools and tasks of the Model Context Protocol, and tools of other servers as subagents.

export { mcpRelay, type McpRelayOptions } from './mcp-relay.ts';
export type { McpPrompt } from './mcp-relay-session.ts';
export { mcpServer, type McpServer, type McpStdio, type McpStdioOptions } from './mcp-server.ts';
export {
  defaultMcpLimits,
  type McpAuthorizeRequest,
  type McpLimits,
  type McpServerOptions,
  type McpSubagent,
} from './options.ts';
