// The entry `offstage/a2a`: hosted agents that speak the Agent2Agent protocol (A2A) as subagents.

export { a2aRelay, type A2aRelayOptions } from './a2a-relay.ts';
