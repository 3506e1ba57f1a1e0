// offstage/mcp: our subagents as tools and tasks of the Model Context Protocol.

export { mcpServer, type McpServer, type McpStdio, type McpStdioOptions } from './mcp-server.ts';
export {
  defaultMcpLimits,
  type McpAuthorizeRequest,
  type McpLimits,
  type McpServerOptions,
  type McpSubagent,
} from './options.ts';
