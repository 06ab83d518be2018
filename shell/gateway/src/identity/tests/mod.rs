//! Callers over real requests and real key sets. The tokens under `rsa/` are signed with a key that was
//! thrown away.

mod callers;
mod key_sets;
mod principals;
mod signatures;
mod sites;
mod support;
mod tokens;
