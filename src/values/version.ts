// The version of this package, as sent to other systems. A test compares it with package.json.

export const OFFSTAGE_VERSION = '0.1.0';
