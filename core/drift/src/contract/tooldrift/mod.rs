//! What tooldrift keeps of one reply, and how it compares two: files of `schema_version: 1`.

mod diff;
pub(super) mod printed;
mod read;
mod shape;

pub use diff::{FieldDelta, FieldSeverity, SnapshotDelta, ToolDelta, WhichSide, diff};
pub use shape::{SnapshotOne, ToolCallShape};

pub(super) use read::read;
pub(super) use shape::{finish_reason, firsts, shape_of, shapes};
