// offstage/tasks: rules for the tasks of external agents: how many at once, threads by topic, locks, caps.

export { taskManager } from './task-manager.ts';
export type { TaskManager, TaskStats, TaskThread } from './task-manager.ts';
export type { TaskCaps, TaskManagerOptions, TaskPlan } from './task-options.ts';
export { TaskQueueTimeoutError, type TaskWaitStage } from './task-queue.ts';
