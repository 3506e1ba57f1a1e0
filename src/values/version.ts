// The version of this package, which Offstage sends to other systems. A test compares it with package.json.

export const OFFSTAGE_VERSION = '0.1.0';
