//! The shape of the results a tool returns, and whether two shapes differ by more than chance.
//!
//! A [`Shape`] counts, per path of the result, in how many results each type, format, length and
//! value was seen. It is bounded, holds no raw value, and adding results or merging shapes gives the
//! same bytes in any order and grouping. [`compare`] reads two of them.

mod bound;
mod cell;
mod channel;
mod compare;
mod count;
mod dates;
mod drift;
pub(crate) mod exact;
mod format;
mod json;
mod key;
mod name;
mod node;
mod sketch;
mod verdict;

pub use bound::MAX_BYTES;
pub use cell::Type;
pub use channel::Channel;
pub use compare::{compare, compare_exactly};
pub use drift::{
    Certainty, Confidence, Evidence, Limit, ShapeChange, ShapeDrift, Side, Sighting, What,
};
pub use format::Format;
pub use json::InvalidShape;
pub use key::{KeyId, ValueKey};
pub use sketch::Shape;
