//! The snapshot of one reply that tooldrift keeps, and its comparison of two: files of `schema_version:
//! 1`.

mod changes;
mod diff;
mod read;
mod snapshot;

pub use diff::{FieldDelta, SnapshotDelta, SnapshotSide, ToolDelta, diff};
pub use snapshot::{ToolCallShape, TooldriftSnapshot};

pub(super) use diff::{format_keys, python_bool};
pub(super) use read::read;
pub(super) use snapshot::{finish_reason, first_replies, shape_of, shapes};
