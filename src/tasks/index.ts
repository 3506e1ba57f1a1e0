// The entry `offstage/tasks`: rules for the tasks of external agents, such as concurrency, threads by topic, locks and
// caps.

export { taskManager } from './task-manager.ts';
export type { TaskManager, TaskStats } from './task-manager.ts';
export type { TaskManagerOptions, TaskPlan } from './task-options.ts';
export { TaskQueueTimeoutError } from './task-queue.ts';
