// The entry `offstage/tasks`: rules for external agents' tasks: concurrency, threads by topic, locks, caps.

export { taskManager } from './task-manager.ts';
export type { TaskManager, TaskStats } from './task-manager.ts';
export type { TaskManagerOptions, TaskPlan } from './task-options.ts';
export { TaskQueueTimeoutError } from './task-queue.ts';
