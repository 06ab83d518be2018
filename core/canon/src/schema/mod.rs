//! Where schemas stand inside a schema. Keys are taken by their position, never by name alone: a
//! property may be called `properties`.

mod draft;
mod references;
mod walk;

pub(crate) use draft::convert;
pub(crate) use references::{InlineError, Inliner, reaches_itself, resolve};
pub(crate) use toolwarden_model::keywords::subschemas;
pub(crate) use walk::{any_type, let_null_in, map_schemas, rebuild, rename_types};
