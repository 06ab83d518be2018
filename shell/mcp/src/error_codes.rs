//! JSON-RPC error codes, including those of MCP.

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a JSON-RPC message.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is not offered.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are not as specified.
pub const INVALID_PARAMS: i64 = -32602;
/// The receiver failed internally.
pub const INTERNAL_ERROR: i64 = -32603;
/// There is no such resource. Only the handshake era has a code for it.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header disagrees with the body it repeats.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client lacks a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The receiver does not support the protocol version.
pub const UNSUPPORTED_VERSION: i64 = -32022;
