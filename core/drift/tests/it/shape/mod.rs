//! What shapes promise: the same bytes in any order, within bounds, and drift only where there is some.

mod compare;
mod hostile;
mod merge_laws;
mod simulation;
mod turnover;

use serde_json::Value;
use toolwarden_drift::shape::{Shape, ValueKey};

fn key() -> ValueKey {
    ValueKey::new([7; 16])
}

fn shape_of<'r>(results: impl IntoIterator<Item = &'r Value>) -> Shape {
    let mut shape = Shape::new(key().id());
    for result in results {
        shape.observe(result, &key());
    }
    shape
}

/// The bytes of a shape, which are what is promised to be the same.
fn bytes(shape: &Shape) -> String {
    serde_json::to_string(&shape.to_json()).expect("JSON is written")
}
