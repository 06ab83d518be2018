//! Finds the subschemas of a schema. A key's position decides its meaning, never its name alone: a
//! property may be called `properties`.

mod convert_draft;
mod dynamic_references;
mod references;
mod walk;

pub(crate) use convert_draft::convert;
pub(crate) use references::{InlineError, Inliner, is_recursive, resolve};
pub(crate) use toolwarden_model::keywords::subschemas;
pub(crate) use walk::{allow_null, any_type, map_schemas, rebuild, rename_types};
