// The prompts of a subagent, from its snapshot. Their headings and order are an interface: programs and
// models depend on them.
//
// Quoted text is data: none of its lines can be mistaken for a heading or another speaker, because only the
// first line of an entry is not indented.

import type { ModelMessage } from 'ai';
import type { SubagentContextSnapshot } from './context-snapshot.ts';
import { indented } from '../../values/indented.ts';

/** Returns the non-empty sections in this order, separated by an empty line. */
export function systemPrompt(snapshot: SubagentContextSnapshot): string {
  const { task, conversationSummary, recentTurns, relevantMemoryFacts } = snapshot;
  const sections = [
    `# Instructions\n${snapshot.agentInstructions}`,
    `# Task\nExecute tool: ${task.toolName}`,
  ];
  if (Object.keys(task.args).length > 0) {
    sections.push(`# Task Arguments\n${spacedJson(task.args)}`);
  }
  if (conversationSummary) {
    sections.push(`# Conversation Summary\n${conversationSummary.replace(/^#/gm, '\\#')}`);
  }
  if (recentTurns.length > 0) {
    const lines = recentTurns.map(({ role, content }) => `[${role}]: ${indented(content)}`);
    sections.push(`# Recent Conversation\n${lines.join('\n')}`);
  }
  if (relevantMemoryFacts.length > 0) {
    const lines = relevantMemoryFacts.map(({ text }) => `- ${indented(text)}`);
    sections.push(`# Relevant Memory\n${lines.join('\n')}`);
  }
  return sections.join('\n\n');
}

/** Returns the first message of the run. */
export function userPrompt({ task }: SubagentContextSnapshot): string {
  const prompt = `Execute the task: ${task.description}`;
  if (Object.keys(task.args).length === 0) return prompt;
  return `${prompt}\nArguments: ${JSON.stringify(task.args)}`;
}

/**
 * Returns the messages at the start of a run, after its system prompt: the forked conversation, if any, and
 * the task.
 */
export function openingMessages(snapshot: SubagentContextSnapshot): ModelMessage[] {
  return [...snapshot.conversation, { role: 'user', content: userPrompt(snapshot) }];
}

/** Returns JSON in one line with spaces, `{ "a": 1 }`: a JSON string contains no raw line break. */
function spacedJson(value: unknown): string {
  return JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
}
