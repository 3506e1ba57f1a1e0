// A session in React, over `offstage/client`: `offstage/react`. Hooks without a provider, and parts without styles.

'use client';

export {
  useDeliveries,
  useMicrophone,
  useQuestions,
  useSession,
  useSpeaker,
  useSubagents,
  useTranscript,
  type SessionSource,
  type UsedSession,
} from './hooks.ts';
export {
  QuestionCard,
  SubagentList,
  Transcript,
  type QuestionCardProps,
  type SubagentListProps,
  type TranscriptProps,
} from './parts.ts';
