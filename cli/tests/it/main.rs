//! The command as a user meets it.

mod commands;
mod transcripts;
