// The SDK, which is installed here only when its tests run.

export { query } from '@anthropic-ai/claude-agent-sdk';
