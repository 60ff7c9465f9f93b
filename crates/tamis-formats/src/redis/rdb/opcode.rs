//! The opcodes of a snapshot. An opcode is stored before a key, or instead of a key.

/// In Valkey 9, the opcode 243 precedes the slots that a node is importing. In Redis 8, the opcode 243 precedes data
/// that modules store about the next key.
pub(crate) const IMPORT_OR_METADATA: u8 = 243;
pub(crate) const SLOT_INFO: u8 = 244;
pub(crate) const FUNCTION: u8 = 245;
pub(crate) const MODULE_AUX: u8 = 247;
pub(crate) const IDLE: u8 = 248;
pub(crate) const FREQUENCY: u8 = 249;
pub(crate) const AUX: u8 = 250;
pub(crate) const RESIZE_DATABASE: u8 = 251;
pub(crate) const EXPIRES_MILLISECONDS: u8 = 252;
pub(crate) const EXPIRES_SECONDS: u8 = 253;
pub(crate) const SELECT_DATABASE: u8 = 254;
pub(crate) const END: u8 = 255;
