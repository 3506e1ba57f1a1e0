// `offstage/encrypted-journal`

export { encryptedJournal, encryptionCodec } from './encrypted-journal.ts';
export type { EncryptionOptions, JournalEncryptionOptions } from './encrypted-journal.ts';
