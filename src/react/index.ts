// The entry `offstage/react`: a session in React, on top of `offstage/client`. It has hooks, which need no provider,
// and parts without styles.

'use client';

export {
  useDeliveries,
  useMicrophone,
  useQuestions,
  useServerTime,
  useSession,
  useSpeaker,
  useSubagents,
  useTranscript,
  type UsedSession,
} from './hooks.ts';
export {
  QuestionCard,
  QuestionList,
  type QuestionCardProps,
  type QuestionListProps,
} from './questions.ts';
export {
  DeliveryList,
  SubagentList,
  type DeliveryListProps,
  type SubagentListProps,
} from './subagents.ts';
export {
  Transcript,
  useTranscriptNotes,
  type TranscriptNote,
  type TranscriptProps,
} from './transcript.ts';
export {
  Alerts,
  ConnectionStatus,
  type AlertsProps,
  type ConnectionStatusProps,
} from './connection.ts';
export {
  MessageField,
  TalkButton,
  TalkHint,
  TalkModes,
  useTalkKeys,
  type MessageFieldProps,
  type TalkButtonProps,
  type TalkModesProps,
} from './voice.ts';
