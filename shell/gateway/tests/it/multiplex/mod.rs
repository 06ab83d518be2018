//! Several servers behind one gateway, and their failures.

mod features;
mod lifecycle;
mod names;
mod pages;
mod tasks;
mod tokens;
