//! The shape of the results a tool returns, and whether two shapes differ by more than chance.
//!
//! A [`Shape`] counts, per path of the result, in how many results each type, format, length and
//! value was seen. It is bounded, holds no raw value, and adding results or merging shapes gives the
//! same bytes in any order and grouping. [`compare`] reads two of them.

mod channel;
mod compare;
mod counts;
mod dates;
mod error_text;
mod exact_test;
mod fixtures;
mod json;
mod member_name;
mod result_shape;
mod shape_counter;
mod shape_drift;
mod shape_node;
mod significance;
mod size_limits;
mod string_format;
mod value_key;

pub use channel::Channel;
pub use compare::{compare, compare_exactly};
pub use exact_test::ln_choose;
pub use json::InvalidShape;
pub use result_shape::Shape;
pub use shape_counter::ValueType;
pub use shape_drift::{
    Certainty, Frequency, ShapeChange, ShapeChangeKind, ShapeDrift, ShapeLimit, ShapeNote,
    ShapeSide, Significance,
};
pub use size_limits::MAX_BYTES;
pub use string_format::StringFormat;
pub use value_key::{KeyId, ValueKey};
