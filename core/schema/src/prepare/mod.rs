//! Both schemas on one footing: draft 2020-12, assertions only, every reference local.

mod close;
mod draft;
mod keywords;
mod lift;
mod resources;

pub(crate) use close::close;
pub(crate) use draft::Draft;
pub(crate) use keywords::count;
pub(crate) use lift::{PrepareError, lift};
